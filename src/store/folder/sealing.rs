//! Encrypts the secrets in a store of the format before (D96).
//!
//! A new base with encrypted secrets takes the place of the old one, and then every file of the log is written anew.
//! Each file is complete or missing at any time, and the file with the data keys notes that this has begun: after an
//! interruption, the next start continues.

use std::path::Path;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::{
    FolderContent,
    base::{self, Header},
    content_base,
    files::{self, Part},
    fold,
    head::{self, Head, HeadFile},
    index::Index,
    journal::Journal,
    reader::LogReader,
};
use crate::{
    model::code::Code,
    store::{
        StoreError, codec,
        engine::{RecordChange, State, Tip},
        seal::Keyring,
    },
};

/// What interrupted writes of any version leave, with secrets in clear.
const LEFTOVERS: [&str; 5] = ["base.tmp", "journal.tmp", "history.tmp", "head.tmp", "kept.tmp"];

/// Encrypts a store, or continues that.
pub(super) fn encrypt(
    folder: &Path,
    head: &mut HeadFile,
    content: FolderContent,
    keyring: &Keyring,
) -> Result<(), StoreError> {
    let is_continued = content.base_key.is_some();
    let generation = if is_continued { content_base(folder)? } else { write_base(folder, head, content, keyring)? };
    let mut seal = |(key, value): &mut RecordChange| -> Result<(), StoreError> {
        if let Some(former) = value
            && let Some(sealed) = codec::sealed(key, former, keyring)?
        {
            *former = sealed;
        }
        Ok(())
    };
    for old in Part::Journal.generations(folder)?.into_iter().filter(|old| *old < generation) {
        fold::journal_to_history(folder, old, &mut seal)?;
        files::remove(&Part::Journal.path(folder, old))?;
    }
    for old in Part::Base.generations(folder)?.into_iter().filter(|old| *old < generation) {
        files::remove(&Part::Base.path(folder, old))?;
    }
    for old in Part::History.generations(folder)? {
        if is_clear(folder, old, keyring)? {
            match fold::rewrite_history(folder, old, &mut seal) {
                // Earlier states cannot be restored from it either, and the current one does not need it.
                Err(error) if error.code == Code::StoreCorrupt => {
                    tracing::warn!(code = %error.code, "A part of the history is not encrypted: {error}");
                }
                rewritten => rewritten?,
            }
        }
    }
    remove_leftovers(folder)?;
    // The records are elsewhere in their files now.
    Index::remove(&folder.join("index"))?;
    files::sync_folder(&head::path(folder))?;
    keyring.set_sealed()
}

/// Writes the state to a base of the next generation, which it returns.
fn write_base(
    folder: &Path,
    head: &mut HeadFile,
    content: FolderContent,
    keyring: &Keyring,
) -> Result<u64, StoreError> {
    let FolderContent { state, generation: last, end, .. } = content;
    let (root_secret, store) = (state.root_secret, base::id_of(&state.root_secret));
    let tip = state.batches.last().map_or(state.tip, Tip::after);
    // Cuts off the rest of an interrupted write: only the last journal may have one.
    drop(Journal::open(Part::Journal.path(folder, last), end)?);
    let generation = last + 1;
    drop(Journal::create(Part::Journal.path(folder, generation), store, tip)?);
    // A base is never ahead of the head, or it would look like one of another store.
    let acknowledged = head.write(Head { position: tip.position, generation, hash: tip.hash, store });
    let synced = acknowledged.and_then(|()| head.sync());
    synced.map_err(|error| StoreError::io("write", &head::path(folder), &error))?;
    let State { records, .. } = codec::merged(state);
    let seal = |(key, value): (String, Vec<u8>)| -> Result<(String, Vec<u8>), StoreError> {
        let sealed = codec::sealed(&key, &value, keyring)?;
        Ok((key, sealed.unwrap_or(value)))
    };
    let records = records.into_par_iter().map(seal).collect::<Result<Vec<_>, StoreError>>()?;
    let header = Header::new(tip, &root_secret, keyring)?;
    base::write(&Part::Base.path(folder, generation), &header, &mut records.into_iter())?;
    Ok(generation)
}

/// Whether a history file has secrets in clear.
fn is_clear(folder: &Path, generation: u64, keyring: &Keyring) -> Result<bool, StoreError> {
    let mut history = LogReader::open(&Part::History.path(folder, generation), true)?;
    while let Some(framed) = history.batch()? {
        for (key, value) in &framed.batch.changes {
            if let Some(value) = value
                && codec::sealed(key, value, keyring)?.is_some()
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Removes the incomplete files of interrupted writes.
fn remove_leftovers(folder: &Path) -> Result<(), StoreError> {
    LEFTOVERS.into_iter().try_for_each(|name| files::remove(&folder.join(name)))
}

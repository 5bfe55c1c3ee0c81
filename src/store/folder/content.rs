//! What the files of a folder have: the newest base and the journals after it, verified against the head (D58).

use std::path::Path;

use super::{
    base,
    files::Part,
    head::Head,
    reader::{LogReader, Rest},
    twice::Damage,
};
use crate::store::{
    StoreError,
    engine::{State, Tip},
    history::chain,
    seal::{KeyId, Keyring},
};

/// The verified content of a folder.
pub(super) struct FolderContent {
    pub state: State,
    /// The data key of the base.
    pub base_key: KeyId,
    /// The generation of the last journal.
    pub generation: u64,
    pub end: u64,
    pub since_base: u64,
    /// Damage of the base, whose copy was read then.
    pub damage: Option<Damage>,
}

/// Returns the generation of the newest base. Only complete bases get their name, so the newest one is valid.
pub(super) fn content_base(folder: &Path) -> Result<u64, StoreError> {
    let newest = base::generations(folder)?.last().copied();
    newest.ok_or_else(|| StoreError::corrupt(folder, "it has no base file"))
}

/// Reads a folder and verifies it against the head, without changing anything.
pub(super) fn read(folder: &Path, acknowledged: Head, keyring: &Keyring) -> Result<FolderContent, StoreError> {
    let newest = content_base(folder)?;
    let path = Part::Base.path(folder, newest);
    let (base, damage) = base::read_either(folder, newest)?;
    let last = Part::Journal.generations(folder)?.last().copied().unwrap_or(newest).max(acknowledged.generation);
    // Files of another store, or of an older copy of this one, must not be mixed in.
    let store = base.store;
    if store != acknowledged.store {
        return Err(StoreError::corrupt(&path, "it belongs to another store than `head`"));
    }
    let (root_secret, base_key) = base.root_secret(&path, keyring)?;
    let mut state = State { tip: base.tip, root_secret, records: base.records, batches: Vec::new() };
    if base.tip.position > acknowledged.position || last < newest {
        let found = format!(
            "it starts after record {}, but `head` acknowledges record {} (was a backup copied over a newer store?)",
            base.tip.position, acknowledged.position
        );
        return Err(StoreError::corrupt(&path, found));
    }
    let (mut tip, mut end, mut since_base) = (base.tip, 0, 0);
    for generation in newest..=last {
        let path = Part::Journal.path(folder, generation);
        let mut journal = LogReader::open(&path, true)?;
        if journal.store != store {
            return Err(StoreError::corrupt(&path, "it belongs to another store"));
        }
        if (journal.start.position, journal.start.hash) != (tip.position, tip.hash) {
            return Err(StoreError::corrupt(&path, format!("it does not follow record {}", tip.position)));
        }
        while let Some(framed) = journal.batch()? {
            let batch = framed.batch;
            if chain(&tip.hash, &batch.record) != batch.hash {
                let found = format!("the hash of record {} does not match its content", batch.position);
                return Err(StoreError::corrupt(&path, found));
            }
            tip = Tip::after(&batch);
            if batch.position == acknowledged.position && batch.hash != acknowledged.hash {
                return Err(StoreError::corrupt(
                    &path,
                    format!("record {} is not the one that was acknowledged", batch.position),
                ));
            }
            state.batches.push(batch);
        }
        let lost = tip.position < acknowledged.position;
        if journal.rest.is_some_and(|rest| rest == Rest::Damaged || generation < last || lost) {
            let found = format!(
                "record {} cannot be read at byte {} (acknowledged: record {})",
                tip.position + 1,
                journal.end,
                acknowledged.position
            );
            return Err(StoreError::corrupt(&path, found));
        }
        end = journal.end;
        since_base += journal.end;
    }
    if tip.position < acknowledged.position {
        let found =
            format!("it ends at record {}, but record {} was acknowledged", tip.position, acknowledged.position);
        return Err(StoreError::corrupt(&Part::Journal.path(folder, last), found));
    }
    Ok(FolderContent { state, base_key, generation: last, end, since_base, damage })
}

//! Migrates stores of the format `edgewright 1`, which kept everything in one sled tree.
//!
//! The old files stay unchanged until the new store is complete; its `head` is written last. An interrupted migration
//! leaves an old store.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
};

use bytes::Bytes;
use jiff::Timestamp;
use serde::Deserialize;
use sled::Db;

use super::{
    base::{self, Header},
    files::{self, Part},
    head::{Head, HeadFile},
    journal::{self, Journal},
    keys,
};
use crate::{
    model::{code::Code, operation::Author},
    store::{
        StoreError,
        changes::Changes,
        codec,
        engine::{Batch, Tip},
        history::{Outcome, Record, chain},
        seal::{Keyring, MasterKeySource},
    },
};

const OLD_FORMAT: &[u8] = b"edgewright 1";
/// The generation of the history of the old store.
const HISTORY: u64 = 0;
const GENERATION: u64 = 1;

/// A history record of the old format.
#[derive(Deserialize)]
struct OldRecord {
    revision: u64,
    at: Timestamp,
    author: Author,
    calls: Vec<String>,
}

/// Returns whether a folder has the files of an old store.
pub(super) fn is_old(folder: &Path) -> bool {
    folder.join("conf").is_file()
}

/// Removes the files of an old store that has been migrated.
pub(super) fn remove_old(folder: &Path) {
    if !is_old(folder) && !folder.join("db").exists() {
        return;
    }
    let _ = fs::remove_dir_all(folder.join("blobs"));
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for name in names.filter(|name| name.to_str().is_some_and(|name| name == "db" || name.starts_with("snap."))) {
        let _ = fs::remove_file(folder.join(name));
    }
    // This file identifies an old store. It goes last, so that an interrupted removal is continued.
    let _ = fs::remove_file(folder.join("conf"));
}

/// Opens the database of an old store.
fn open_old(folder: &Path) -> Result<sled::Db, StoreError> {
    let opened =
        catch_unwind(AssertUnwindSafe(|| sled::Config::default().path(folder).cache_capacity(64 << 20).open()));
    match opened {
        Err(_) => Err(StoreError::corrupt(folder, "sled cannot read the files of this old store")),
        Ok(Err(sled::Error::Io(error))) if is_lock(&error) => Err(files::locked(folder)),
        Ok(Err(sled::Error::Corruption { .. })) => Err(StoreError::corrupt(folder, "sled reports corruption")),
        Ok(Err(error)) => Err(StoreError::new(Code::StoreFailed, format!("{}: {error}", folder.display()))),
        Ok(Ok(db)) => Ok(db),
    }
}

/// Converts an old store to the current format.
pub(super) fn migrate(folder: &Path, source: &MasterKeySource) -> Result<Keyring, StoreError> {
    if let Some(special) = files::find_special(folder).map_err(|error| StoreError::io("read", folder, &error))? {
        return Err(StoreError::corrupt(&special, "not a regular file"));
    }
    let db = files::when_free(|| open_old(folder))?;
    let converted = catch_unwind(AssertUnwindSafe(|| convert(folder, &db, source)));
    converted.unwrap_or_else(|_| Err(StoreError::corrupt(folder, "sled cannot read the records of this old store")))
}

fn convert(folder: &Path, db: &Db, source: &MasterKeySource) -> Result<Keyring, StoreError> {
    let failed = |error: sled::Error| StoreError::new(Code::StoreFailed, format!("{}: {error}", folder.display()));
    let damaged = |found: &str| StoreError::corrupt(folder, found);
    match db.get("m/format").map_err(failed)? {
        Some(format) if format == OLD_FORMAT => {}
        // The process was killed while it created the store.
        None if db.is_empty() => return create_empty(folder, source),
        other => {
            let found = other
                .map_or_else(|| "no format".to_owned(), |it| format!("the format `{}`", String::from_utf8_lossy(&it)));
            let message = format!("{} has {found} (expected `{}`)", folder.display(), base::FORMAT);
            return Err(StoreError::new(Code::StoreFormat, message));
        }
    }
    let root = db.get("m/root").map_err(failed)?.and_then(|bytes| <[u8; 32]>::try_from(bytes.as_ref()).ok());
    let root_secret = root.ok_or_else(|| damaged("its root secret is missing"))?;
    let (revision, next_order) = match db.get("m/revision").map_err(failed)? {
        None => (0, 0),
        Some(bytes) => std::str::from_utf8(&bytes)
            .ok()
            .and_then(|text| text.split_once(' '))
            .and_then(|(revision, order)| Some((revision.parse().ok()?, order.parse().ok()?)))
            .ok_or_else(|| damaged("its revision cannot be read"))?,
    };
    let mut tip = Tip::default();
    let mut batches = Vec::new();
    for row in db.scan_prefix("h/").values() {
        let old: OldRecord =
            serde_json::from_slice(&row.map_err(failed)?).map_err(|_| damaged("a history record cannot be read"))?;
        let record = Record {
            position: tip.position + 1,
            revision: Some(old.revision),
            at: old.at,
            milliseconds: 0,
            author: old.author,
            source: None,
            outcome: Outcome::Applied,
            message: String::new(),
            calls: old.calls,
            resources: Vec::new(),
            changes: String::new(),
        };
        let record = Bytes::from(record.to_bytes()?);
        let batch = Batch {
            position: tip.position + 1,
            revision: old.revision,
            next_order,
            hash: chain(&tip.hash, &record),
            record,
            changes: Changes::default(),
        };
        tip = Tip::after(&batch);
        batches.push(batch);
    }
    // The old format had no hash chain. The last history record must at least match the revision.
    if tip.revision != revision {
        return Err(damaged(&format!("its revision is {revision}, and its history ends at {}", tip.revision)));
    }
    tip.next_order = next_order;
    let mut batches = batches.into_iter();
    let history = Part::History.path(folder, HISTORY);
    journal::write_history(&history, base::id_of(&root_secret), Tip::default(), || Ok(batches.next()))?;
    // The records to read have their secrets in clear.
    let keyring = keys::create(folder, base::id_of(&root_secret), source, true)?;
    let mut broken = None;
    let sealed = |key: &[u8], value: &[u8]| -> Result<(String, Vec<u8>), StoreError> {
        let key = String::from_utf8_lossy(key).into_owned();
        let sealed = codec::sealed(&key, value, &keyring)?;
        Ok((key, sealed.unwrap_or_else(|| value.to_vec())))
    };
    let mut records = db.scan_prefix("r/").chain(db.scan_prefix("d/")).map_while(|row| {
        let record = row.map_err(failed).and_then(|(key, value)| sealed(key.as_ref(), value.as_ref()));
        record.map_err(|error| broken = Some(error)).ok()
    });
    let header = Header::new(tip, &root_secret, &keyring)?;
    base::write(folder, GENERATION, &header, &mut records)?;
    if let Some(error) = broken {
        return Err(error);
    }
    keyring.set_sealed()?;
    finish(folder, &root_secret, tip)?;
    Ok(keyring)
}

fn create_empty(folder: &Path, source: &MasterKeySource) -> Result<Keyring, StoreError> {
    let root_secret = crate::store::mint::random_secret();
    let keyring = keys::create(folder, base::id_of(&root_secret), source, false)?;
    let header = Header::new(Tip::default(), &root_secret, &keyring)?;
    base::write(folder, GENERATION, &header, &mut std::iter::empty())?;
    finish(folder, &root_secret, Tip::default())?;
    Ok(keyring)
}

fn finish(folder: &Path, root_secret: &[u8; 32], tip: Tip) -> Result<(), StoreError> {
    let store = base::id_of(root_secret);
    Journal::create(Part::Journal.path(folder, GENERATION), store, tip)?;
    HeadFile::create(folder, Head { position: tip.position, generation: GENERATION, hash: tip.hash, store })?;
    Ok(())
}

fn is_lock(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock || error.to_string().contains("could not acquire lock")
}

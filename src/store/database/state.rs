//! The state of a store at the start of a part of the log, in a sled database (D58). It is written once, by a checkpoint, and
//! does not change while the head names it.
//!
//! Every value but one has some neighbouring records, in the order of their keys: with one record in each, 110,000 took sled
//! three times as long and three times the memory. A record is the length of its key (4 bytes), that of its value (8 bytes),
//! both little-endian, the key and the value. The key of a value is that of its first record. The one other value describes
//! the state:
//!
//! ```text
//! meta                           {"format":"edgewright 4","store":…,"position":42,"hash":…,"revision":40,"next_order":25,"key":…,
//!                                 "records":110000,"bytes":…,"digest":…}
//! r/CertificateAuthority//ca_…   32 records, or 16 KiB of them
//! r/HttpsEdge//edghts_…          the next ones
//! ```
//!
//! The digest covers all values in the order of their keys, so a reader knows that it has everything, in whatever way sled
//! lost or changed some of it. `docs/explanation/store.md` has this layout for programs of others.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sled::Db;

use super::open::{self, guarded};
use crate::files::fault;
use crate::model::Code;
use crate::store::commit::batch::Tip;
use crate::store::commit::entries::Hash;
use crate::store::disk::files::{self, Part};
use crate::store::disk::temp_dir::TempFolder;
use crate::store::engine::{KeyedRecord, StateRecords};
use crate::store::error::{Doing, StoreError};
use crate::store::folder::format::{FORMAT, other_format};
use crate::store::seal::{KeyId, StoreId, name_of, store_named};

/// The key of the description. Those of records have a slash.
const DESCRIPTION: &str = "meta";
/// The most records in a value.
const MOST_RECORDS: usize = 32;
/// A value that is as long as this is complete.
const VALUE_BYTES: usize = 16 << 10;

/// The identity of a state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateIdentity {
    pub store: StoreId,
    /// The last batch in the state.
    pub tip: Tip,
    /// The data key that its secrets are sealed with.
    pub key: KeyId,
}

/// The database's description of its state.
#[derive(Serialize, Deserialize)]
struct Description {
    /// The format of the whole folder.
    format: String,
    /// The id of the store, in hexadecimal.
    store: String,
    /// The position of the last batch in the state.
    position: u64,
    /// The hash, in hexadecimal.
    hash: String,
    revision: u64,
    /// The `order` of the next creation.
    next_order: u64,
    /// The data key.
    key: KeyId,
    /// The number of records.
    records: u64,
    /// The length of all values with records.
    bytes: u64,
    /// The BLAKE3 hash of these values, in the order of their keys.
    digest: String,
}

/// A state that was read.
pub(crate) struct SavedState {
    /// The identity of the state.
    pub identity: StateIdentity,
    /// All records, in the order of their keys.
    pub records: Vec<KeyedRecord>,
    /// Their length.
    pub bytes: u64,
}

/// Whether the database of a state can be opened where it is: sled writes to open one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nobody else has the store open.
    Alone,
    /// The folder must not change.
    ReadOnly,
}

/// Writes the state at the start of a generation, durably: `records` in the order of their keys. Returns its length.
pub(crate) fn write(
    folder: &Path,
    generation: u64,
    identity: StateIdentity,
    records: &mut StateRecords<'_>,
) -> Result<u64, StoreError> {
    let path = Part::State.path(folder, generation);
    let staging = path.with_extension("tmp");
    files::remove(&staging)?;
    let written = fill(&staging, identity, records)
        .and_then(|bytes| open::sync(&staging).map(|()| bytes))
        // What an interrupted checkpoint has left is in no head.
        .and_then(|bytes| files::remove(&path).map(|()| bytes))
        .and_then(|bytes| files::rename(&staging, &path).map(|()| bytes));
    if written.is_err() {
        let _ = files::remove(&staging);
    }
    written
}

fn fill(path: &Path, identity: StateIdentity, records: &mut StateRecords<'_>) -> Result<u64, StoreError> {
    fault::point("state.create").doing("write", path)?;
    let db = open::create(path, None)?;
    let (mut hasher, mut bytes, mut count) = (blake3::Hasher::new(), 0, 0);
    let (mut first, mut value, mut in_value) = (String::new(), Vec::with_capacity(2 * VALUE_BYTES), 0);
    let mut insert = |first: &str, value: &[u8]| -> Result<(), StoreError> {
        fault::point("state.write").doing("write", path)?;
        hasher.update(value);
        bytes += value.len() as u64;
        guarded(path, || db.insert(first, value)).map(|_| ())
    };
    for record in records {
        let (key, record) = record?;
        encode_record(&key, &record, &mut value);
        if in_value == 0 {
            first = key;
        }
        (in_value, count) = (in_value + 1, count + 1);
        if in_value == MOST_RECORDS || value.len() >= VALUE_BYTES {
            insert(&first, &value)?;
            value.clear();
            in_value = 0;
        }
    }
    if in_value > 0 {
        insert(&first, &value)?;
    }
    let StateIdentity { store, tip, key } = identity;
    let description = Description {
        format: FORMAT.into(),
        store: name_of(&store),
        position: tip.position,
        hash: blake3::Hash::from(tip.hash).to_hex().to_string(),
        revision: tip.revision,
        next_order: tip.next_order,
        key,
        records: count,
        bytes,
        digest: hasher.finalize().to_hex().to_string(),
    };
    let described = serde_json::to_vec(&description).map_err(StoreError::internal)?;
    guarded(path, || db.insert(DESCRIPTION, described).and_then(|_| db.flush()))?;
    open::close(db, path)?;
    Ok(bytes)
}

/// Reads the state of a generation, and verifies all of it.
pub(crate) fn read(folder: &Path, generation: u64, access: Access) -> Result<SavedState, StoreError> {
    let path = Part::State.path(folder, generation);
    match access {
        Access::Alone => match read_at(&path, &path) {
            // On a full disk, sled cannot open it.
            Err(error) if error.code != Code::StoreCorrupt && error.code != Code::StoreFormat => read_copy(&path),
            read => read,
        },
        Access::ReadOnly => read_copy(&path),
    }
}

fn read_copy(path: &Path) -> Result<SavedState, StoreError> {
    if !files::exists(path)? {
        return Err(StoreError::corrupt(path, "the database is missing"));
    }
    let temp = TempFolder::new()?;
    let copy = temp.path().join("state");
    files::copy_folder(path, &copy)?;
    read_at(&copy, path)
}

/// The data key of the state of a generation.
pub(crate) fn key_of(folder: &Path, generation: u64) -> Result<KeyId, StoreError> {
    let path = Part::State.path(folder, generation);
    let db = open::open(&path)?;
    let key = description(&db, &path)?.1.key;
    open::close(db, &path)?;
    Ok(key)
}

/// Reads the database at a path. Errors name another one, of which it can be a copy.
fn read_at(path: &Path, name: &Path) -> Result<SavedState, StoreError> {
    let damaged = |found: &str| StoreError::corrupt(name, found);
    let db = open::open(path).map_err(|error| match error.code {
        Code::StoreCorrupt => damaged("its database cannot be opened"),
        _ => error,
    })?;
    let (described, identity) = description(&db, name)?;
    let (mut hasher, mut bytes, mut records, mut is_readable) = (blake3::Hasher::new(), 0, Vec::new(), true);
    guarded(name, || {
        for row in db.iter() {
            let (key, value) = row?;
            if key != DESCRIPTION {
                hasher.update(&value);
                bytes += value.len() as u64;
                is_readable &= decode_records(&value, &mut records).is_some();
            }
        }
        Ok(())
    })?;
    open::close(db, path)?;
    if bytes != described.bytes || hasher.finalize().to_hex().as_str() != described.digest {
        return Err(damaged("its digest does not match its content"));
    }
    if !is_readable || records.len() as u64 != described.records {
        return Err(damaged("its records cannot be read"));
    }
    Ok(SavedState { identity, records, bytes })
}

fn description(db: &Db, name: &Path) -> Result<(Description, StateIdentity), StoreError> {
    let damaged = || StoreError::corrupt(name, "its description cannot be read");
    let found = guarded(name, || db.get(DESCRIPTION))?;
    let described: Option<Description> = found.and_then(|found| serde_json::from_slice(&found).ok());
    let described = described.ok_or_else(damaged)?;
    if described.format != FORMAT {
        return Err(other_format(name, &described.format));
    }
    let hash: Hash = blake3::Hash::from_hex(&described.hash).map_err(|_| damaged())?.into();
    let Description { position, revision, next_order, key, .. } = described;
    let store = store_named(&described.store).ok_or_else(damaged)?;
    let identity = StateIdentity { store, tip: Tip { position, hash, revision, next_order }, key };
    Ok((described, identity))
}

/// Appends a record to a value.
fn encode_record(key: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(key.len() as u32).to_le_bytes());
    out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(value);
}

/// Reads the records of a value, or returns none if one is incomplete or its key is no text.
fn decode_records(mut rest: &[u8], records: &mut Vec<KeyedRecord>) -> Option<()> {
    while !rest.is_empty() {
        let (key, after) = rest.split_first_chunk()?;
        let (value, after) = after.split_first_chunk()?;
        let (key, after) = after.split_at_checked(u32::from_le_bytes(*key) as usize)?;
        let (value, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*value)).ok()?)?;
        records.push((std::str::from_utf8(key).ok()?.to_owned(), value.to_vec()));
        rest = after;
    }
    Some(())
}

/// Removes the states of all generations but these.
pub(crate) fn remove_others(folder: &Path, kept: &[u64]) -> Result<(), StoreError> {
    let others = Part::State.generations(folder)?.into_iter().filter(|generation| !kept.contains(generation));
    others.map(|generation| Part::State.path(folder, generation)).try_for_each(|path| files::remove(&path))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn identity() -> StateIdentity {
        let tip = Tip { position: 7, hash: [9; 32], revision: 5, next_order: 3 };
        StateIdentity { store: [1; 16], tip, key: KeyId::default() }
    }

    fn records(count: usize) -> Vec<KeyedRecord> {
        (0..count).map(|at| (format!("r/HttpsEdge//edghts_{at:06}"), vec![at as u8; 100 + at % 900])).collect()
    }

    fn written(folder: &Path, count: usize) -> u64 {
        write(folder, 2, identity(), &mut records(count).into_iter().map(Ok)).unwrap()
    }

    #[test]
    fn a_state_is_read_as_it_was_written_wherever_it_is_opened() {
        for count in [0, 1, 31, 32, 33, 5_000] {
            let folder = tempfile::tempdir().unwrap();
            let bytes = written(folder.path(), count);
            for access in [Access::ReadOnly, Access::Alone, Access::ReadOnly] {
                let read = read(folder.path(), 2, access).unwrap();
                let found: Vec<KeyedRecord> =
                    read.records.iter().map(|(key, value)| (key.to_owned(), value.to_vec())).collect();
                assert!(found == records(count), "{count} records");
                assert_eq!(
                    (read.identity.tip, read.identity.store, read.bytes),
                    (identity().tip, identity().store, bytes)
                );
            }
        }
    }

    #[test]
    fn sled_alone_reads_the_documented_layout() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 100);
        let db = sled::open(Part::State.path(folder.path(), 2)).unwrap();
        let mut names = Vec::new();
        for row in db.iter() {
            let (key, value) = row.unwrap();
            let mut rest = &value[..];
            while key != "meta" && !rest.is_empty() {
                let (length, after) = rest.split_first_chunk().unwrap();
                let (value, after) = after.split_first_chunk().unwrap();
                let (name, after) = after.split_at(u32::from_le_bytes(*length) as usize);
                names.push(String::from_utf8(name.to_vec()).unwrap());
                rest = after.get(u64::from_le_bytes(*value) as usize..).unwrap();
            }
        }
        assert_eq!(names, records(100).into_iter().map(|(key, _)| key).collect::<Vec<_>>());
    }

    #[test]
    fn every_damage_of_the_database_is_found() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 500);
        let path = Part::State.path(folder.path(), 2);
        let db = path.join("db");
        let whole = fs::read(&db).unwrap();
        let step = whole.len() / 40;
        let mut harmless = 0;
        for at in (step / 2..whole.len()).step_by(step) {
            let mut damaged = whole.clone();
            *damaged.get_mut(at).unwrap() ^= 4;
            fs::write(&db, &damaged).unwrap();
            match read(folder.path(), 2, Access::ReadOnly) {
                Ok(read) => {
                    harmless += 1;
                    assert_eq!(read.records.len(), 500, "byte {at}");
                }
                Err(error) => assert_eq!(error.code, Code::StoreCorrupt, "byte {at}: {error}"),
            }
        }
        assert!(harmless < 40, "some bytes have content");
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(read(folder.path(), 2, Access::Alone).err().unwrap().code, Code::StoreCorrupt);
        assert!(!path.exists(), "nothing is created in its place");
    }

    #[test]
    fn an_error_in_the_middle_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let failed = || Err(StoreError::new(Code::Internal, "no"));
        let mut broken = records(100).into_iter().map(Ok).chain(std::iter::once_with(failed));
        assert!(write(folder.path(), 2, identity(), &mut broken).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

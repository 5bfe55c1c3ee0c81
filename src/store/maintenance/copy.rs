//! Copies a whole store into another engine (D115): from a folder into a database, and back.
//!
//! Everything is the same afterwards: IDs, revisions, the history with its chain of hashes, and secrets, with the same data keys and
//! the same master key. The history is verified before anything is written, and the copy is read and compared before it is
//! reported. What was not finished is no store.

use std::path::Path;
use std::sync::Arc;

use crate::model::{Code, Entry, Snapshot};
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::codec;
use crate::store::disk::sidecar_files::OF_SOURCES;
use crate::store::engine::KeyedRecord;
use crate::store::error::StoreError;
use crate::store::folder::{FolderCopy, default_master_key};
use crate::store::open_store::{Store, is_in_database, shown_address, store_exists};
use crate::store::postgres::PostgresCopy;
use crate::store::seal::{Keyring, MasterKeySource};

/// How many bytes of commits are written at once, more or less.
const AT_ONCE: usize = 8 << 20;
/// The most bytes of a file beside a store.
const MOST_BYTES: u64 = 16 << 20;

/// A store that was copied.
#[derive(Debug)]
pub(crate) struct CopiedStore {
    pub(crate) revision: u64,
    /// The number of records in its history.
    pub(crate) records: u64,
    /// The number of resources.
    pub(crate) resources: usize,
}

/// Where a copy goes.
enum CopyTarget {
    Folder(FolderCopy),
    Database(PostgresCopy),
}

impl CopyTarget {
    fn begin(to: &Path, keyring: &Keyring, start: Tip) -> Result<Self, StoreError> {
        let (store, wrapped, key) = (keyring.store(), keyring.wrapped()?, keyring.current());
        if is_in_database(to) {
            PostgresCopy::begin(to, store, wrapped, key, start).map(CopyTarget::Database)
        } else {
            FolderCopy::begin(to, store, &wrapped, key, start).map(CopyTarget::Folder)
        }
    }

    fn append(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        match self {
            CopyTarget::Folder(copy) => copy.append(batches),
            CopyTarget::Database(copy) => copy.append(batches),
        }
    }

    fn finish(self, state: &mut dyn Iterator<Item = Result<KeyedRecord, StoreError>>) -> Result<(), StoreError> {
        match self {
            CopyTarget::Folder(copy) => copy.finish(state),
            CopyTarget::Database(copy) => copy.finish(state),
        }
    }
}

/// Copies the store at an address to another address, where nothing may be yet.
pub(crate) fn copy(from: &Path, to: &Path, source: &MasterKeySource) -> Result<CopiedStore, StoreError> {
    if store_exists(to)? {
        let message = format!("{} is not empty", shown_address(to));
        return Err(StoreError::new(Code::StoreFormat, message).help("copy into a new folder or an empty database"));
    }
    // The copy has no key beside it.
    let beside = if is_in_database(from) { None } else { default_master_key(from) };
    let source = match (source, beside) {
        (MasterKeySource::Beside, Some(path)) => MasterKeySource::File(path),
        (source, _) => source.clone(),
    };
    let store = Store::open_encrypted_to_read(from, &source)?;
    let verified = store.verify()?;
    let (state, end) = store.durable_state();
    write(&store, &state, end, |keyring, start| CopyTarget::begin(to, keyring, start))?;
    let copied = Store::open_encrypted_to_read(to, &source)?;
    let (was, is) = (store.snapshot(), copied.snapshot());
    if copied.verify()? != verified || copied.root_secret() != store.root_secret() || !are_same(&was, &is) {
        let message = format!("the copy in {} is not what was copied", shown_address(to));
        return Err(StoreError::new(Code::Internal, message).help("remove it, and copy again"));
    }
    drop(copied);
    copy_files(&store, to, &source)?;
    Ok(CopiedStore { revision: is.revision, records: verified.records, resources: is.len() })
}

/// Makes the local copy of a store anew, as of a state and the end of the history that leads to it, in a folder with a mark.
pub(crate) fn make_local(store: &Store, state: &Snapshot, end: Tip, folder: &Path, of: &str) -> Result<(), StoreError> {
    write(store, state, end, |keyring, start| {
        let (store, wrapped, key) = (keyring.store(), keyring.wrapped()?, keyring.current());
        FolderCopy::begin_local(folder, of, store, &wrapped, key, start).map(CopyTarget::Folder)
    })
}

/// Writes the history up to an end, and then the state there.
fn write(
    store: &Store,
    state: &Snapshot,
    end: Tip,
    begin: impl Fn(&Keyring, Tip) -> Result<CopyTarget, StoreError>,
) -> Result<(), StoreError> {
    let keyring = store.keyring.as_deref().ok_or_else(|| StoreError::internal("the store has no keys"))?;
    let (mut target, mut waiting, mut bytes) = (None, Vec::new(), 0);
    store.engine.walk(0, &mut |before, batch| {
        // Commits may go on.
        if batch.position > end.position {
            return Ok(());
        }
        if target.is_none() {
            target = Some(begin(keyring, before)?);
        }
        bytes += batch.header.len() + batch.calls.len() + batch.entries.size();
        waiting.push(batch);
        if bytes >= AT_ONCE
            && let Some(target) = &mut target
        {
            target.append(&waiting)?;
            waiting.clear();
            bytes = 0;
        }
        Ok(())
    })?;
    let mut target = match target {
        Some(target) => target,
        None => begin(keyring, Tip::default())?,
    };
    target.append(&waiting)?;
    let mut records = codec::records(state, Some(keyring))?;
    target.finish(&mut records)
}

/// Whether two states have the same resources.
fn are_same(one: &Snapshot, other: &Snapshot) -> bool {
    let token = |entry: &Entry| entry.token.as_ref().map(|token| token.expose().to_owned());
    let is_same = |entry: &Arc<Entry>| {
        other.get(&entry.key).is_some_and(|found| {
            let has_same_spec = match (entry.lazy_spec.stored(), found.lazy_spec.stored()) {
                (Ok(one), Ok(other)) => one == other,
                _ => false,
            };
            has_same_spec
                && (entry.created_at, entry.order, &entry.claim) == (found.created_at, found.order, &found.claim)
                && token(entry) == token(found)
        })
    };
    (one.revision, one.len(), one.next_order()) == (other.revision, other.len(), other.next_order())
        && one.iter().all(is_same)
}

/// Copies what others keep with a store: a source that is suspended stays so.
fn copy_files(store: &Store, to: &Path, source: &MasterKeySource) -> Result<(), StoreError> {
    let Some(files) = store.sidecars() else { return Ok(()) };
    let mut found = Vec::new();
    for name in OF_SOURCES {
        found.extend(files.read(name, MOST_BYTES)?.map(|bytes| (name, bytes)));
    }
    if found.is_empty() {
        return Ok(());
    }
    let copied = Store::open_encrypted(to, store.retention, source)?;
    let Some(files) = copied.sidecars() else { return Ok(()) };
    found.iter().try_for_each(|(name, bytes)| files.write(name, bytes))
}

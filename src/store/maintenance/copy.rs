//! Copies a whole store into another engine (D115): from a folder into a database, and back.
//!
//! Everything is the same afterwards: IDs, revisions, the history with its chain of hashes, and secrets, with the same data keys and
//! the same master key. The history is verified before anything is written, and the copy is read and compared before it is
//! reported. What was not finished is no store.
//!
//! What is copied is the store at one moment: commits that are made meanwhile, and new keys, are not in it. A store that is moved must
//! lack nothing, so one that another process writes to is refused: the reader of a folder shares its lock, and the lock of a
//! database and the end of its history are looked at before and afterwards.

use std::path::Path;
use std::sync::Arc;

use crate::model::{Code, Entry, Snapshot};
use crate::store::commit::batch::Tip;
use crate::store::commit::codec;
use crate::store::commit::header::{Retention, Verified};
use crate::store::disk::sidecar_files::OF_SOURCES;
use crate::store::engine::{Engine, StoreCopy};
use crate::store::error::StoreError;
use crate::store::folder::{FolderCopy, default_master_key};
use crate::store::open_store::{Store, is_in_database, shown_address, store_exists};
use crate::store::postgres::{PostgresCopy, PostgresEngine};
use crate::store::seal::{Keyring, MasterKeySource};
use crate::store::session_kind::SessionKind;

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

/// Begins a copy at an address, whose history begins after `start`.
fn begin(to: &Path, keyring: &Keyring, start: Tip) -> Result<Box<dyn StoreCopy>, StoreError> {
    if is_in_database(to) {
        return Ok(Box::new(PostgresCopy::begin(to, keyring, start)?));
    }
    Ok(Box::new(FolderCopy::begin(to, keyring.store(), &keyring.wrapped()?, keyring.current(), start)?))
}

/// A store at one moment, whatever is committed afterwards.
pub(super) struct StoreMoment<'s> {
    store: &'s Store,
    /// The last commit.
    end: Tip,
    /// The state after it.
    state: Arc<Snapshot>,
    pub(super) keyring: Keyring,
}

impl<'s> StoreMoment<'s> {
    /// The store as it is now.
    pub(super) fn now(store: &'s Store) -> Result<Self, StoreError> {
        let (state, end) = store.durable_state();
        Self::at(store, state, end)
    }

    /// The store as of a state and the end of the history that leads to it.
    fn at(store: &'s Store, state: Arc<Snapshot>, end: Tip) -> Result<Self, StoreError> {
        // After the commits: the keys that they need are saved before them.
        let keyring = store.keyring.as_ref().ok_or_else(|| StoreError::internal("the store has no keys"))?.frozen();
        Ok(Self { store, end, state, keyring })
    }

    /// Writes the history, the files of others with these names, and then the state at the end of the history. Returns the history,
    /// verified.
    pub(super) fn write(&self, to: &Path, names: &[&str]) -> Result<Verified, StoreError> {
        let (mut target, mut waiting, mut bytes) = (None, Vec::new(), 0);
        let (mut verified, mut end) = (Verified::default(), Tip::default());
        self.store.walk(0, &mut |before, batch| {
            if batch.position > self.end.position {
                return Ok(());
            }
            verified.next(&before.hash, &batch)?;
            if target.is_none() {
                target = Some(begin(to, &self.keyring, before)?);
            }
            end = Tip::after(&batch);
            bytes += batch.size();
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
        let verified = verified.finish()?;
        if !end.is_same(&self.end) {
            let message = format!("the history that is kept does not lead to record {}", self.end.position);
            return Err(StoreError::new(Code::StoreCorrupt, message));
        }
        let mut target = match target {
            Some(target) => target,
            None => begin(to, &self.keyring, Tip::default())?,
        };
        target.append(&waiting)?;
        // Before the copy is a store: a source that is suspended must not be applied because of it.
        if let Some(files) = self.store.sidecars() {
            for name in names {
                if let Some(bytes) = files.read(name, MOST_BYTES)? {
                    target.keep_file(name, &bytes)?;
                }
            }
        }
        let mut state = codec::records(&self.state, Some(&self.keyring))?;
        target.finish(&mut state)?;
        Ok(verified)
    }

    /// Whether a copy is this store, whose history was verified.
    pub(super) fn is_in(&self, copied: &Store, verified: &Verified) -> Result<bool, StoreError> {
        Ok(copied.verify()? == *verified
            && copied.root_secret() == self.keyring.root_secret()
            && are_same(&self.state, &copied.snapshot()))
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
    let (store, primary) = open_source(from, &source)?;
    let check = || primary.as_ref().map_or(Ok(()), |primary| check_unwritten(&store, from, primary));
    check()?;
    store.verify()?;
    let copied = copy_store(&store, to, &source)?;
    check().map_err(|error| {
        let to = shown_address(to);
        let message = format!("{}; the copy in {to} may lack what was written: remove it", error.message);
        StoreError { message, ..error }
    })?;
    Ok(copied)
}

/// Opens a store to copy it, and its database again, where the lock of its writer is. A folder has none, and neither has a standby
/// whose primary the address does not reach: nobody can tell there whether somebody writes.
fn open_source(from: &Path, source: &MasterKeySource) -> Result<(Store, Option<PostgresEngine>), StoreError> {
    let engine = match is_in_database(from) {
        true => PostgresEngine::open_to_read(from, SessionKind::Brief, source, None)?,
        false => None,
    };
    let Some(engine) = engine.map(Arc::new) else { return Ok((Store::open_encrypted_to_read(from, source)?, None)) };
    let store = Store::load_from(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default(), SessionKind::Brief)?;
    let primary = match PostgresEngine::open_to_read(from, SessionKind::Long, source, store.id()) {
        // Any other database that cannot be reached may have a writer.
        Err(error) if error.code == Code::StoreUnavailable && engine.reads_standby()? => None,
        opened => opened?,
    };
    Ok((store, primary))
}

/// Fails if another process writes to a store in a database, or has written since the store was opened: the copy would lack what it
/// has committed.
fn check_unwritten(store: &Store, from: &Path, primary: &PostgresEngine) -> Result<(), StoreError> {
    // Only a poll tells whether the lock of the writer is free.
    let is_behind = !primary.batches_after(store.durable_state().1)?.0.is_empty();
    let found = match primary.followed_writer() {
        Some(writer) if writer.gone_since.is_none() => format!("is in use by another process: {}", writer.name),
        Some(writer) if is_behind => format!("was written meanwhile by another process: {}", writer.name),
        _ => return Ok(()),
    };
    let message = format!("the store {} {found}", shown_address(from));
    Err(StoreError::new(Code::StoreLocked, message).help("stop that process, and copy again"))
}

/// Copies a store whose history was verified to an address where nothing may be yet.
pub(super) fn copy_store(store: &Store, to: &Path, source: &MasterKeySource) -> Result<CopiedStore, StoreError> {
    let moment = StoreMoment::now(store)?;
    let verified = moment.write(to, &OF_SOURCES)?;
    let copied = Store::open_encrypted_to_read(to, source)?;
    if !moment.is_in(&copied, &verified)? {
        let message = format!("the copy in {} is not what was copied", shown_address(to));
        return Err(StoreError::new(Code::Internal, message).help("remove it, and copy again"));
    }
    Ok(CopiedStore { revision: moment.state.revision, records: verified.records, resources: moment.state.len() })
}

/// Makes a local copy of a store, as of a state and the end of the history that leads to it. Fails while the history is being scrubbed:
/// the copy would keep what is about to be gone.
pub(crate) fn make_local(store: &Store, state: Arc<Snapshot>, end: Tip, folder: &Path) -> Result<(), StoreError> {
    if StoreMoment::at(store, state, end)?.write(folder, &[])?.is_being_scrubbed() {
        let message =
            "`store scrub` is changing the history; if it does not run, it was interrupted, and must run again";
        return Err(StoreError::new(Code::StoreFailed, message));
    }
    Ok(())
}

/// Whether two states have the same resources.
fn are_same(one: &Snapshot, other: &Snapshot) -> bool {
    let token = |entry: &Entry| entry.token.as_ref().map(|token| token.expose().to_owned());
    let is_same = |entry: &Arc<Entry>| {
        other.get(&entry.key).is_some_and(|found| {
            // A server that goes on does not keep these forms.
            let has_same_spec = match (entry.lazy_spec.form_once(), found.lazy_spec.form_once()) {
                (Ok(one), Ok(other)) => one.text() == other.text(),
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

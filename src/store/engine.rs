//! The storage engine: it keeps a log of batches and the state that results from them. The [`Store`](super::Store)
//! decides what a batch contains; an engine makes batches durable, in order, and returns them.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    StoreError,
    backup::Backup,
    changes::Changes,
    history::{Outcome, Retention},
    record_summary::RecordSummary,
    record_touched::touched_in,
    seal::Keyring,
    state_records::StateRecords,
};
use crate::model::{code::Code, digest_key::DigestKey, operation::Author};

/// A record of a state: its key and its value.
pub(crate) type KeyedRecord = (String, Vec<u8>);

/// A blake3 hash.
pub type Hash = [u8; 32];

/// The start of the keys of changes that undo a batch: what follows is the key of a record, and the value is the one
/// before the batch, or none if there was none. They are no part of the state. An engine keeps them with the record of
/// the batch in the history, and protects them like the state: they have secrets, encrypted if there is a keyring.
pub const UNDO: &str = "u/";

/// Visits a link of the hash chain: the previous hash, the record, and its hash.
pub type Visit<'v> = dyn FnMut(&Hash, &[u8], &Hash) -> Result<(), StoreError> + 'v;

/// Visits a batch of the log with the end of the log before it. The batch has only the changes that undo it.
pub type UndoVisit<'v> = dyn FnMut(Tip, Batch) -> Result<(), StoreError> + 'v;

/// Returns the new form of a batch, or none if it stays.
pub type BatchEdit<'e> = dyn FnMut(&Batch) -> Result<Option<Batch>, StoreError> + 'e;

/// An entry of the log: a history record and its changes of the state.
#[derive(Clone)]
pub struct Batch {
    /// The number of the batch: 1 for the first, without gaps.
    pub position: u64,
    /// The revision after this batch. An attempt that changed nothing keeps the revision.
    pub revision: u64,
    /// The `order` of the next creation after this batch.
    pub next_order: u64,
    /// The history record in its canonical form.
    pub record: Bytes,
    /// The hash of the record and the previous hash.
    pub hash: Hash,
    /// The changes of the state.
    pub changes: Changes,
}

/// Omits the record and the values, which have secrets in clear if there is no keyring.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({}, revision {}, {} changes)", self.position, self.revision, self.changes.len())
    }
}

/// A store on the disk, told from earlier and later states without reading it.
#[derive(Debug, Clone)]
pub struct OnDisk {
    /// The folder of the store.
    pub folder: PathBuf,
    /// A hash that changes with every write to its files.
    pub fingerprint: blake3::Hash,
    /// The key of digests that are kept beside the store. It comes from the master key, so a copy of the folder does not
    /// have it.
    pub(crate) digest_key: Option<DigestKey>,
}

impl OnDisk {
    /// Describes a store without encryption.
    pub fn new(folder: PathBuf, fingerprint: blake3::Hash) -> Self {
        Self { folder, fingerprint, digest_key: None }
    }
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tip {
    /// The position of the last batch, or 0 if there is none.
    pub position: u64,
    /// Its hash, or zeros if there is none.
    pub hash: Hash,
    /// The revision after it.
    pub revision: u64,
    /// The `order` of the next creation after it.
    pub next_order: u64,
}

impl Tip {
    /// Returns the tip after a batch.
    pub fn after(batch: &Batch) -> Self {
        Self { position: batch.position, hash: batch.hash, revision: batch.revision, next_order: batch.next_order }
    }
}

/// A complete state, as an engine keeps it.
#[derive(Default)]
pub struct State {
    /// The batch that `records` includes.
    pub tip: Tip,
    /// The random secret that was created with the store.
    pub root_secret: [u8; 32],
    /// All records.
    pub records: StateRecords,
    /// The batches since those records were written, oldest first.
    pub batches: Vec<Batch>,
    /// Some of the batches before that, oldest first, for readers that have not seen them yet.
    pub earlier: Vec<Batch>,
}

/// Omits the root secret, and the values as in [`Batch`].
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tip, records, batches, .. } = self;
        write!(f, "State({}, {} records, {} batches)", tip.position, records.len(), batches.len())
    }
}

/// A query for history records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// All records.
    All,
    /// The record that made a revision.
    Revision(u64),
    /// The applied reconciliations of every source.
    Reconciliations,
    /// The records that changed a resource, by the path of its key.
    Resource(String),
}

impl Query {
    /// Returns whether the query asks for a record in its canonical form.
    pub fn selects(&self, record: &[u8]) -> Result<bool, StoreError> {
        let summary = match self {
            Query::All => return Ok(true),
            Query::Resource(path) => return Ok(!touched_in(record, path)?.is_empty()),
            Query::Revision(_) | Query::Reconciliations => RecordSummary::from_bytes(record)?,
        };
        let is_reconciliation = matches!(summary.author, Author::Source { .. }) && summary.outcome == Outcome::Applied;
        Ok(match self {
            Query::Revision(revision) => summary.revision == Some(*revision),
            _ => is_reconciliation,
        })
    }
}

/// Statistics of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The position of the last durable batch.
    pub position: u64,
    /// The number of bytes on disk.
    pub bytes: u64,
    /// The position of the oldest history record that is kept.
    pub oldest: u64,
}

/// A durable log of batches. Only one process writes to it at a time; its methods can be called from any thread.
pub trait Engine: Send + Sync {
    /// Reads the state after the last durable batch.
    fn load(&self) -> Result<State, StoreError>;

    /// Is told that the state which [`Engine::load`] has returned is in use. What can wait until then begins now, such as
    /// the opening of an index.
    fn loaded(&self) {}

    /// Returns the keys that encrypt the secrets in records, or none if they are kept as they are. It does not change
    /// while the engine is open.
    fn keyring(&self) -> Option<Arc<Keyring>> {
        None
    }

    /// Returns sentences about damage that was found when the store was opened, and that has cost nothing.
    fn warnings(&self) -> &[String] {
        &[]
    }

    /// Appends batches after position `after`, in order. On success all of them survive a power loss; on an error none
    /// of them is kept.
    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError>;

    /// Returns the batches after a position, oldest first, or none if the engine no longer has all of them.
    fn changes_since(&self, position: u64) -> Result<Option<Vec<Batch>>, StoreError>;

    /// Returns at most `limit` history records before a position, newest first, in their canonical form.
    fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Bytes>, StoreError>;

    /// Returns the positions of the records that [`Engine::history`] returns, without reading the records; none if only
    /// reading them tells.
    fn positions(&self, _query: &Query, _before: u64, _limit: usize) -> Result<Option<Vec<u64>>, StoreError> {
        Ok(None)
    }

    /// Returns the length of a record in bytes, and its first ones, of which nothing is verified; none if only reading the
    /// whole record tells.
    fn beginning(&self, _position: u64) -> Result<Option<(u64, Bytes)>, StoreError> {
        Ok(None)
    }

    /// Whether the records of one resource are found without reading those of all others.
    fn finds_by_resource(&self) -> bool {
        true
    }

    /// Returns the file and line that declared a resource, by the path of its key, when a source last changed it. None if
    /// only the records tell, which can be large.
    fn declared_at(&self, _path: &str, _source: &str) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Visits all records that are kept, oldest first.
    fn walk(&self, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// Visits all batches after the last one of a revision, oldest first, with the changes that undo them. Starts earlier
    /// if that is simpler, and at the oldest batch if the revision is no longer kept. An engine that keeps no such changes
    /// visits nothing: it has only its current state.
    fn undo_from(&self, _revision: u64, _visit: &mut UndoVisit<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Replaces records, and changes that undo batches, in what the history has from before the last checkpoint. `edit` can be
    /// called twice for a batch, and must keep everything else. Fails if the engine cannot do this now.
    fn edit_history(&self, _edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
        Err(StoreError::new(Code::StoreFailed, "the history of this store cannot be changed"))
    }

    /// Waits at most `timeout` for a batch after `position`. Returns the last position.
    fn wait_for_newer(&self, position: u64, timeout: Duration) -> u64;

    /// Returns the engine's statistics.
    fn statistics(&self) -> Statistics;

    /// Returns what is on the disk and its revision, or none if there is no disk.
    fn on_disk(&self) -> Option<(OnDisk, u64)> {
        None
    }

    /// Opens everything that the state and its history need, as of the last durable batch. Fails if nothing is on a disk.
    fn backup(&self) -> Result<Backup, StoreError> {
        Err(StoreError::new(Code::StoreFailed, "the store is not in a folder, so it has no files to back up"))
    }

    /// Fails if the engine cannot write until it is opened again.
    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Tries whether a write would succeed, without a change.
    fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns whether the log is long enough for a checkpoint.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// Ends the current part of the log, so that a checkpoint of the state at its end can be written while more batches
    /// are appended. Must not be called during an [`append`](Engine::append).
    fn rotate(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Writes the state at the last [`rotate`](Engine::rotate), in the order of the keys of its records, and drops what the
    /// history no longer keeps.
    fn checkpoint(
        &self,
        _state: &mut dyn Iterator<Item = Result<KeyedRecord, StoreError>>,
        _retention: &Retention,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns whether a process that is about to end should write a checkpoint first, so that the state on the disk is the
    /// current one. That must take much less time than the process has run.
    fn wants_last_checkpoint(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_prints_no_secret() {
        let record = || ("r/a".to_owned(), b"hunter2".to_vec());
        let batch = Batch {
            position: 7,
            revision: 3,
            next_order: 1,
            record: Bytes::from_static(b"hunter2"),
            hash: [0; 32],
            changes: std::iter::once((record().0, Some(record().1))).collect(),
        };
        let state = State {
            root_secret: *b"hunter2hunter2hunter2hunter2hunt",
            records: std::iter::once(record()).collect(),
            batches: vec![batch],
            ..State::default()
        };
        let printed = format!("{state:?} {:?}", state.batches);
        assert!(!printed.contains("104, 117, 110") && !printed.contains("hunter2"), "{printed}");
        assert!(printed.contains("Batch(7, revision 3, 1 changes)"), "{printed}");
    }
}

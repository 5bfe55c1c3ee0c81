//! What an engine keeps: a log of batches, and the state that follows from it. The [`Store`](super::Store) decides what
//! a batch says; an engine only makes it durable, in order, and gives it back.

use std::{sync::Arc, time::Duration};

use super::{StoreError, history::Retention};

/// A blake3 hash.
pub type Hash = [u8; 32];

/// A record of the state: its key, and its value unless the record is removed.
pub type RecordChange = (String, Option<Vec<u8>>);

/// Looks at a link of the chain: the hash that a record follows, the record, and its hash.
pub type Visit<'v> = dyn FnMut(&Hash, &[u8], &Hash) -> Result<(), StoreError> + 'v;

/// One entry of the log: a history record, and the changes of the state that it made.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The number of the batch: 1 for the first, without gaps.
    pub position: u64,
    /// The revision after this batch; the same as before for an attempt that changed nothing.
    pub revision: u64,
    /// The `order` of the next creation after this batch.
    pub next_order: u64,
    /// The history record in its canonical form.
    pub record: Arc<[u8]>,
    /// The hash of the record and of the hash before it.
    pub hash: Hash,
    /// What changes in the state.
    pub changes: Vec<RecordChange>,
}

/// Where a log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tip {
    /// The position of the last batch; 0 when there is none.
    pub position: u64,
    /// Its hash; zeros when there is none.
    pub hash: Hash,
    /// The revision after it.
    pub revision: u64,
    /// The `order` of the next creation after it.
    pub next_order: u64,
}

impl Tip {
    /// The tip after a batch.
    pub fn after(batch: &Batch) -> Self {
        Self { position: batch.position, hash: batch.hash, revision: batch.revision, next_order: batch.next_order }
    }
}

/// A whole state as an engine has kept it.
#[derive(Debug, Default)]
pub struct State {
    /// The batch that it follows from.
    pub tip: Tip,
    /// The secret that was drawn when the store was created.
    pub root_secret: [u8; 32],
    /// Every record, in no order.
    pub records: Vec<(String, Vec<u8>)>,
    /// What has changed since those records were written, oldest first.
    pub batches: Vec<Batch>,
}

/// Which history records to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// All of them.
    All,
    /// The one that made a revision.
    Revision(u64),
    /// The applied reconciliations of every source.
    Reconciliations,
    /// Those that name a resource, by the path of its key.
    Resource(String),
}

/// What an engine says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The position of the last durable batch.
    pub position: u64,
    /// Bytes on the disk.
    pub bytes: u64,
    /// The position of the oldest history record that is kept.
    pub oldest: u64,
}

/// Keeps a log of batches durable. One process writes to it at a time; its methods may be called from any thread.
pub trait Engine: Send + Sync {
    /// Reads the state after the last durable batch.
    fn load(&self) -> Result<State, StoreError>;

    /// Appends batches behind `after`, in order, each whole or not at all. When this returns, all of them survive a
    /// loss of power. On an error none of them is kept.
    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError>;

    /// The batches behind a position, oldest first; none when the engine no longer has all of them.
    fn changes_since(&self, position: u64) -> Result<Option<Vec<Batch>>, StoreError>;

    /// History records before a position, newest first, at most `limit`, each in its canonical form.
    fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Arc<[u8]>>, StoreError>;

    /// Walks the whole log that is kept, oldest first.
    fn walk(&self, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// Waits until the log is longer than `position`, at most for `timeout`. Returns its last position.
    fn wait_for_newer(&self, position: u64, timeout: Duration) -> u64;

    /// What the engine says about itself.
    fn statistics(&self) -> Statistics;

    /// An error when the engine can no longer write until it is opened again.
    fn health(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Whether the log has grown so long that the engine wants the whole state once more.
    fn wants_checkpoint(&self) -> bool {
        false
    }

    /// Ends the current part of the log, so that a checkpoint of the state at its end can be written while further
    /// batches are appended. Must not be called during an [`append`](Engine::append).
    fn rotate(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Writes the state at the last [`rotate`](Engine::rotate), and drops what is then no longer needed.
    fn checkpoint(
        &self,
        _state: &mut dyn Iterator<Item = (String, Vec<u8>)>,
        _retention: &Retention,
    ) -> Result<(), StoreError> {
        Ok(())
    }
}

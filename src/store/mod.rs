//! Where revisions are kept. One trait; sled behind it. Nothing but a commit changes state, and nothing but this module
//! knows the engine.

mod codec;
pub mod mint;
mod probe;
mod sled_store;

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use probe::probe;
pub use sled_store::SledStore;

use crate::model::{
    code::Code,
    operation::{Author, Operation},
    snapshot::{Refusal, Snapshot},
};

/// Gives the current Snapshot and commits lists of Operations, all or nothing.
pub trait Store: Send + Sync {
    /// The current revision. Never waits for a writer, never touches the disk.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Makes the next revision. When this returns, it is on disk and visible; when it fails, nothing has changed.
    fn commit(&self, commit: Commit) -> Result<Committed, CommitError>;

    /// A random secret that was made with the store, from which keys can be derived (D36).
    fn root_secret(&self) -> [u8; 32];

    /// What was committed, newest first, at most `limit` records.
    fn history(&self, limit: usize) -> Result<Vec<HistoryRecord>, StoreError>;

    /// What sources have committed before a revision, newest first, at most `limit` records.
    fn reconciliations(&self, before: u64, limit: usize) -> Result<Vec<HistoryRecord>, StoreError>;

    /// What made a revision; nothing, if there is no such revision.
    fn record(&self, revision: u64) -> Result<Option<HistoryRecord>, StoreError>;
}

/// What is to be committed.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The revision that the Operations were computed from; with none, they apply to whatever is current.
    pub base: Option<u64>,
    /// The changes, in order.
    pub operations: Vec<Operation>,
    /// Who makes them.
    pub author: Author,
    /// When.
    pub at: Timestamp,
}

/// What came of a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The revision right after it.
    pub snapshot: Arc<Snapshot>,
}

/// Who changed what, and when. It holds calls, not bodies: no secret is in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HistoryRecord {
    /// The revision that the commit made.
    pub revision: u64,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it.
    pub author: Author,
    /// The calls, as `METHOD path`.
    pub calls: Vec<String>,
}

/// Why a commit changed nothing.
#[derive(Debug)]
pub enum CommitError {
    /// A rule forbids it.
    Refused(Refusal),
    /// The store has moved on.
    Stale {
        /// The revision that the Operations were computed from.
        base: u64,
        /// The current one.
        current: u64,
    },
    /// The engine failed.
    Failed(StoreError),
}

/// Why a store cannot be opened, read or written.
#[derive(Debug, Clone)]
pub struct StoreError {
    /// The registered code.
    pub code: Code,
    /// One sentence.
    pub message: String,
}

impl StoreError {
    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitError::Refused(refusal) => {
                let messages: Vec<&str> = refusal.faults.iter().map(|fault| fault.message.as_str()).collect();
                f.write_str(&messages.join("; "))
            }
            CommitError::Stale { base, current } => {
                write!(f, "the plan was made from revision {base}, and the store is at revision {current}")
            }
            CommitError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CommitError {}

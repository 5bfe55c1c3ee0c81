//! Where revisions are kept: one [`Store`] that decides what a commit is, over an [`Engine`] that makes it durable.
//! Nothing but a commit changes state, and nothing outside this module knows an engine.

mod codec;
pub mod engine;
mod error;
pub mod folder;
mod group;
pub mod history;
pub mod memory;
pub mod mint;
mod probe;
mod touched;

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicBool, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;

pub use error::StoreError;
pub use probe::probe;

use crate::model::{
    code::Code,
    key::Key,
    operation::{Author, Operation},
    snapshot::{Refusal, Snapshot},
};
use engine::{Engine, Query, Statistics, Tip};
use folder::{FolderEngine, FolderReader};
use group::Queue;
use history::{Outcome, Places, Record, Retention, Verified};

/// The address of a store in memory, which is gone with the process.
pub const MEMORY: &str = "memory:";

/// The current Snapshot, and the one way to the next.
pub struct Store {
    engine: Arc<dyn Engine>,
    current: ArcSwap<Snapshot>,
    queue: Queue,
    subscribers: Mutex<Vec<mpsc::Sender<Revision>>>,
    retention: Retention,
    root_secret: [u8; 32],
    /// Keys the digests in the history, so that they tell nobody a secret.
    digest_key: [u8; 32],
    checkpointing: Arc<AtomicBool>,
    checkpoint: Mutex<Option<JoinHandle<()>>>,
}

/// A commit request: what to change, and who asks.
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

/// Who makes an attempt, when, and where what it changes is declared.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Who.
    pub author: Author,
    /// When it began.
    pub at: Timestamp,
    /// File and line of the resources, for the history.
    pub places: Places,
    /// The clock at the beginning, for its duration.
    pub began: Instant,
}

impl Attempt {
    /// An attempt that begins now.
    pub fn new(author: Author) -> Self {
        Self { author, at: mint::now(), places: Places::new(), began: Instant::now() }
    }
}

/// The result of a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The revision right after it.
    pub snapshot: Arc<Snapshot>,
}

/// A revision that has become visible, for subscribers.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The state.
    pub snapshot: Arc<Snapshot>,
    /// The resources whose records differ from the revision before.
    pub changed: Arc<[Key]>,
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

/// Why [`Store::commit_with`] changed nothing.
#[derive(Debug)]
pub enum Declined<E> {
    /// The closure gave no Operations.
    Declined(E),
    /// The commit was refused or failed.
    Commit(CommitError),
}

impl Store {
    /// Opens the store at an address, or creates it: a folder, or [`MEMORY`].
    pub fn open(address: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(address, Retention::default())
    }

    /// The same with another retention of history.
    pub fn open_with(address: impl AsRef<Path>, retention: Retention) -> Result<Self, StoreError> {
        let address = address.as_ref();
        match address.to_str() {
            Some(MEMORY) => Self::on(Arc::new(memory::MemoryEngine::default()), retention),
            Some(url) if url.contains("://") => {
                let message =
                    format!("no engine can open `{}`: the address of a store is a folder", crate::text::printable(url));
                Err(StoreError::new(Code::StoreFailed, message))
            }
            _ => Self::on(Arc::new(FolderEngine::open(address)?), retention),
        }
    }

    /// Opens a store for reading: nothing in its folder is changed, so a read-only mount is enough (D62). Where a store has
    /// to be migrated or completed first, this is the same as [`Store::open`].
    pub fn open_to_read(address: impl AsRef<Path>) -> Result<Self, StoreError> {
        match FolderReader::open(address.as_ref())? {
            Some(reader) => Self::on(Arc::new(reader), Retention::default()),
            None => Self::open(address),
        }
    }

    /// Whether there is a store at an address, so that a dry run need not create one. An error when nobody can tell,
    /// because the folder cannot be read.
    pub fn exists(address: impl AsRef<Path>) -> Result<bool, StoreError> {
        FolderEngine::exists(address.as_ref())
    }

    /// A store on an engine.
    pub fn on(engine: Arc<dyn Engine>, retention: Retention) -> Result<Self, StoreError> {
        let state = engine.load()?;
        let root_secret = state.root_secret;
        let tip = state.batches.last().map_or(state.tip, Tip::after);
        let snapshot = Arc::new(codec::restore(state)?);
        Ok(Self {
            engine,
            current: ArcSwap::new(Arc::clone(&snapshot)),
            queue: Queue::new(snapshot, tip),
            subscribers: Mutex::default(),
            retention,
            root_secret,
            digest_key: blake3::derive_key("edgewright 2026 history digest", &root_secret),
            checkpointing: Arc::default(),
            checkpoint: Mutex::default(),
        })
    }

    /// The current revision. Never waits for a writer, never touches the disk.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Makes the next revision. When this returns, it is durable and visible; when it fails, nothing has changed.
    pub fn commit(&self, commit: Commit) -> Result<Committed, CommitError> {
        let Commit { base, operations, author, at } = commit;
        let attempt = Attempt { at, ..Attempt::new(author) };
        let made = self.commit_with(attempt, |current| match base {
            Some(base) if base != current.revision => Err(CommitError::Stale { base, current: current.revision }),
            _ => Ok(operations),
        });
        made.map_err(|error| match error {
            Declined::Declined(error) | Declined::Commit(error) => error,
        })
    }

    /// Makes the next revision from Operations that are computed on the very revision they apply to: nobody else
    /// commits between the two. The closure must be quick, for other writers wait.
    pub fn commit_with<E>(
        &self,
        attempt: Attempt,
        make: impl FnOnce(&Snapshot) -> Result<Vec<Operation>, E>,
    ) -> Result<Committed, Declined<E>> {
        self.commit_in_group(attempt, make)
    }

    /// Writes an attempt that changed nothing into the history.
    pub fn note(&self, attempt: Attempt, outcome: Outcome, message: String) -> Result<(), StoreError> {
        self.note_in_group(attempt, outcome, message, Vec::new())
    }

    /// Gives each revision from now on, in order.
    pub fn subscribe(&self) -> mpsc::Receiver<Revision> {
        let (sender, receiver) = mpsc::channel();
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    /// A random secret that was made with the store, from which keys can be derived (D36).
    pub fn root_secret(&self) -> [u8; 32] {
        self.root_secret
    }

    /// Attempts before the record at `before`, newest first, at most `limit`.
    pub fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.engine.history(query, before, limit)?.iter().map(|record| Record::from_bytes(record)).collect()
    }

    /// The record that made a revision; nothing, if there is no such revision or it is no longer kept.
    pub fn record(&self, revision: u64) -> Result<Option<Record>, StoreError> {
        Ok(self.history(&Query::Revision(revision), u64::MAX, 1)?.pop())
    }

    /// Walks the history that is kept and checks its chain of hashes.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let mut verified = Verified::default();
        self.engine.walk(&mut |before, record, hash| verified.next(before, record, hash))?;
        Ok(verified)
    }

    /// Waits for a record behind `position`, for a process that follows another one's store.
    pub fn wait_for_newer(&self, position: u64, timeout: Duration) -> u64 {
        self.engine.wait_for_newer(position, timeout)
    }

    /// What the engine says about itself.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// An error when the store can be read and no longer written.
    pub fn health(&self) -> Result<(), StoreError> {
        self.engine.health()
    }

    /// The next Snapshot after `snapshot`, from what the engine keeps of the batches behind a position: a replica need
    /// not load the whole state again. None when the engine no longer has all of them.
    pub fn advance(&self, snapshot: &Snapshot, position: u64) -> Result<Option<Snapshot>, StoreError> {
        let Some(batches) = self.engine.changes_since(position)? else { return Ok(None) };
        batches.iter().try_fold(snapshot.clone(), |snapshot, batch| codec::advance(&snapshot, batch)).map(Some)
    }
}

impl Drop for Store {
    /// Waits for a checkpoint that is being written: until then the engine holds its lock.
    fn drop(&mut self) {
        let thread = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

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

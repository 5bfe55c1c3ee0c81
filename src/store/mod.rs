//! Revisions and history: a [`Store`] that makes commits, over an [`Engine`] that makes them durable.
//!
//! # The problem
//!
//! Requests and syncs change the state at the same time. Each must be checked against the whole state that it changes (is
//! this the last admin, does the reference resolve). Readers want a whole state, at once. What was acknowledged must survive
//! a power loss. And months later somebody asks who set a field, and wants the state before. Solved one by one, these
//! contradict each other: a lock around the state keeps readers waiting, a sync for each commit keeps writers waiting, a
//! database that is changed in place may not open after a power loss, and a history beside the state can disagree with it.
//!
//! # The idea
//!
//! The log is the truth, and everything else can be derived from it. A commit is computed on the newest state under a short
//! lock, takes the next position in the log, and is visible once the log is synced. A state is a value that never changes
//! ([`Snapshot`]): the next one shares what is the same, so a reader takes the current one and waits for nobody. The history
//! is the log, read again. An earlier state is the log, undone from its end. Databases only save reading the log, and are
//! written when nobody waits.
//!
//! # The life of a commit
//!
//! `PATCH /edges/https/edghts_U9Cj` in a store at revision 4:
//!
//! 1. The caller's closure runs on the *tip*, the state after everything in the queue: permissions and preconditions count
//!    there, not where the request began. The model applies the operations, or refuses them (`speculative`).
//! 2. The commit enters the queue, with position 7, and becomes the tip. Outside the lock, it is encoded: a header, the
//!    calls, and an entry with the edge before and after, secrets encrypted (`commit`, `seal`).
//! 3. Whoever leads the queue appends all commits in it to the log, with one sync (`group`, `log`).
//! 4. Revision 5 is visible: the current state is swapped, and those who follow revisions are told
//!    (`history::change_window`). The request is answered.
//! 5. Later, a thread adds rows to the index of the history, and when the log has grown long, a checkpoint writes the state
//!    (`database`, `checkpoint`).
//!
//! A power loss before the sync in step 3 loses a commit of which nobody was told; after it, nothing is lost.
//!
//! # Rooms
//!
//! | Room | What it knows |
//! | --- | --- |
//! | `group`, `checkpoint`, `speculative` | The order of commits, and when the state is written |
//! | `commit` | What a commit and a record are, in bytes |
//! | `log` | Appending, and telling an interrupted write from damage |
//! | `database` | sled: states and the index |
//! | `folder`, `memory` | The engines: in a folder, by generations, and in memory |
//! | `history` | Questions about the log |
//! | `seal` | Secrets at rest |
//! | `maintenance` | Backup, restore, check, repair, new keys, scrubbing |
//! | `shares`, `trusted_time` | Who may fill the history, and what is old |
//!
//! # What it never does
//!
//! The store interprets no change: the model has the rules, and whoever commits checks permissions. Nothing is visible
//! before it is durable. What cannot be read never counts as empty. Only this module knows the engines;
//! `docs/explanation/store.md` has what all of this guarantees.

pub(crate) mod checkpoint;
pub(crate) mod commit;
mod database;
pub(crate) mod disk;
pub(crate) mod engine;
mod error;
pub(crate) mod folder;
mod group;
pub(crate) mod history;
pub(crate) mod ids_and_clock;
mod log;
pub(crate) mod maintenance;
pub(crate) mod memory;
pub(crate) mod metrics;
pub(crate) mod seal;
mod shares;
mod speculative;
mod trusted_time;

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use tokio::sync::watch;

pub(crate) use disk::{
    files::note_server,
    probe::probe,
    sidecar_files::{read_beside, set_aside, write_beside},
};
pub use error::{CommitError, Declined, StoreError};
pub use history::rewind::RevisionError;
pub(crate) use history::{change_description::OWNED_BY, external_writes::Provenance};
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use log::frame::fuzzed as fuzzed_frame;
pub(crate) use maintenance::{
    rekey::{MasterChange, RekeyResult},
    scrub::RecordedTokens,
};
pub(crate) use speculative::{NextState, Trial};

use crate::{
    cache::VersionedCache,
    model::{Author, Code, Operation, Snapshot},
};
use commit::batch::Tip;
use commit::{
    codec,
    header::{Places, Retention, RevertedDrift, Verified},
};
use engine::{Engine, OnDisk, Statistics};
pub(crate) use folder::on_disk;
use folder::{FolderEngine, FolderReader};
use group::Queue;
pub(crate) use group::QueuedCommit;
use history::{
    change_window::{ChangeWindow, ChangedResource, NextRevision},
    declared_places::{DeclaredPlaces, MOST_PLACES},
    rewind::MOST_STATES,
};
use seal::{Keyring, MasterKeySource, NewMaster};
use shares::Shares;

/// The address of a store in memory, which ends with the process.
pub const MEMORY: &str = "memory:";

/// The log target of what is removed because of a limit or its age (D58).
pub(crate) const REMOVAL: &str = "edgewright::store::removal";

/// How long a process has a store open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// For many commits and queries.
    Long,
    /// For one command. A person waits for it, so what no commit needs is left to later processes.
    Brief,
}

/// The current Snapshot, and the only way to make the next one.
pub struct Store {
    engine: Arc<dyn Engine>,
    current: ArcSwap<Snapshot>,
    queue: Queue,
    subscribers: Mutex<Vec<Subscriber>>,
    recent: ChangeWindow,
    declared: DeclaredPlaces,
    /// The states that were restored last.
    earlier_states: VersionedCache<u64, Arc<Snapshot>>,
    retention: Retention,
    shares: Shares,
    root_secret: [u8; 32],
    /// The keys that encrypt secrets, unless the engine keeps them as they are.
    keyring: Option<Arc<Keyring>>,
    /// Key of the digests in the history: without it, short secrets could be guessed from them.
    digest_key: [u8; 32],
    checkpointing: Arc<AtomicBool>,
    /// Whether the engine failed in a way after which its state is unknown.
    broken: AtomicBool,
    /// Whether the last write failed in a way that may pass, such as a full disk.
    strained: AtomicBool,
    checkpoint: Mutex<Option<JoinHandle<()>>>,
    stay: Stay,
}

/// A commit request.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The revision that the Operations were computed from. If none, they apply to the current revision.
    pub base: Option<u64>,
    /// The changes, in order.
    pub operations: Vec<Operation>,
    /// The author of the changes.
    pub author: Author,
    /// The time of the commit.
    pub at: Timestamp,
}

/// An attempt to change the store, as the history records it.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The author.
    pub author: Author,
    /// The source that is suspended or resumed, if the attempt is that.
    pub source: Option<String>,
    /// The time at which the attempt began.
    pub at: Timestamp,
    /// The file that declares each resource, as `file:line` or without the line.
    pub places: Places,
    /// The fields whose drift the change reverts (D85).
    pub reverted_drift: RevertedDrift,
    /// The clock at the start, to compute the duration.
    pub began: Instant,
    /// The message in the history, if the change is applied.
    pub note: String,
}

impl Attempt {
    /// Starts an attempt now.
    pub fn new(author: Author) -> Self {
        let (places, reverted_drift, note) = (Places::new(), RevertedDrift::new(), String::new());
        Self { author, source: None, at: ids_and_clock::now(), places, reverted_drift, began: Instant::now(), note }
    }
}

/// The result of a commit.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The state after the commit.
    pub snapshot: Arc<Snapshot>,
}

/// A new visible revision, for subscribers.
#[derive(Debug, Clone)]
pub struct Revision {
    /// The state.
    pub snapshot: Arc<Snapshot>,
    /// The resources that differ from the previous revision, in the order of their keys.
    pub changed: Arc<[ChangedResource]>,
    /// The author of the changes.
    pub author: Author,
    /// The time of the commit.
    pub at: Timestamp,
}

/// A subscriber to new revisions.
struct Subscriber {
    sender: mpsc::Sender<Revision>,
    /// Whether only those of sources matter.
    only_sources: bool,
}

impl Store {
    /// Opens or creates the store at an address: a folder, or [`MEMORY`].
    pub fn open(address: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(address, Retention::default())
    }

    /// Opens a store as [`Store::open`] does, with another retention of history.
    pub fn open_with(address: impl AsRef<Path>, retention: Retention) -> Result<Self, StoreError> {
        Self::open_encrypted(address, retention, &MasterKeySource::Beside)
    }

    /// Opens a store as [`Store::open`] does, with a master key from elsewhere (D96).
    pub fn open_encrypted(
        address: impl AsRef<Path>,
        retention: Retention,
        source: &MasterKeySource,
    ) -> Result<Self, StoreError> {
        Self::open_for(address.as_ref(), retention, Stay::Long, source)
    }

    /// Opens a store for one command: a checkpoint that is due is written now, while the command does something else,
    /// and not when it ends.
    pub(crate) fn open_briefly(
        address: impl AsRef<Path>,
        retention: Retention,
        source: &MasterKeySource,
    ) -> Result<Self, StoreError> {
        let store = Self::open_for(address.as_ref(), retention, Stay::Brief, source)?;
        store.checkpoint_if_wanted(&mut store.queue.line());
        Ok(store)
    }

    fn open_for(
        address: &Path,
        retention: Retention,
        stay: Stay,
        source: &MasterKeySource,
    ) -> Result<Self, StoreError> {
        match address.to_str() {
            Some(MEMORY) => Self::over(Arc::new(memory::MemoryEngine::default()), retention, stay),
            Some(url) if url.contains("://") => {
                let message =
                    format!("no engine can open `{}`: use the path of a folder", crate::syntax::text::printable(url));
                Err(StoreError::new(Code::StoreFailed, message))
            }
            _ => Self::over(Arc::new(FolderEngine::open(address, stay, source)?), retention, stay),
        }
    }

    /// Opens a store for reading: nothing in its folder is changed, so a read-only mount is enough (D61). A store whose creation
    /// was interrupted is completed first, as [`Store::open`] does.
    pub fn open_to_read(address: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_encrypted_to_read(address, &MasterKeySource::Beside)
    }

    /// Opens a store as [`Store::open_to_read`] does, with a master key from elsewhere.
    pub fn open_encrypted_to_read(address: impl AsRef<Path>, source: &MasterKeySource) -> Result<Self, StoreError> {
        match FolderReader::open(address.as_ref(), source)? {
            Some(reader) => Self::over(Arc::new(reader), Retention::default(), Stay::Brief),
            None => Self::open_encrypted(address, Retention::default(), source),
        }
    }

    /// Returns whether a store exists at an address, so that a dry run does not create one. Fails if the folder cannot
    /// be read.
    pub fn exists(address: impl AsRef<Path>) -> Result<bool, StoreError> {
        FolderEngine::exists(address.as_ref())
    }

    /// Creates a store over an engine.
    pub fn on(engine: Arc<dyn Engine>, retention: Retention) -> Result<Self, StoreError> {
        Self::over(engine, retention, Stay::Long)
    }

    fn over(engine: Arc<dyn Engine>, retention: Retention, stay: Stay) -> Result<Self, StoreError> {
        let (keyring, state) = (engine.keyring(), engine.load()?);
        let root_secret = state.root_secret;
        let tip = state.batches.last().map_or(state.tip, Tip::after);
        let (snapshot, recent) = match stay {
            Stay::Long => ChangeWindow::restored(state, keyring.as_deref())?,
            // Nobody follows the revisions of a command.
            Stay::Brief => {
                let snapshot = Arc::new(codec::restore(state, keyring.as_deref())?);
                let recent = ChangeWindow::after(snapshot.revision);
                (snapshot, recent)
            }
        };
        engine.loaded();
        Ok(Self {
            engine,
            current: ArcSwap::new(Arc::clone(&snapshot)),
            queue: Queue::new(snapshot, tip),
            subscribers: Mutex::default(),
            recent,
            declared: DeclaredPlaces::new(MOST_PLACES),
            earlier_states: VersionedCache::new(MOST_STATES),
            retention,
            shares: Shares::new(&retention, tip.position),
            root_secret,
            keyring,
            digest_key: blake3::derive_key("edgewright 2026 history digest", &root_secret),
            checkpointing: Arc::default(),
            broken: AtomicBool::new(false),
            strained: AtomicBool::new(false),
            checkpoint: Mutex::default(),
            stay,
        })
    }

    /// Returns the current revision, without waiting for a writer or reading from disk.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Makes the next revision. On success it is durable and visible; on an error nothing has changed.
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

    /// Makes the next revision from Operations that `make` computes on the revision they apply to. Other writers wait
    /// meanwhile, so `make` must be quick.
    pub fn commit_with<E>(
        &self,
        attempt: Attempt,
        make: impl FnOnce(&Snapshot) -> Result<Vec<Operation>, E>,
    ) -> Result<Committed, Declined<E>> {
        self.commit_next(attempt, |current| make(current).map(NextState::Operations))
    }

    /// Returns a channel of all later revisions, in order.
    pub fn subscribe(&self) -> mpsc::Receiver<Revision> {
        self.subscribe_to(false)
    }

    /// Returns a channel of all later revisions that sources make, in order. Others do not wake who waits for it.
    pub(crate) fn subscribe_to_sources(&self) -> mpsc::Receiver<Revision> {
        self.subscribe_to(true)
    }

    fn subscribe_to(&self, only_sources: bool) -> mpsc::Receiver<Revision> {
        let (sender, receiver) = mpsc::channel();
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(Subscriber { sender, only_sources });
        receiver
    }

    /// Returns the revision after `known`, if it is in memory.
    pub(crate) fn next_revision(&self, known: u64) -> NextRevision {
        self.recent.next(known)
    }

    /// Returns a receiver that is told of every new revision.
    pub(crate) fn newest_revision(&self) -> watch::Receiver<u64> {
        self.recent.newest()
    }

    /// Waits at most `timeout` for a revision after `known`.
    pub(crate) fn wait_for_revision(&self, known: u64, timeout: Duration) {
        self.recent.wait(known, timeout);
    }

    /// Returns sentences about damage that was found when the store was opened, and that has cost nothing.
    pub fn warnings(&self) -> &[String] {
        self.engine.warnings()
    }

    /// Returns the file of the store's master key, if nobody was told of it yet.
    pub(crate) fn new_master_key(&self) -> Option<(&Path, NewMaster)> {
        self.keyring.as_ref()?.new_master()
    }

    /// Returns the random secret that was created with the store. Keys are derived from it (D36).
    pub fn root_secret(&self) -> [u8; 32] {
        self.root_secret
    }

    /// Checks the hash chain of all records that are kept.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        let mut verified = Verified::default();
        self.engine.walk(0, &mut |before, batch| verified.next(&before.hash, &batch))?;
        verified.finish()
    }

    /// Returns the engine's statistics.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// Fails if commits cannot succeed at present. After a failed one, tries whether the next would.
    pub fn readiness(&self) -> Result<(), StoreError> {
        self.health()?;
        if self.strained.load(Ordering::Acquire) {
            self.engine.probe()?;
            self.strained.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Returns the store on the disk, if the revision there is `revision`.
    pub(crate) fn on_disk(&self, revision: u64) -> Option<OnDisk> {
        let (on_disk, current) = self.engine.on_disk()?;
        (current == revision).then_some(on_disk)
    }

    /// Returns the store on the disk, for files beside it.
    pub(crate) fn beside(&self) -> Option<OnDisk> {
        self.engine.on_disk().map(|(on_disk, _)| on_disk)
    }

    /// Fails if the store can be read but not written until it is opened again.
    pub fn health(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::Acquire) {
            let message = "an earlier write failed; restart to read the store from disk";
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        self.engine.health()
    }
}

impl Drop for Store {
    /// Waits for a running checkpoint: the engine holds its lock until the checkpoint ends. A process that ends as it should
    /// leaves a state that is complete.
    fn drop(&mut self) {
        let thread = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        if !std::thread::panicking() {
            self.end();
        }
    }
}

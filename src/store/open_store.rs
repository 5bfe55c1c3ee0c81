//! An open store: the current Snapshot, and the only way to make the next one.

use std::convert::Infallible;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Instant;

use arc_swap::ArcSwap;

use super::attempt::Attempt;
use super::commit::batch::Tip;
use super::commit::codec;
use super::commit::header::{Retention, Verified};
use super::commit_queue::CommitQueue;
use super::copy_feed::CopyFeed;
use super::disk::existing_store;
use super::engine::{Engine, OnDisk, Outage, SidecarFiles, Statistics};
use super::error::{CommitError, Declined, StoreError};
use super::folder::{FolderEngine, FolderReader};
use super::history::change_window::ChangeWindow;
use super::history_quota::HistoryQuota;
use super::memory::MemoryEngine;
use super::postgres::{self, PostgresEngine};
use super::read_again::read_again;
use super::revision::Revision;
use super::seal::{Keyring, MasterKeySource, NewMaster, StoreId};
use super::session_kind::SessionKind;
use super::speculative::NextState;
use crate::cache::VersionedCache;
use crate::lock::Lock;
use crate::model::{Author, Code, Key, Operation, Snapshot};

/// The address of a store in memory, which ends with the process.
pub const MEMORY: &str = "memory:";

/// The most resources whose places of declaration are in memory.
const MOST_PLACES: usize = 10_000;
/// How many earlier states are kept: the pages of a list are requested one after another. They share all that has not
/// changed since.
const MOST_STATES: usize = 4;

/// Each resource with the source that was asked about, and the place of its declaration.
type DeclaredPlaces = VersionedCache<Key, (String, Option<String>)>;

/// Receives the revision at which secrets were forgotten. Returns false if it needs no more calls.
pub(crate) type ForgetSecrets = Box<dyn Fn(u64) -> bool + Send>;

/// The current Snapshot, and the only way to make the next one.
pub struct Store {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) current: ArcSwap<Snapshot>,
    pub(super) queue: CommitQueue,
    /// The position of the last durable commit, for those who must not wait for the queue.
    pub(super) position: AtomicU64,
    pub(super) subscribers: Lock<Vec<mpsc::Sender<Revision>>>,
    /// The newest revisions, for those who follow the store.
    pub(crate) change_window: ChangeWindow,
    pub(super) declared: DeclaredPlaces,
    /// The states that were restored last.
    pub(super) earlier_states: VersionedCache<u64, Arc<Snapshot>>,
    /// Caches of others that can have secrets of earlier states.
    secret_caches: Lock<Vec<ForgetSecrets>>,
    pub(super) retention: Retention,
    pub(super) quota: HistoryQuota,
    pub(super) root_secret: [u8; 32],
    /// The keys that encrypt secrets, unless the engine keeps them as they are.
    pub(super) keyring: Option<Arc<Keyring>>,
    /// Key of the digests in the history: without it, short secrets could be guessed from them.
    pub(super) digest_key: [u8; 32],
    pub(super) checkpointing: Arc<AtomicBool>,
    /// Whether the engine failed in a way after which its state is unknown.
    pub(super) broken: AtomicBool,
    /// Whether the last write failed in a way that may pass, such as a full disk.
    pub(super) last_write_failed: AtomicBool,
    pub(super) checkpoint: Lock<Option<JoinHandle<()>>>,
    pub(super) session: SessionKind,
    /// When this process has found that the store is at an earlier revision than before.
    pub(super) went_back: OnceLock<Instant>,
    /// The last moment at which this process is known to have had all of a shared store.
    pub(super) whole_at: Lock<Option<Instant>>,
    /// The commits for the local copy, if there is one.
    pub(super) copy: OnceLock<Arc<CopyFeed>>,
    warnings: Vec<String>,
}

impl Store {
    /// Opens or creates the store at an address: a folder, [`MEMORY`], or the `postgres://` URL of a database, which needs a master
    /// key ([`Store::open_encrypted`]).
    pub fn open(address: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_encrypted(address, Retention::default(), &MasterKeySource::Beside)
    }

    /// Opens a store as [`Store::open`] does, with another retention of history, or a master key from elsewhere (D96).
    pub fn open_encrypted(
        address: impl AsRef<Path>,
        retention: Retention,
        source: &MasterKeySource,
    ) -> Result<Self, StoreError> {
        Self::open_known(address.as_ref(), retention, source, None)
    }

    /// Opens a store as [`Store::open_encrypted`] does. Fails if this process has had one in the database open, and it is another
    /// one by now.
    pub(crate) fn open_known(
        address: &Path,
        retention: Retention,
        source: &MasterKeySource,
        known: Option<StoreId>,
    ) -> Result<Self, StoreError> {
        Self::open_for(address, retention, SessionKind::Long, source, known)
    }

    /// Opens a store for one command: a checkpoint that is due is written now, while the command does something else,
    /// and not when it ends.
    pub(crate) fn open_briefly(
        address: impl AsRef<Path>,
        retention: Retention,
        source: &MasterKeySource,
    ) -> Result<Self, StoreError> {
        let store = Self::open_for(address.as_ref(), retention, SessionKind::Brief, source, None)?;
        store.checkpoint_if_wanted(&mut store.queue.lock());
        Ok(store)
    }

    fn open_for(
        address: &Path,
        retention: Retention,
        session: SessionKind,
        source: &MasterKeySource,
        known: Option<StoreId>,
    ) -> Result<Self, StoreError> {
        if postgres::url_of(address).is_some() {
            let engine = PostgresEngine::open(address, session, source, known)?;
            return Self::load_from(Arc::new(engine), retention, session);
        }
        match address.to_str() {
            Some(MEMORY) => Self::load_from(Arc::new(MemoryEngine::default()), retention, session),
            _ => {
                postgres::check_scheme(address)?;
                Self::load_from(Arc::new(FolderEngine::open(address, session, source)?), retention, session)
            }
        }
    }

    /// Opens a store for reading: nothing in its folder is changed, so a read-only mount is enough (D61). A store whose creation
    /// was interrupted is completed first, as [`Store::open`] does.
    pub fn open_to_read(address: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_encrypted_to_read(address, &MasterKeySource::Beside)
    }

    /// Opens a store as [`Store::open_to_read`] does, with a master key from elsewhere.
    pub fn open_encrypted_to_read(address: impl AsRef<Path>, source: &MasterKeySource) -> Result<Self, StoreError> {
        let address = address.as_ref();
        let reader = match postgres::url_of(address) {
            Some(_) => PostgresEngine::open_to_read(address, SessionKind::Brief, source, None)?
                .map(|it| Arc::new(it) as Arc<dyn Engine>),
            None => FolderReader::open(address, source)?.map(|it| Arc::new(it) as Arc<dyn Engine>),
        };
        match reader {
            Some(reader) => Self::load_from(reader, Retention::default(), SessionKind::Brief),
            None => Self::open_encrypted(address, Retention::default(), source),
        }
    }

    /// Returns whether a store exists at an address, so that a dry run does not create one. Fails if the folder cannot
    /// be read.
    pub fn exists(address: impl AsRef<Path>) -> Result<bool, StoreError> {
        match postgres::url_of(address.as_ref()) {
            Some(_) => PostgresEngine::exists(address.as_ref()),
            None => FolderEngine::exists(address.as_ref()),
        }
    }

    /// Creates a store over an engine.
    pub fn with_engine(engine: Arc<dyn Engine>, retention: Retention) -> Result<Self, StoreError> {
        Self::load_from(engine, retention, SessionKind::Long)
    }

    pub(super) fn load_from(
        engine: Arc<dyn Engine>,
        retention: Retention,
        session: SessionKind,
    ) -> Result<Self, StoreError> {
        let mut state = engine.load()?;
        let (keyring, warnings) = (state.keyring.take(), std::mem::take(&mut state.warnings));
        let root_secret = state.root_secret;
        let tip = state.batches.last().map_or(state.tip, Tip::after);
        let (snapshot, change_window) = match session {
            SessionKind::Long => ChangeWindow::restored(state, keyring.as_deref())?,
            // Nobody follows the revisions of a command.
            SessionKind::Brief => {
                let snapshot = Arc::new(codec::restore(state, keyring.as_deref())?);
                let change_window = ChangeWindow::after(snapshot.revision);
                (snapshot, change_window)
            }
        };
        Ok(Self {
            engine,
            current: ArcSwap::new(Arc::clone(&snapshot)),
            queue: CommitQueue::new(snapshot, tip),
            position: AtomicU64::new(tip.position),
            subscribers: Lock::default(),
            change_window,
            declared: DeclaredPlaces::new(MOST_PLACES),
            earlier_states: VersionedCache::new(MOST_STATES),
            secret_caches: Lock::default(),
            retention,
            quota: HistoryQuota::new(&retention, tip.position),
            root_secret,
            keyring,
            digest_key: blake3::derive_key("edgewright 2026 history digest", &root_secret),
            checkpointing: Arc::default(),
            broken: AtomicBool::new(false),
            last_write_failed: AtomicBool::new(false),
            checkpoint: Lock::default(),
            session,
            went_back: OnceLock::new(),
            whole_at: Lock::default(),
            copy: OnceLock::new(),
            warnings,
        })
    }

    /// Returns the current revision, without waiting for a writer or reading from disk.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Makes the next revision from Operations on whatever is current. On success it is durable and visible; on an error nothing
    /// has changed.
    pub fn commit(&self, author: Author, operations: Vec<Operation>) -> Result<Arc<Snapshot>, CommitError> {
        self.commit_with(Attempt::new(author), |_| Ok::<_, Infallible>(operations)).map_err(|error| match error {
            Declined::Declined(never) => match never {},
            Declined::Commit(error) => error,
        })
    }

    /// Makes the next revision from Operations that `make` computes on the revision they apply to. Other writers wait
    /// meanwhile, so `make` must be quick.
    pub fn commit_with<E>(
        &self,
        attempt: Attempt,
        make: impl FnOnce(&Snapshot) -> Result<Vec<Operation>, E>,
    ) -> Result<Arc<Snapshot>, Declined<E>> {
        self.commit_next(attempt, |current| make(current).map(|operations| NextState::Operations(operations, None)))
    }

    /// Returns a channel of all later revisions, in order.
    pub fn subscribe(&self) -> mpsc::Receiver<Revision> {
        let (sender, receiver) = mpsc::channel();
        self.subscribers.lock().push(sender);
        receiver
    }

    /// Calls `forget` whenever secrets of earlier states are forgotten.
    pub(crate) fn when_secrets_are_forgotten(&self, forget: ForgetSecrets) {
        self.secret_caches.lock().push(forget);
    }

    /// Drops all that is cached of earlier states: it can have secrets whose data keys were destroyed.
    pub(super) fn forget_secrets(&self) {
        self.earlier_states.forget();
        let revision = self.snapshot().revision;
        self.secret_caches.lock().retain(|forget| forget(revision));
    }

    /// Returns sentences about damage that was found when the store was opened, and that has cost nothing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the file of the store's master key, if nobody was told of it yet.
    pub(crate) fn new_master_key(&self) -> Option<(&Path, NewMaster)> {
        self.keyring.as_ref()?.new_master()
    }

    /// Returns the random secret that was created with the store. Keys are derived from it (D36).
    pub fn root_secret(&self) -> [u8; 32] {
        self.root_secret
    }

    /// Returns the secrets for what lasts some hours, such as sessions: the first one for what begins now, and the others for what
    /// began before a new data key. A store without data keys has its root secret.
    pub(crate) fn passing_secrets(&self) -> Vec<[u8; 32]> {
        match &self.keyring {
            Some(keyring) => keyring.passing_secrets(),
            None => vec![self.root_secret],
        }
    }

    /// Checks the hash chain of all records that are kept.
    pub fn verify(&self) -> Result<Verified, StoreError> {
        read_again(|| {
            let mut verified = Verified::default();
            self.walk(0, &mut |before, batch| verified.next(&before.hash, &batch))?;
            verified.finish()
        })
    }

    /// Returns the position of the last durable commit, without waiting for a writer or reading from disk.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Returns the engine's statistics, which may read from disk.
    pub fn statistics(&self) -> Statistics {
        self.engine.statistics()
    }

    /// Fails if commits cannot succeed at present. After a failed one, tries whether the next would.
    pub fn readiness(&self) -> Result<(), StoreError> {
        self.health()?;
        if self.outage().is_some() || self.last_write_failed.load(Ordering::Acquire) {
            self.engine.probe()?;
            self.last_write_failed.store(false, Ordering::Release);
        }
        Ok(())
    }

    /// Returns why commits fail at present, if that is known without trying one.
    pub(crate) fn outage(&self) -> Option<Outage> {
        self.engine.outage()
    }

    /// Returns the store on the disk, if the revision there is `revision`.
    pub(crate) fn on_disk(&self, revision: u64) -> Option<OnDisk> {
        let (on_disk, current) = self.engine.on_disk()?;
        (current == revision).then_some(on_disk)
    }

    /// Returns the store on the disk, for files beside it.
    pub(crate) fn sidecar_location(&self) -> Option<OnDisk> {
        self.engine.on_disk().map(|(on_disk, _)| on_disk)
    }

    /// Returns where the files of others beside the store are, unless it is in memory.
    pub(crate) fn sidecars(&self) -> Option<Arc<dyn SidecarFiles>> {
        let in_folder = || self.sidecar_location().map(|folder| Arc::new(folder) as Arc<dyn SidecarFiles>);
        self.engine.sidecar_files().or_else(in_folder)
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

/// Returns whether an address has a store, or anything else that a new store must not replace. Fails if this cannot be read.
pub(crate) fn store_exists(address: &Path) -> Result<bool, StoreError> {
    match postgres::url_of(address) {
        Some(_) => PostgresEngine::exists(address),
        None => {
            postgres::check_scheme(address)?;
            existing_store::store_exists(address)
        }
    }
}

/// Returns whether an address is that of a database.
pub(crate) fn is_in_database(address: &Path) -> bool {
    postgres::url_of(address).is_some()
}

/// The address of a store as messages show it: without a password.
pub(crate) fn shown_address(address: &Path) -> String {
    postgres::shown(address)
}

impl Drop for Store {
    /// Waits for a running checkpoint: the engine holds its lock until the checkpoint ends. A process that ends as it should
    /// leaves a state that is complete.
    fn drop(&mut self) {
        let thread = self.checkpoint.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        if !std::thread::panicking() {
            self.end();
        }
    }
}

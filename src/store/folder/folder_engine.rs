//! The engine that writes to a folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::content::{describe_damage, read};
use super::creation::create;
use super::{fingerprint, format, interrupted_restore, key_copies, keys, local_mark};
use crate::files::fault;
use crate::lock::Lock;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::Retention;
use crate::store::database::history_reader::HistoryReader;
use crate::store::database::state::{self, Access, StateIdentity};
use crate::store::disk::files::{self, Part};
use crate::store::disk::{folder_lock, sidecar_files};
use crate::store::engine::{BatchEdit, Engine, History, OnDisk, State, StateRecords, Statistics};
use crate::store::error::{Doing, StoreError};
use crate::store::log::appender::LogAppender;
use crate::store::log::head::{self, Head, HeadFile};
use crate::store::log::{edit, parts};
use crate::store::maintenance::backup::Backup;
use crate::store::maintenance::backup_write;
use crate::store::maintenance::resealing::{NeededStates, Resealing};
use crate::store::seal::{Keyring, MasterKeySource, StoreId};
use crate::store::session_kind::SessionKind;

/// A checkpoint is due when the log after the state is longer than this and longer than the state.
const CHECKPOINT_BYTES: u64 = 8 << 20;
/// How much of the log before the state is read for readers that have not seen all of it.
const EARLIER_BYTES: u64 = 16 << 20;
/// How long a state of this many bytes takes to write, more or less.
const BYTES_IN_A_SECOND: u64 = 256 << 20;
/// Nobody notices a last checkpoint that takes less.
const UNNOTICED: Duration = Duration::from_millis(100);
/// A last checkpoint takes at most one of so many parts of the time that a process has run.
const PART_OF_A_RUN: u32 = 4;

/// An engine that writes to a folder. Only one process can have it open.
pub(crate) struct FolderEngine {
    folder: PathBuf,
    active_log: Lock<ActiveLog>,
    history: HistoryReader,
    /// The state that was read at the start, until it is loaded.
    opened: Lock<Option<State>>,
    /// The length of the state on the disk.
    state_bytes: AtomicU64,
    /// The length of the batches after it.
    since: AtomicU64,
    /// Whether the state on the disk was not the current one when the store was opened.
    behind: AtomicBool,
    started: Instant,
    broken: AtomicBool,
    id: StoreId,
    keyring: Arc<Keyring>,
    resealing: Resealing,
    session: SessionKind,
    /// Held while a checkpoint removes files, and while a backup opens them.
    removing: Lock<()>,
    _lock: Vec<File>,
}

struct ActiveLog {
    log_end: LogAppender,
    head: HeadFile,
    generation: u64,
    /// The generation of the newest state, or 0.
    state: u64,
    tip: Tip,
    /// The generation of the next checkpoint, and the last batch before it.
    rotated: Option<(u64, Tip)>,
}

impl ActiveLog {
    fn head(&self, store: StoreId) -> Head {
        let Tip { position, hash, .. } = self.tip;
        Head { position, generation: self.generation, state: self.state, hash, store }
    }
}

impl FolderEngine {
    /// Returns whether a folder contains a store. Fails if this cannot be read.
    pub(crate) fn exists(folder: &Path) -> Result<bool, StoreError> {
        format::check(folder)?;
        files::exists(&head::path(folder))
    }

    /// Opens the store in a folder. Creates it if the folder is missing or empty.
    pub(crate) fn open(folder: &Path, session: SessionKind, source: &MasterKeySource) -> Result<Self, StoreError> {
        interrupted_restore::check_complete(folder)?;
        if !Self::exists(folder)? && sidecar_files::holds_something_else(folder) {
            let message = format!("{} contains other files and is not a store", folder.display());
            return Err(StoreError::new(Code::StoreFormat, message).help("set --store to the folder of your store"));
        }
        local_mark::check_writable(folder)?;
        files::create_folder(folder)?;
        let lock = folder_lock::lock(folder)?;
        let created = match files::exists(&head::path(folder))? {
            true => None,
            false => Some(create(folder, source)?),
        };
        Self::open_locked(folder, session, source, created, lock)
    }

    /// Opens a local copy, whose data keys follow those of the store in the database.
    pub(crate) fn open_copy(folder: &Path, source: &MasterKeySource) -> Result<Self, StoreError> {
        let incomplete = || StoreError::new(Code::StoreFormat, format!("{} has no local copy", folder.display()));
        if local_mark::read(folder)?.is_none() {
            return Err(incomplete());
        }
        let lock = folder_lock::lock(folder)?;
        if !Self::exists(folder)? {
            return Err(incomplete());
        }
        let keyring = keys::open(folder, head::read_only(folder)?.store, source)?.following();
        Self::open_locked(folder, SessionKind::Long, source, Some(keyring), lock)
    }

    /// Opens a folder that is locked, with the keys of a store that was just created and those of a copy.
    fn open_locked(
        folder: &Path,
        session: SessionKind,
        source: &MasterKeySource,
        keyring: Option<Keyring>,
        lock: Vec<File>,
    ) -> Result<Self, StoreError> {
        let (head, acknowledged) = HeadFile::open(folder)?;
        let keyring = match keyring {
            Some(keyring) => keyring,
            None => keys::announcing(keys::open(folder, acknowledged.store, source)?, folder, source),
        };
        let keyring = Arc::new(keyring);
        let mut content = read(folder, acknowledged, &keyring, Access::Alone)?;
        if session == SessionKind::Long {
            content.state.earlier = parts::batches_before(folder, content.state.tip, EARLIER_BYTES)?;
        }
        content.state.warnings = key_copies::restore(folder, acknowledged.store);
        content.state.warnings.extend(content.damage.as_ref().map(describe_damage));
        content.state.keyring = Some(Arc::clone(&keyring));
        let log_end = LogAppender::open(Part::Log.path(folder, content.generation), content.end)?;
        let resealing = Resealing::new(content.key, Arc::clone(&keyring));
        let (generation, state, tip) = (content.generation, acknowledged.state, content.tip);
        let active = ActiveLog { log_end, head, generation, state, tip, rotated: None };
        let sync = active.head.handle().doing("open", &head::path(folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            history: HistoryReader::start(folder, tip, sync, session),
            session,
            state_bytes: AtomicU64::new(content.state_bytes),
            since: AtomicU64::new(content.since),
            behind: AtomicBool::new(content.since > 0 || content.damage.is_some()),
            started: Instant::now(),
            broken: AtomicBool::new(false),
            keyring,
            resealing,
            id: acknowledged.store,
            opened: Lock::new(Some(content.state)),
            active_log: Lock::new(active),
            removing: Lock::default(),
            _lock: lock,
        })
    }
}

impl Engine for FolderEngine {
    fn load(&self) -> Result<State, StoreError> {
        let loaded = || StoreError::new(Code::Internal, "the state of the store was loaded before");
        self.opened.lock().take().ok_or_else(loaded)
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let Some(last) = batches.last() else { return Ok(()) };
        self.health()?;
        let mut active = self.active_log.lock();
        if active.tip.position != after {
            let message = format!("the log is at record {}, not at {after}", active.tip.position);
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        let before = active.log_end.length();
        if let Err(error) = active.log_end.append(batches) {
            self.broken.fetch_or(active.log_end.is_unsure(), Ordering::Release);
            return Err(error);
        }
        active.tip = Tip::after(last);
        let (length, head) = (active.log_end.length() - before, active.head(self.id));
        // The batches are durable even if this write fails. The head only distinguishes damage from an interrupted
        // write.
        let _ = active.head.write(head);
        drop(active);
        self.since.fetch_add(length, Ordering::Relaxed);
        self.history.note(last.position);
        Ok(())
    }

    fn history(&self) -> &dyn History {
        &self.history
    }

    fn edit_history(&self, edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
        self.health()?;
        if self.session == SessionKind::Long {
            return Err(StoreError::new(Code::StoreFailed, "the index of the history is in use"));
        }
        let _removing = self.removing.lock();
        // The index has the texts and offsets of records. The next server rebuilds it.
        files::remove(&self.folder.join("index"))?;
        let end = self.active_log.lock().generation;
        edit::edit_log(&self.folder, end, edit)
    }

    fn probe(&self) -> Result<(), StoreError> {
        files::probe(&self.folder)
    }

    fn statistics(&self) -> Statistics {
        parts::statistics(&self.folder)
    }

    fn on_disk(&self) -> Option<(OnDisk, u64)> {
        // Nothing is appended meanwhile.
        let active = self.active_log.lock();
        Some((fingerprint::of_files(&self.folder, Some(self.keyring.digest_key())).ok()?, active.tip.revision))
    }

    fn backup(&self) -> Result<Backup, StoreError> {
        let (head, revision, parts) = {
            let _removing = self.removing.lock();
            let (head, revision, end) = {
                let active = self.active_log.lock();
                (active.head(self.id), active.tip.revision, active.log_end.length())
            };
            // What is appended meanwhile is after the end.
            let (head, parts) = backup_write::open(&self.folder, head, &self.keyring, end)?;
            (head, revision, parts)
        };
        Backup::new(&self.folder, head, revision, parts)
    }

    fn health(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::Acquire) {
            let message =
                format!("an earlier write to {} failed; restart to read the store from disk", self.folder.display());
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        Ok(())
    }

    fn wants_checkpoint(&self) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        let least = fault::checkpoint_bytes().unwrap_or(CHECKPOINT_BYTES);
        (since > least && since > self.state_bytes.load(Ordering::Relaxed))
            || self.behind.load(Ordering::Relaxed)
            || self.resealing.is_due()
    }

    fn wants_last_checkpoint(&self) -> bool {
        let since = self.since.load(Ordering::Relaxed);
        let bytes = self.state_bytes.load(Ordering::Relaxed) + since;
        let estimate = Duration::from_millis(bytes / (BYTES_IN_A_SECOND / 1_000));
        since > 0 && estimate <= UNNOTICED.max(self.started.elapsed() / PART_OF_A_RUN)
    }

    fn rotate(&self) -> Result<(), StoreError> {
        self.resealing.rotate_if_due()?;
        let mut active = self.active_log.lock();
        let generation = active.generation + 1;
        let path = Part::Log.path(&self.folder, generation);
        active.log_end = LogAppender::create(path.clone(), self.id, active.tip).inspect_err(|_| {
            // The log continues in the part before, and the next start would report one left at this path as damage.
            let left = files::exists(&path).unwrap_or(true);
            if left && files::remove(&path).and_then(|()| files::sync_folder(&path)).is_err() {
                self.broken.store(true, Ordering::Release);
            }
        })?;
        active.generation = generation;
        active.rotated = Some((generation, active.tip));
        Ok(())
    }

    fn checkpoint(&self, state: &mut StateRecords<'_>, retention: &Retention) -> Result<(), StoreError> {
        let _removing = self.removing.lock();
        let Some((generation, tip)) = self.active_log.lock().rotated.take() else { return Ok(()) };
        // Batches that are appended while the state is written count for the next checkpoint.
        let before = self.since.swap(0, Ordering::Relaxed);
        self.resealing.begin();
        let identity = StateIdentity { store: self.id, tip, key: self.keyring.current() };
        let written = state::write(&self.folder, generation, identity, state)
            .and_then(|bytes| self.name(generation).map(|previous| (bytes, previous)));
        let (bytes, previous) = written.inspect_err(|_| {
            self.since.fetch_add(before, Ordering::Relaxed);
        })?;
        self.resealing.written(identity.key);
        self.state_bytes.store(bytes, Ordering::Relaxed);
        self.behind.store(false, Ordering::Relaxed);
        let moment = self.resealing.moment();
        let mut has_aged = self.history.retain(retention, previous, tip, moment)?;
        let needed = NeededStates { newest: generation, previous };
        has_aged |= self.resealing.destroy_expired(&self.folder, needed, moment)?;
        // Without its beginning, or the keys for it, the log alone leads nowhere.
        let is_needed = parts::oldest(&self.folder).is_none_or(|oldest| oldest > 1) || self.keyring.has_destroyed();
        state::remove_others(&self.folder, &[if is_needed { previous } else { generation }, generation])?;
        if has_aged {
            self.resealing.note_removal();
        }
        Ok(())
    }
}

impl FolderEngine {
    /// The end of the log.
    pub(crate) fn tip(&self) -> Tip {
        self.active_log.lock().tip
    }

    /// The data keys.
    pub(crate) fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Names a state that was written in the head, durably. Returns the generation of the one before. The head acknowledges all
    /// of the log before the state: its last write may have failed.
    fn name(&self, state: u64) -> Result<u64, StoreError> {
        let (written, previous) = {
            let mut active = self.active_log.lock();
            let head = Head { state, ..active.head(self.id) };
            let written = active.head.write(head).and_then(|()| active.head.handle());
            let previous = active.state;
            if written.is_ok() {
                active.state = state;
            }
            (written, previous)
        };
        let synced = written.and_then(|head| fault::point("head.sync").and_then(|()| head.sync_all()));
        synced.doing("sync", &head::path(&self.folder))?;
        Ok(previous)
    }
}

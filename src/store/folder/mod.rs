//! The engine in a folder (D58). The source of truth is a base, which is the complete state after some batch, and
//! journals with all later batches. A checksum covers every byte of both. The index of the history, in sled, is derived
//! from them.
//!
//! | File | Content |
//! | --- | --- |
//! | `base.N` | the state at the start of generation N |
//! | `copy.N` | a copy of `base.N` |
//! | `journal.N` | the batches of generation N |
//! | `history.N` | the records of an older generation, with what undoes them instead of their changes |
//! | `kept` | where the history begins, once retention has removed older records |
//! | `head` | the position up to which the log was acknowledged |
//! | `keys`, `keys.copy` | the data keys, encrypted with the master key (D96), and a copy |
//! | `master.key` | the master key, if it can be nowhere else |
//! | `index/` | the location of each history record, in sled |
//! | `lock` | locked by a writer, shared by readers |
//! | `remembered` | dry runs that had nothing to do (D73), which are no part of the store |
//! | `parsed/`, `ties/` | caches of dry runs (D75, D73), which are no part of the store |
//! | `security.log`, `security.log.N` | security events (D99), which are no part of the store |
//! | `suspensions` | suspended sources (D84), which are no part of the store |
//! | `applied` | the commits that sources applied last (D89), which are no part of the store |
//! | `conditions` | since when sources are in their states (D83), which are no part of the store |
//! | `notifications`, `transitions` | what targets were notified of, and events that are due (D81), which are no part of the store |
//! | `restore.tmp/` | a backup that is being restored (D100) |

mod base;
mod beside;
mod catch_up;
mod collect;
mod content;
mod edit;
mod files;
mod fingerprint;
mod fold;
mod format;
mod frame;
mod given_up;
mod head;
mod index;
mod indexing;
mod inspect;
mod journal;
mod keys;
mod librarian;
mod log;
mod parallel_read;
mod reader;
mod readonly;
mod repair;
mod resealing;
mod restore;
mod rows;
mod salvage;
mod scan;
mod scratch;
mod twice;
mod unpack;
mod unwritten;

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use base::StoreId;
use bytes::Bytes;
use content::{FolderContent, content_base, read};
use files::Part;
use frame::BatchFrame;
use head::{Head, HeadFile};
use index::Index;
use journal::{AppendError, Journal};
use librarian::Librarian;
use reader::LogReader;
use resealing::Resealing;
use rows::Location;

pub(crate) use beside::{forget_manifests, forget_runs, read_beside, set_aside, write_beside};
pub(crate) use files::note_server;
pub(crate) use fingerprint::on_disk;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use frame::fuzzed as fuzzed_frame;
pub(crate) use inspect::index_agrees;
pub(crate) use keys::default_master_key;
pub(crate) use readonly::FolderReader;
pub(crate) use repair::Repair;
pub(crate) use restore::{PointInTime, restore};
pub(crate) use twice::damaged_copies;
pub(crate) use unpack::BackupFile;

use super::{
    Stay, StoreError,
    backup::Backup,
    changes::Changes,
    engine::{Batch, BatchEdit, Engine, OnDisk, Query, State, Statistics, Tip, UndoVisit, Visit},
    fault,
    history::Retention,
    mint,
    seal::{Keyring, MasterKeySource},
};
use crate::model::code::Code;

/// A checkpoint is due when the journals are longer than this and longer than the base.
const CHECKPOINT_BYTES: u64 = 8 << 20;
/// The first generation of a new store.
const FIRST_GENERATION: u64 = 1;

/// An engine that writes to a folder. Only one process can have it open.
pub(crate) struct FolderEngine {
    folder: PathBuf,
    writing: Mutex<Writing>,
    newer: Condvar,
    librarian: Librarian,
    /// The state that was read at the start, until it is loaded.
    opened: Mutex<Option<State>>,
    base_bytes: AtomicU64,
    since_base: AtomicU64,
    broken: AtomicBool,
    root_secret: [u8; 32],
    id: StoreId,
    keyring: Arc<Keyring>,
    resealing: Resealing,
    /// Damage that was found at the start.
    warnings: Vec<String>,
    stay: Stay,
    /// Held while a checkpoint moves and removes files, and while a backup opens them.
    folding: Mutex<()>,
    _lock: [File; 2],
}

struct Writing {
    journal: Journal,
    head: HeadFile,
    generation: u64,
    tip: Tip,
    /// The generation of the next checkpoint, and the last batch before it.
    rotated: Option<(u64, Tip)>,
}

impl FolderEngine {
    /// Returns whether a folder contains a store. Fails if this cannot be read.
    pub(crate) fn exists(folder: &Path) -> Result<bool, StoreError> {
        format::check(folder)?;
        files::exists(&head::path(folder))
    }

    /// Opens the store in a folder. Creates it if the folder is missing or empty.
    pub(crate) fn open(folder: &Path, stay: Stay, source: &MasterKeySource) -> Result<Self, StoreError> {
        restore::check_complete(folder)?;
        if !Self::exists(folder)? && beside::holds_something_else(folder) {
            let message = format!("{} contains other files and is not a store", folder.display());
            return Err(StoreError::new(Code::StoreFormat, message));
        }
        files::create_folder(folder)?;
        let lock = files::lock(folder)?;
        let created = match files::exists(&head::path(folder))? {
            true => None,
            false => Some(create(folder, source)?),
        };
        let (head, acknowledged) = HeadFile::open(folder)?;
        let keyring = match created {
            Some(keyring) => keyring,
            None => keys::announcing(keys::open(folder, acknowledged.store, source)?, folder, source),
        };
        let mut content = read(folder, acknowledged, &keyring)?;
        let warnings = twice::restore(folder, acknowledged.store, content.damage.take());
        let journal = Journal::open(Part::Journal.path(folder, content.generation), content.end)?;
        let tip = content.state.batches.last().map_or(content.state.tip, Tip::after);
        let base = content_base(folder)?;
        let resealing = Resealing::new(content.base_key, keyring.known_time());
        let writing = Writing { journal, head, generation: content.generation, tip, rotated: None };
        let sync = writing.head.handle().map_err(|error| StoreError::io("open", &head::path(folder), &error))?;
        Ok(Self {
            folder: folder.to_owned(),
            librarian: Librarian::start(folder, tip, sync, stay),
            stay,
            newer: Condvar::new(),
            base_bytes: AtomicU64::new(fs::metadata(Part::Base.path(folder, base)).map_or(0, |file| file.len())),
            since_base: AtomicU64::new(content.since_base),
            broken: AtomicBool::new(false),
            root_secret: content.state.root_secret,
            keyring: Arc::new(keyring),
            resealing,
            warnings,
            id: base::id_of(&content.state.root_secret),
            opened: Mutex::new(Some(content.state)),
            writing: Mutex::new(writing),
            folding: Mutex::default(),
            _lock: lock,
        })
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for FolderEngine {
    fn load(&self) -> Result<State, StoreError> {
        if let Some(state) = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Ok(state);
        }
        let writing = self.writing();
        let (position, hash) = (writing.tip.position, writing.tip.hash);
        let head = Head { position, generation: writing.generation, hash, store: self.id };
        Ok(read(&self.folder, head, &self.keyring)?.state)
    }

    fn loaded(&self) {
        self.librarian.begin();
    }

    fn keyring(&self) -> Option<Arc<Keyring>> {
        Some(Arc::clone(&self.keyring))
    }

    fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let Some(last) = batches.last() else { return Ok(()) };
        self.health()?;
        let frames: Vec<BatchFrame<'_>> = batches.iter().map(BatchFrame::new).collect();
        let mut writing = self.writing();
        if writing.tip.position != after {
            let message = format!("the log is at record {}, not at {after}", writing.tip.position);
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        let mut offset = writing.journal.length();
        match writing.journal.append(&frames) {
            Ok(()) => {}
            Err(AppendError::Undone(error)) => return Err(error),
            Err(AppendError::Unsure(error)) => {
                self.broken.store(true, Ordering::Release);
                return Err(error);
            }
        }
        writing.tip = Tip::after(last);
        let head = Head { position: last.position, generation: writing.generation, hash: last.hash, store: self.id };
        // The batches are durable even if this write fails. The head only distinguishes damage from an interrupted
        // write.
        let _ = writing.head.write(head);
        let generation = writing.generation;
        drop(writing);
        self.newer.notify_all();
        self.since_base.fetch_add(frames.iter().map(BatchFrame::length).sum(), Ordering::Relaxed);
        let located = batches.iter().zip(&frames).map(|(batch, frame)| {
            let location = Location { part: Part::Journal, generation, offset, length: frame.length() };
            offset += location.length;
            // The index does not use the changes, which are most of a batch.
            let Batch { position, revision, next_order, hash, .. } = *batch;
            let record = batch.record.clone();
            (location, Batch { position, revision, next_order, record, hash, changes: Changes::default() })
        });
        self.librarian.add(located.collect());
        Ok(())
    }

    fn changes_since(&self, position: u64) -> Result<Option<Vec<Batch>>, StoreError> {
        let upto = self.writing().tip.position;
        log::changes_since(&self.folder, position, upto)
    }

    fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Bytes>, StoreError> {
        if self.stay == Stay::Brief {
            return log::find(&self.folder, query, before, limit);
        }
        let position = self.writing().tip.position;
        match self.librarian.find(query, before, limit, position) {
            // For example because the disk was full. The log has everything, and takes longer.
            Err(_) if self.librarian.has_failed() => {
                log::find(&self.folder, query, before.min(position.saturating_add(1)), limit)
            }
            found => found,
        }
    }

    fn positions(&self, query: &Query, before: u64, limit: usize) -> Result<Option<Vec<u64>>, StoreError> {
        if self.stay == Stay::Brief {
            return Ok(None);
        }
        let position = self.writing().tip.position;
        // What the index cannot tell, `history` reads.
        Ok(self.librarian.positions(query, before, limit, position).ok())
    }

    fn beginning(&self, position: u64) -> Result<Option<(u64, Bytes)>, StoreError> {
        if self.stay == Stay::Brief {
            return Ok(None);
        }
        let upto = self.writing().tip.position;
        // Whoever needs the record reads it as a whole.
        Ok(self.librarian.beginning(position, upto).unwrap_or_default())
    }

    fn finds_by_resource(&self) -> bool {
        self.stay == Stay::Long
    }

    fn declared_at(&self, path: &str, source: &str) -> Result<Option<String>, StoreError> {
        if self.stay == Stay::Brief {
            return Ok(None);
        }
        let position = self.writing().tip.position;
        match self.librarian.declared_at(path, source, position) {
            Err(_) if self.librarian.has_failed() => Ok(None),
            found => found,
        }
    }

    fn walk(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let upto = self.writing().tip.position;
        log::walk(&self.folder, upto, visit)
    }

    fn undo_from(&self, revision: u64, visit: &mut UndoVisit<'_>) -> Result<(), StoreError> {
        let upto = self.writing().tip.position;
        log::undo_from(&self.folder, revision, upto, visit)
    }

    fn edit_history(&self, edit: &mut BatchEdit<'_>) -> Result<(), StoreError> {
        self.health()?;
        if self.stay == Stay::Long {
            return Err(StoreError::new(Code::StoreFailed, "the index of the history is in use"));
        }
        let _folding = self.folding.lock().unwrap_or_else(PoisonError::into_inner);
        // It has texts of records, and where each begins. The next server builds it again.
        Index::remove(&self.folder.join("index"))?;
        edit::edit_history(&self.folder, edit)
    }

    fn probe(&self) -> Result<(), StoreError> {
        files::probe(&self.folder)
    }

    fn wait_for_newer(&self, position: u64, timeout: Duration) -> u64 {
        let waited = self.newer.wait_timeout_while(self.writing(), timeout, |writing| writing.tip.position <= position);
        waited.unwrap_or_else(PoisonError::into_inner).0.tip.position
    }

    fn statistics(&self) -> Statistics {
        log::statistics(&self.folder, self.writing().tip.position)
    }

    fn on_disk(&self) -> Option<(OnDisk, u64)> {
        // Nothing is appended meanwhile.
        let writing = self.writing();
        Some((fingerprint::of_files(&self.folder, Some(self.keyring.digest_key())).ok()?, writing.tip.revision))
    }

    fn backup(&self) -> Result<Backup, StoreError> {
        let (of, parts) = {
            let _folding = self.folding.lock().unwrap_or_else(PoisonError::into_inner);
            // Only a checkpoint replaces the base, so commits do not wait until it is verified.
            let base = base::intact(&self.folder)?;
            let writing = self.writing();
            let last = (writing.generation, writing.journal.length());
            collect::open(&self.folder, base, (self.id, writing.tip), last)?
        };
        Backup::new(&self.folder, &of, parts)
    }

    fn health(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::Acquire) {
            let message =
                format!("an earlier write to {} failed; restart to read what is on the disk", self.folder.display());
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        Ok(())
    }

    fn wants_checkpoint(&self) -> bool {
        let since = self.since_base.load(Ordering::Relaxed);
        let least = fault::checkpoint_bytes().unwrap_or(CHECKPOINT_BYTES);
        if since > least && since > self.base_bytes.load(Ordering::Relaxed) {
            return true;
        }
        self.resealing.is_due(&self.keyring)
    }

    fn rotate(&self) -> Result<(), StoreError> {
        let now = self.resealing.moment(&self.keyring).now;
        if self.keyring.is_due(now) {
            self.keyring.rotate(now)?;
        }
        let mut writing = self.writing();
        let generation = writing.generation + 1;
        let path = Part::Journal.path(&self.folder, generation);
        writing.journal = Journal::create(path.clone(), self.id, writing.tip).inspect_err(|_| {
            // The log continues in the old journal, and the next start would report a journal left at this path as
            // damage.
            let left = files::exists(&path).unwrap_or(true);
            if left && files::remove(&path).and_then(|()| files::sync_folder(&path)).is_err() {
                self.broken.store(true, Ordering::Release);
            }
        })?;
        writing.generation = generation;
        writing.rotated = Some((generation, writing.tip));
        Ok(())
    }

    fn checkpoint(
        &self,
        state: &mut dyn Iterator<Item = (String, Vec<u8>)>,
        retention: &Retention,
    ) -> Result<(), StoreError> {
        let _folding = self.folding.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((generation, tip)) = self.writing().rotated.take() else { return Ok(()) };
        // A base is never ahead of the head, or it would look like one of another store. The last write of the head may
        // have failed, so it is written again.
        let written = {
            let mut writing = self.writing();
            let Writing { tip, generation, .. } = *writing;
            let head = Head { position: tip.position, generation, hash: tip.hash, store: self.id };
            writing.head.write(head).and_then(|()| writing.head.handle())
        };
        let synced = written.and_then(|head| fault::point("head.sync").and_then(|()| head.sync_all()));
        synced.map_err(|error| StoreError::io("sync", &head::path(&self.folder), &error))?;
        // Batches that are appended while the base is written count for the next checkpoint.
        self.since_base.store(0, Ordering::Relaxed);
        self.resealing.begin();
        let header = base::Header::new(tip, &self.root_secret, &self.keyring)?;
        base::write(&self.folder, generation, &header, state)?;
        self.resealing.written(header.key());
        let written = fs::metadata(Part::Base.path(&self.folder, generation));
        self.base_bytes.store(written.map_or(0, |file| file.len()), Ordering::Relaxed);
        self.librarian.fold(generation)?;
        base::remove_before(&self.folder, generation)?;
        let moment = self.resealing.moment(&self.keyring);
        let mut has_aged = self.librarian.retain(retention, tip, moment)?;
        has_aged |= self.resealing.destroy_expired(&self.folder, generation, &self.keyring, moment)?;
        if has_aged {
            self.resealing.note_removal(&self.keyring);
        }
        Ok(())
    }
}

/// Creates an empty store. The head comes last: a folder without one was never a store.
fn create(folder: &Path, source: &MasterKeySource) -> Result<Keyring, StoreError> {
    let mut used = base::generations(folder)?.iter().any(|generation| *generation != FIRST_GENERATION);
    for (part, generation) in log::parts(folder)? {
        used |= part == Part::History || generation != FIRST_GENERATION;
        // A journal that cannot be read may have records, so it must not be replaced.
        let mut reader = LogReader::open(&part.path(folder, generation), false)?;
        used |= reader.batch()?.is_some() || reader.rest.is_some();
    }
    if used {
        return Err(StoreError::corrupt(&head::path(folder), "the file is missing"));
    }
    let root_secret = mint::random_secret();
    let store = base::id_of(&root_secret);
    let keyring = keys::create(folder, store, source)?;
    let header = base::Header::new(Tip::default(), &root_secret, &keyring)?;
    base::write(folder, FIRST_GENERATION, &header, &mut std::iter::empty())?;
    Journal::create(Part::Journal.path(folder, FIRST_GENERATION), store, Tip::default())?;
    HeadFile::create(folder, Head { position: 0, generation: FIRST_GENERATION, hash: [0; 32], store })?;
    Ok(keyring)
}

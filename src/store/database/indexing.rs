//! The thread behind the commits: it follows the log, adds what is new to the index, and syncs the head in a pause.
//!
//! The log itself is the queue. The thread knows up to where the log is durable, and reads on from where the index ends: in a
//! pause after commits, at once if a query waits, and when a store is opened, so that a crash needs nothing of its own.
//! However far the index is behind, one commit and some thousand rows are in memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, PoisonError};
use std::time::Duration;

use super::index::{Index, Location, RowBytes, rows_of};
use crate::files::fault;
use crate::lock::Lock;
use crate::store::commit::batch::Tip;
use crate::store::disk::files::{self, Part};
use crate::store::error::{Doing, StoreError};
use crate::store::log::reader::{LogReader, ReadBatch, header_at};
use crate::store::log::{appender, parts};
use crate::store::session_kind::SessionKind;

/// The time without a commit after which the head is synced and the index is updated.
const PAUSE: Duration = Duration::from_millis(20);
/// While commits go on without a pause, so many are indexed at once.
const MANY_COMMITS: u64 = 20_000;
/// The rows from which on the index is written.
const MANY_ROWS: usize = 4_000;

/// State shared by the thread, the commits and the queries.
pub(super) struct Shared {
    pub progress: Lock<Progress>,
    /// Notified when the progress changes.
    pub moved: Condvar,
}

/// How far the log and the index have come.
#[derive(Default)]
pub(super) struct Progress {
    /// Whether the thread ends once the index has everything.
    is_ending: bool,
    /// The last durable commit.
    durable: u64,
    /// The last commit that the head on the disk acknowledges.
    synced: u64,
    /// The last commit in the index.
    pub indexed: u64,
    /// The last commit that a query waits for.
    pub wanted: u64,
    /// The open index.
    pub index: Option<Arc<Index>>,
    /// Whether there is no index until the next start.
    pub is_given_up: bool,
}

impl Shared {
    /// Starts at the end of a log. There is no index for a process that ends soon.
    pub(super) fn new(position: u64, session: SessionKind) -> Self {
        let is_given_up = session == SessionKind::Brief;
        let progress = Progress { durable: position, synced: position, is_given_up, ..Progress::default() };
        Self { progress: Lock::new(progress), moved: Condvar::new() }
    }

    /// Changes the progress, and wakes those who wait for it.
    fn set(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress.lock());
        self.moved.notify_all();
    }

    /// Lets the thread end.
    pub(super) fn end(&self) {
        self.set(|progress| progress.is_ending = true);
    }

    /// Notes that the log is durable up to a commit.
    pub(super) fn note(&self, position: u64) {
        let mut progress = self.progress.lock();
        // Otherwise, the thread gathers commits, and need not wake up for each.
        if progress.durable <= progress.synced {
            self.moved.notify_all();
        }
        progress.durable = progress.durable.max(position);
    }

    /// Gives the index up until the next start: the log has everything.
    pub(super) fn give_up(&self, error: &StoreError) {
        self.set(|progress| {
            if !progress.is_given_up {
                tracing::warn!(code = %error.code, "{error}");
            }
            (progress.index, progress.is_given_up) = (None, true);
        });
    }
}

/// Follows the log from `tip` on until it is told to end. Adds what is new to the index unless the process ends soon: the
/// next one that stays does so. Syncs `head` when no commit arrives.
pub(super) fn follow(folder: &Path, tip: Tip, head: &File, session: SessionKind, shared: &Shared) {
    let mut indexing = match session {
        SessionKind::Long => Indexing::open(folder, tip, shared).inspect_err(|error| shared.give_up(error)).ok(),
        SessionKind::Brief => None,
    };
    loop {
        let is_idle = |progress: &mut Progress| progress.durable <= progress.synced && !progress.is_ending;
        let waited = shared.moved.wait_while(shared.progress.lock(), is_idle);
        let progress = waited.unwrap_or_else(PoisonError::into_inner);
        let newest = progress.durable;
        let is_asked = |progress: &Progress| !progress.is_given_up && progress.wanted > progress.indexed;
        let is_unasked = |progress: &mut Progress| !is_asked(progress) && !progress.is_ending;
        let waited = shared.moved.wait_timeout_while(progress, PAUSE, is_unasked);
        let (progress, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let (durable, is_ending, is_given_up) = (progress.durable, progress.is_ending, progress.is_given_up);
        let is_pause = is_ending || (waited.timed_out() && durable == newest);
        let is_due = is_pause || is_asked(&progress) || durable - progress.indexed >= MANY_COMMITS;
        drop(progress);
        indexing = indexing.filter(|_| !is_given_up);
        if let Some(indexed) = indexing.as_mut().filter(|_| is_due)
            && let Err(error) = indexed.read_to(durable)
        {
            // The next start continues where the index ends, so nothing may be added after a gap.
            shared.give_up(&error);
        }
        // A commit does not wait for this sync as well.
        if is_pause {
            let _ = fault::point("head.sync").and_then(|()| head.sync_data());
            shared.progress.lock().synced = durable;
        }
        if is_ending {
            break;
        }
    }
    if let Some(indexing) = indexing {
        indexing.index.flush();
    }
}

/// The index, and how far the log was read for it.
struct Indexing<'s> {
    folder: &'s Path,
    shared: &'s Shared,
    index: Arc<Index>,
    /// The generation of the part that is being read.
    generation: u64,
    /// The last commit that was read.
    tip: Tip,
    /// The end of this commit in the part.
    end: u64,
}

impl<'s> Indexing<'s> {
    /// Opens the index and adds what the log has up to `tip`. Makes an index anew that cannot be used.
    fn open(folder: &'s Path, tip: Tip, shared: &'s Shared) -> Result<Self, StoreError> {
        let path = folder.join("index");
        let missing = || StoreError::corrupt(folder, "its log is missing");
        let first = Part::Log.generations(folder)?.first().copied().ok_or_else(missing)?;
        let start = LogReader::open_headers(&Part::Log.path(folder, first))?.start;
        parts::check_begin(folder, start)?;
        let resumed = Self::resume(folder, &path, start, tip, shared).ok().flatten();
        let resumed = resumed.and_then(|mut indexing| indexing.read_to(tip.position).is_ok().then_some(indexing));
        let indexing = match resumed {
            Some(indexing) => indexing,
            None => {
                files::remove(&path)?;
                let (index, end) = (Arc::new(Index::open(&path)?), appender::HEAD as u64);
                let mut indexing = Self { folder, shared, index, generation: first, tip: start, end };
                indexing.read_to(tip.position)?;
                indexing
            }
        };
        let index = Arc::clone(&indexing.index);
        shared.set(|progress| (progress.index, progress.indexed) = (Some(index), tip.position));
        Ok(indexing)
    }

    /// Opens the index if it is of this log, which begins at `start`: it ends with a commit of it, and has all before that.
    fn resume(
        folder: &'s Path,
        path: &Path,
        start: Tip,
        tip: Tip,
        shared: &'s Shared,
    ) -> Result<Option<Self>, StoreError> {
        let index = Index::open(path)?;
        let Some((position, hash)) = index.end()?.filter(|(position, _)| *position <= tip.position) else {
            return Ok(None);
        };
        let Some(Location { generation, offset, length }) = index.locate(position)? else { return Ok(None) };
        let part = Part::Log.path(folder, generation);
        let file = files::open(&part, File::options().read(true)).doing("read", &part)?;
        let last = header_at(&file, offset).doing("read", &part)?.map(|(batch, _)| Tip::after(&batch));
        let Some(last) = last.filter(|last| (last.position, last.hash) == (position, hash)) else { return Ok(None) };
        let oldest = index.oldest()?.unwrap_or(u64::MAX);
        if oldest <= start.position {
            // A crash has lost that these were removed.
            index.forget(start.position + 1)?;
        }
        let indexing = Self { folder, shared, index: Arc::new(index), generation, tip: last, end: offset + length };
        Ok(Some(indexing).filter(|_| oldest <= start.position + 1))
    }

    /// Adds what the log has up to a position.
    fn read_to(&mut self, position: u64) -> Result<(), StoreError> {
        while self.tip.position < position {
            let path = self.part(self.generation);
            // The retention removes a part only when the index has all of it.
            if !files::exists(&path)? {
                self.enter_next_part()?;
                continue;
            }
            let mut reader = LogReader::open_after(&path, self.tip, self.end)?;
            let mut rows = Vec::new();
            while reader.tip.position < position
                && let Some(ReadBatch { offset, length, batch }) = reader.batch()?
            {
                rows.extend(rows_of(Location { generation: self.generation, offset, length }, &batch));
                if rows.len() >= MANY_ROWS {
                    self.add(std::mem::take(&mut rows), &reader)?;
                }
            }
            self.add(rows, &reader)?;
            if reader.tail.is_some() && self.tip.position < position {
                return Err(reader.unreadable());
            }
            if self.tip.position < position {
                self.enter_next_part()?;
            }
        }
        Ok(())
    }

    /// Adds the rows of what was read.
    fn add(&mut self, rows: Vec<RowBytes>, reader: &LogReader) -> Result<(), StoreError> {
        if !rows.is_empty() {
            self.index.add(rows, reader.tip)?;
            (self.tip, self.end) = (reader.tip, reader.end);
            self.shared.set(|progress| progress.indexed = reader.tip.position);
        }
        Ok(())
    }

    fn part(&self, generation: u64) -> PathBuf {
        Part::Log.path(self.folder, generation)
    }

    /// Goes on at the start of the next part, which must follow what was read.
    fn enter_next_part(&mut self) -> Result<(), StoreError> {
        let after = self.tip.position;
        let missing = || StoreError::corrupt(self.folder, format!("the history after record {after} is missing"));
        let next = Part::Log.generations(self.folder)?.into_iter().find(|next| *next > self.generation);
        let next = next.ok_or_else(missing)?;
        let start = LogReader::open_headers(&self.part(next))?.start;
        if !start.is_same(&self.tip) {
            return Err(missing());
        }
        (self.generation, self.end) = (next, appender::HEAD as u64);
        Ok(())
    }
}

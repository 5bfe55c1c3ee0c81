//! Answers queries about the history: from the index, which another thread updates, and from the log.
//!
//! A query says up to which commit it must know everything, waits until the index has that, and reads in the log what the
//! rows lead to. The thread that follows the log is woken for it, so a query right after a commit waits for one write of the
//! index, and commits for none. If the index fails, it is given up until the next start, and queries go to the log.
//!
//! Retention is here, too, because the index has to go first: it must never lead to a file that is missing. Whole parts of
//! the log are removed, from the oldest on, while they exceed a limit, and only those before the state from which the log
//! leads to the present. `kept` is written before: from then on, a log that begins later is complete and not damaged. Because
//! of their age, at most a quarter of the records goes at once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::commit_files::CommitFiles;
use super::index::Index;
use super::indexing::{Progress, Shared, follow};
use crate::background::lower_priority;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::entries::CommitEntries;
use crate::store::commit::header::{CommitHeader, Retention};
use crate::store::disk::files::{self, Part};
use crate::store::engine::{BatchVisit, History, Query, ResourceHistoryQuery, ResourceHistoryVisit};
use crate::store::error::StoreError;
use crate::store::log::parts;
use crate::store::log::reader::LogReader;
use crate::store::log::search::LogSearch;
use crate::store::read_again::read_again;
use crate::store::session_kind::SessionKind;
use crate::store::trusted_time::{REMOVAL, TrustedMoment, most_at_once};

/// The time that a query waits for the index to be opened and updated.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Answers queries about the history.
pub(crate) struct HistoryReader {
    folder: PathBuf,
    log: LogSearch,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Reads a part of the log that is no longer written to its end. Returns the time of its last batch, too, if it has one.
fn read_to_end(path: &Path) -> Result<(LogReader, Option<Timestamp>), StoreError> {
    let mut history = LogReader::open_headers(path)?;
    let mut last = None;
    while let Some(framed) = history.batch()? {
        last = Some(framed.batch.header);
    }
    if history.tail.is_some() {
        return Err(history.unreadable());
    }
    let at = last.map(|header| CommitHeader::from_bytes(&header)).transpose()?.map(|header| header.at);
    Ok((history, at))
}

impl HistoryReader {
    /// Opens the index in the background and follows the log after `tip`, unless the process ends soon: the next one that
    /// stays adds what is missing. Syncs `head` when no commit arrives.
    pub(crate) fn start(folder: &Path, tip: Tip, head: File, session: SessionKind) -> Self {
        let shared = Arc::new(Shared::new(tip.position, session));
        let (own, path) = (Arc::clone(&shared), folder.to_owned());
        let thread = std::thread::Builder::new().name("history".into()).spawn(move || {
            lower_priority();
            follow(&path, tip, &head, session, &own);
        });
        if let Err(error) = &thread {
            shared.give_up(&StoreError::io("start the history thread of", folder, error));
        }
        Self { folder: folder.to_owned(), log: LogSearch::new(folder), shared, thread: thread.ok() }
    }

    /// Notes that the log is durable up to a commit.
    pub(crate) fn note(&self, position: u64) {
        self.shared.note(position);
    }

    /// Asks the index, once it has everything up to a position. Asks the log in a command, and if the index has failed, for example
    /// because the disk was full: it has everything, and takes longer.
    fn indexed<T>(
        &self,
        upto: u64,
        index: impl FnOnce(&Index) -> Result<T, StoreError>,
        log: impl FnOnce(&LogSearch) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(open) = self.index(upto)? else { return log(&self.log) };
        match index(&open) {
            Err(_) if self.shared.progress.lock().is_given_up => log(&self.log),
            found => found,
        }
    }

    /// Passes what was read in the index. If that failed, it is given up: the next start makes the index good.
    fn checked<R>(&self, read: Result<R, StoreError>) -> Result<R, StoreError> {
        read.inspect_err(|error| self.shared.give_up(error))
    }

    /// Waits until the index is open and has everything up to a position. Returns none if there is none until the next start.
    fn index(&self, upto: u64) -> Result<Option<Arc<Index>>, StoreError> {
        let mut progress = self.shared.progress.lock();
        if !progress.is_given_up && progress.wanted < upto {
            progress.wanted = upto;
            self.shared.moved.notify_all();
        }
        let is_behind = |progress: &Progress| progress.index.is_none() || progress.indexed < upto;
        let waits = |progress: &mut Progress| !progress.is_given_up && is_behind(progress);
        let waited = self.shared.moved.wait_timeout_while(progress, TIMEOUT, waits);
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &progress.index {
            _ if progress.is_given_up => Ok(None),
            Some(index) if !is_behind(&progress) => Ok(Some(Arc::clone(index))),
            _ => Err(StoreError::new(Code::StoreFailed, "the history index is still being built; try again later")),
        }
    }

    /// Drops the parts of the log that exceed the retention, of those before a generation. Because of their age, only a part of
    /// the records goes at once, or the oldest file. Returns whether a file went because of its age.
    pub(crate) fn retain(
        &self,
        retention: &Retention,
        end: u64,
        tip: Tip,
        moment: TrustedMoment,
    ) -> Result<bool, StoreError> {
        let parts: Vec<u64> =
            Part::Log.generations(&self.folder)?.into_iter().filter(|generation| *generation < end).collect();
        let size = |generation: u64| fs::metadata(Part::Log.path(&self.folder, generation)).map_or(0, |it| it.len());
        let mut total: u64 = parts.iter().map(|generation| size(*generation)).sum();
        let (mut first, mut last, mut until, mut dropped) = (None, None, None, Vec::new());
        let mut has_aged = false;
        for (number, generation) in parts.iter().enumerate() {
            // What is damaged stays, and so does what follows it.
            let Ok((end, at)) = read_to_end(&Part::Log.path(&self.folder, *generation)) else { break };
            let first = *first.get_or_insert(end.start.position);
            let exceeds = tip.position - end.tip.position >= retention.records || total > retention.bytes;
            // Removing a file without a record leaves no gap.
            if !exceeds && at.is_some() {
                let most = most_at_once(tip.position - first);
                let is_part = end.start.position == first || end.tip.position - first <= most;
                let later = parts.get(number..).unwrap_or_default();
                if !is_part || !self.is_old(later, retention.age, moment)? {
                    break;
                }
                has_aged = true;
            }
            total -= size(*generation);
            until = at.or(until);
            last = Some((end.store, end.tip));
            dropped.push(Part::Log.path(&self.folder, *generation));
        }
        let (Some(first), Some((store, last))) = (first, last) else { return Ok(false) };
        parts::keep_from(&self.folder, store, last)?;
        // The index goes first, so that it never refers to a missing file, and has read what goes.
        if let Ok(Some(index)) = self.index(last.position) {
            index.forget(last.position + 1)?;
        }
        dropped.iter().try_for_each(|path| files::remove(path))?;
        if last.position > first {
            let why = if has_aged { "they are too old" } else { "it is over its limit of records or bytes" };
            let until = until.map(|at| format!(", the last of {at}")).unwrap_or_default();
            let (from, to, records) = (first + 1, last.position, last.position - first);
            tracing::info!(target: REMOVAL, records, "Removed records {from} to {to} from the history{until}: {why}.");
        }
        Ok(has_aged)
    }

    /// Whether the first of some parts of the log is old. One that ends with a time that is still to come was written while the
    /// clock was wrong: it is as old as the files after it.
    fn is_old(&self, generations: &[u64], age: Duration, moment: TrustedMoment) -> Result<bool, StoreError> {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        for generation in generations {
            let (_, at) = read_to_end(&Part::Log.path(&self.folder, *generation))?;
            if let Some(at) = at.filter(|at| *at <= moment.now) {
                return Ok(moment.ages.duration_since(at) > age);
            }
        }
        Ok(false)
    }
}

impl History for HistoryReader {
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        let find = |index: &Index| -> Result<Vec<CommitHeader>, StoreError> {
            // The retention may drop commits meanwhile; the next attempt then uses the updated index.
            read_again(|| {
                let mut files = CommitFiles::new(&self.folder);
                let rows = self.checked(index.find(query, before, limit))?;
                rows.iter().map(|row| files.header(row.position, row.location).map(|(header, _)| header)).collect()
            })
        };
        self.indexed(before.saturating_sub(1), find, |log| log.headers(query, before, limit))
    }

    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        let read = |index: &Index| -> Result<Option<Batch>, StoreError> {
            let Some(location) = self.checked(index.locate(position))? else { return Ok(None) };
            CommitFiles::new(&self.folder).commit(position, location).map(Some)
        };
        self.indexed(position, read, |log| log.commit(position))
    }

    fn some_entries(&self, position: u64, skip: usize, most: usize) -> Result<Option<CommitEntries>, StoreError> {
        let read = |index: &Index| -> Result<Option<CommitEntries>, StoreError> {
            let Some(location) = self.checked(index.locate(position))? else { return Ok(None) };
            CommitFiles::new(&self.folder).some_entries(position, location, skip, most).map(Some)
        };
        self.indexed(position, read, |log| log.some_entries(position, skip, most))
    }

    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let Some(index) = self.index(wanted.before.saturating_sub(1))? else {
            return self.log.resource_histories(wanted, visit);
        };
        let mut files = CommitFiles::new(&self.folder);
        for (number, path) in wanted.paths.iter().enumerate() {
            for row in index.find_changes(path, wanted.before, wanted.source) {
                if files.visit(number, &self.checked(row)?, visit)?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        self.log.walk(revision, upto, visit)
    }
}

impl Drop for HistoryReader {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

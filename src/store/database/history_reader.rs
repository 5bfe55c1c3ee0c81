//! Answers queries about the history: from the index, which another thread updates, and from the log.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    catch_up,
    commit_files::CommitFiles,
    index::Index,
    indexing::{Job, Progress, Shared, fail, work},
    memtable::Unwritten,
    rows::Location,
};
use crate::{
    background::lower_priority,
    model::diagnostics::code::Code,
    store::{
        REMOVAL, Stay, StoreError,
        commit::header::{CommitHeader, Retention},
        disk::files::{self, Part},
        engine::{Batch, Query, Stories, StoryVisit, Tip},
        fault,
        log::{parts, reader::LogReader},
        seal::StoreId,
        trusted_time::{TrustedMoment, most_at_once},
    },
};

/// How often headers are read: the retention may drop files meanwhile.
const ATTEMPTS: usize = 3;
/// The time that a query waits for the index to be opened and updated.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers queries about the history.
pub(crate) struct HistoryReader {
    folder: PathBuf,
    shared: Arc<Shared>,
    /// Lets the thread begin.
    begin: Sender<()>,
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
    /// The ends of parts of the log by generation. Each checkpoint asks for that of the oldest, which can be a large file.
    ends: Mutex<BTreeMap<u64, PartEnd>>,
}

/// The end of a part of the log that is no longer written.
#[derive(Debug, Clone, Copy)]
struct PartEnd {
    /// The store of the file.
    store: StoreId,
    /// The batch before its first one.
    start: Tip,
    /// Its last batch.
    tip: Tip,
    /// The time of that batch, or none if the file has no batch.
    at: Option<Timestamp>,
}

impl PartEnd {
    /// Reads a file to its end.
    fn read(path: &Path) -> Result<Self, StoreError> {
        let mut history = LogReader::open_headers(path)?;
        let mut last = None;
        while let Some(framed) = history.batch()? {
            last = Some(framed.batch.header);
        }
        if history.rest.is_some() {
            return Err(history.unreadable());
        }
        let at = last.map(|header| CommitHeader::from_bytes(&header)).transpose()?.map(|header| header.at);
        Ok(Self { store: history.store, start: history.start, tip: history.tip, at })
    }
}

impl HistoryReader {
    /// Opens the index in the background and updates it up to `tip`, unless the process ends soon: the next one that
    /// stays adds what is missing. Begins when the state is loaded, which needs all cores, or when somebody needs the
    /// index. Syncs `head` when no commit arrives.
    pub(crate) fn start(folder: &Path, tip: Tip, head: File, stay: Stay) -> Self {
        let ((jobs, received), (begin, begins)) = (channel(), channel());
        let shared = Arc::new(Shared::default());
        let (own, path) = (Arc::clone(&shared), folder.to_owned());
        let thread = std::thread::Builder::new().name("history".into()).spawn(move || {
            lower_priority();
            let _ = begins.recv();
            drop(begins);
            let index = match stay {
                Stay::Long => catch_up::open(&path, tip).inspect_err(|error| {
                    tracing::warn!(code = %error.code, "the history cannot be read: {error}");
                }),
                Stay::Brief => Err(StoreError::new(Code::StoreFailed, "the history index is not open")),
            };
            work(index, tip, &own, &received, &head)
        });
        if let Err(error) = &thread {
            shared.set(|progress| progress.failed = Some(StoreError::io("start the history thread of", folder, error)));
        }
        Self { folder: folder.to_owned(), shared, begin, jobs, thread: thread.ok(), ends: Mutex::default() }
    }

    /// Begins, unless that is done.
    pub(crate) fn begin(&self) {
        let _ = self.begin.send(());
    }

    /// Queues durable records for the index.
    pub(crate) fn add(&self, records: Vec<(Location, Batch)>) {
        self.begin();
        let _ = self.jobs.send(Job::Add(records));
    }

    /// Whether there is no index until the next start.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.progress().failed.is_some()
    }

    /// Finds the headers of at most `limit` commits before a position, newest first. Waits until the index has everything up
    /// to `upto`.
    pub(crate) fn headers(
        &self,
        query: &Query,
        before: u64,
        limit: usize,
        upto: u64,
    ) -> Result<Vec<CommitHeader>, StoreError> {
        let index = self.index(upto)?;
        // The retention may drop commits meanwhile; the next attempt then uses the updated index.
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut files = CommitFiles::new(&self.folder);
            let located = self.locate(&index, query, before, limit)?;
            let found = located.into_iter().map(|(position, location)| files.header(position, location));
            match found.collect::<Result<Vec<_>, StoreError>>() {
                Err(_) if attempts < ATTEMPTS => {}
                found => return found.map(|found| found.into_iter().map(|found| found.header.clone()).collect()),
            }
        }
    }

    /// Reads the commit at a position, or returns none if there is none. Waits as [`HistoryReader::headers`] does.
    pub(crate) fn commit(&self, position: u64, upto: u64) -> Result<Option<Batch>, StoreError> {
        let index = self.index(upto)?;
        let found = self.locate(&index, &Query::All, position.saturating_add(1), 1)?;
        let Some((_, location)) = found.into_iter().find(|(found, _)| *found == position) else { return Ok(None) };
        CommitFiles::new(&self.folder).commit(position, location).map(Some)
    }

    /// Visits the stories of resources. Waits as [`HistoryReader::headers`] does.
    pub(crate) fn stories(&self, wanted: Stories<'_>, upto: u64, visit: &mut StoryVisit<'_>) -> Result<(), StoreError> {
        let index = self.index(upto)?;
        let mut files = CommitFiles::new(&self.folder);
        for (number, path) in wanted.paths.iter().enumerate() {
            let (known, oldest) =
                self.in_memory(|unwritten| (unwritten.story(path, wanted.before, wanted.source), unwritten.oldest()))?;
            let mut is_over = false;
            for (location, record) in known {
                if files.visit(number, location, &record, visit)?.is_break() {
                    is_over = true;
                    break;
                }
            }
            if is_over {
                continue;
            }
            // The records in memory can get into the index meanwhile.
            let before = oldest.map_or(wanted.before, |oldest| wanted.before.min(oldest));
            let mut failed = None;
            self.read(&index, |index| {
                index.story(path, before, &mut |record| {
                    if wanted.source.is_some() && wanted.source != record.source.as_deref() {
                        return Ok(true);
                    }
                    let (_, location) = index.locate(record.position)?;
                    let visited = files.visit(number, location, record, visit);
                    // An error here is no failure of the index.
                    Ok(visited.map_err(|error| failed = Some(error)).is_ok_and(|goes_on| goes_on.is_continue()))
                })
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Finds records in memory, and then in the index.
    fn locate(
        &self,
        index: &Index,
        query: &Query,
        before: u64,
        limit: usize,
    ) -> Result<Vec<(u64, Location)>, StoreError> {
        let (mut found, oldest) =
            self.in_memory(|unwritten| (unwritten.find(query, before, limit), unwritten.oldest()))?;
        let is_unique = matches!(query, Query::Revision(_));
        if found.len() < limit && (!is_unique || found.is_empty()) {
            // The records in memory can get into the index meanwhile.
            let before = oldest.map_or(before, |oldest| before.min(oldest));
            found.extend(self.read(index, |index| index.find(query, before, limit - found.len()))?);
        }
        Ok(found)
    }

    /// Reads the index. If that fails, it is given up: the log has everything, and the next start makes the index good.
    fn read<R>(&self, index: &Index, read: impl FnOnce(&Index) -> Result<R, StoreError>) -> Result<R, StoreError> {
        let reachable = fault::point("index.read").map_err(|error| StoreError::io("read", index.path(), &error));
        reachable.and_then(|()| read(index)).inspect_err(|error| {
            fail(&self.shared, error.clone());
            let _ = self.jobs.send(Job::GiveUp);
        })
    }

    /// Reads the records in memory. Fails if they were given up with the index.
    fn in_memory<R>(&self, read: impl FnOnce(&Unwritten) -> R) -> Result<R, StoreError> {
        let progress = self.shared.progress();
        match &progress.failed {
            None => Ok(read(&progress.unwritten)),
            Some(error) => Err(error.clone()),
        }
    }

    /// Waits until everything up to a position can be found.
    fn index(&self, upto: u64) -> Result<Arc<Index>, StoreError> {
        self.begin();
        self.wait(|progress| progress.index.is_none() || progress.applied < upto)
    }

    fn wait(&self, is_behind: impl Fn(&Progress) -> bool) -> Result<Arc<Index>, StoreError> {
        let behind = |progress: &mut Progress| progress.failed.is_none() && is_behind(progress);
        let waited = self.shared.moved.wait_timeout_while(self.shared.progress(), PATIENCE, behind);
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &progress.failed {
            return Err(error.clone());
        }
        match &progress.index {
            Some(index) if !is_behind(&progress) => Ok(Arc::clone(index)),
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
            let Ok(end) = self.end_of(*generation) else { break };
            let first = *first.get_or_insert(end.start.position);
            let exceeds = tip.position - end.tip.position >= retention.records || total > retention.bytes;
            // Removing a file without a record leaves no gap.
            if !exceeds && end.at.is_some() {
                let most = most_at_once(usize::try_from(tip.position - first).unwrap_or(usize::MAX)) as u64;
                let is_part = end.start.position == first || end.tip.position - first <= most;
                let later = parts.get(number..).unwrap_or_default();
                if !is_part || !self.is_old(later, retention.age, moment)? {
                    break;
                }
                has_aged = true;
            }
            total -= size(*generation);
            until = end.at.or(until);
            last = Some(end);
            dropped.push(Part::Log.path(&self.folder, *generation));
        }
        let (Some(first), Some(PartEnd { store, tip: last, .. })) = (first, last) else { return Ok(false) };
        parts::keep_from(&self.folder, store, last)?;
        // The index goes first, so that it never refers to a missing file.
        if let Ok(index) = self.index(0) {
            index.forget(last.position + 1)?;
        }
        dropped.iter().try_for_each(|path| files::remove(path))?;
        if last.position > first {
            let why = if has_aged { "they are too old" } else { "it is over its limit of records or bytes" };
            let until = until.map(|at| format!(", the last of {at}")).unwrap_or_default();
            let (from, to, records) = (first + 1, last.position, last.position - first);
            tracing::info!(target: REMOVAL, records, "Removed records {from} to {to} of the history{until}: {why}.");
        }
        Ok(has_aged)
    }

    /// Whether the first of some parts of the log is old. One that ends with a time that is still to come was written while the
    /// clock was wrong: it is as old as the files after it.
    fn is_old(&self, generations: &[u64], age: Duration, moment: TrustedMoment) -> Result<bool, StoreError> {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        for generation in generations {
            if let Some(at) = self.end_of(*generation)?.at.filter(|at| *at <= moment.now) {
                return Ok(moment.ages.duration_since(at) > age);
            }
        }
        Ok(false)
    }

    /// The end of a part of the log, which is read once.
    fn end_of(&self, generation: u64) -> Result<PartEnd, StoreError> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(end) = ends.get(&generation) {
            return Ok(*end);
        }
        let end = PartEnd::read(&Part::Log.path(&self.folder, generation))?;
        ends.insert(generation, end);
        Ok(end)
    }
}

impl Drop for HistoryReader {
    fn drop(&mut self) {
        self.begin();
        let _ = self.jobs.send(Job::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

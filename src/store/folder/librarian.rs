//! The thread that updates the index of the history, so that no commit waits for sled.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use super::{
    files::{self, Part},
    index::{Index, Location},
    journal, log,
    reader::{Framed, Reader, read_at},
};
use crate::{
    model::code::Code,
    store::{
        StoreError,
        engine::{Batch, Hash, Query, Tip},
        history::{Record, Retention},
        mint,
    },
};

/// The time without a commit after which the head is synced.
const PAUSE: Duration = Duration::from_millis(20);
/// The time that a query waits for the index to be opened and updated.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of records that are added to the index at once while it catches up.
const PORTION: usize = 1000;

/// Answers queries about the history.
pub struct Librarian {
    folder: PathBuf,
    shared: Arc<Shared>,
    jobs: Sender<Job>,
    thread: Option<JoinHandle<()>>,
}

enum Job {
    Add(Vec<(Location, Batch)>),
    Stop,
}

#[derive(Default)]
struct Shared {
    progress: Mutex<Progress>,
    moved: Condvar,
}

#[derive(Default)]
struct Progress {
    index: Option<Arc<Index>>,
    /// The last record in the index.
    applied: u64,
    failed: Option<StoreError>,
}

impl Shared {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.moved.notify_all();
    }
}

impl Librarian {
    /// Opens the index in the background and updates it up to `tip`. Syncs `head` when no commit arrives.
    pub fn start(folder: &Path, tip: Tip, head: File) -> Self {
        let (jobs, received) = channel();
        let shared = Arc::new(Shared::default());
        let (own, path) = (Arc::clone(&shared), folder.to_owned());
        let thread =
            std::thread::Builder::new().name("history".into()).spawn(move || work(&path, tip, &own, &received, &head));
        if let Err(error) = &thread {
            shared.set(|progress| progress.failed = Some(StoreError::io("start the history thread of", folder, error)));
        }
        Self { folder: folder.to_owned(), shared, jobs, thread: thread.ok() }
    }

    /// Queues durable records for the index.
    pub fn add(&self, records: Vec<(Location, Batch)>) {
        let _ = self.jobs.send(Job::Add(records));
    }

    /// Finds at most `limit` records before a position, newest first. Waits until the index has everything up to
    /// `upto`.
    pub fn find(&self, query: &Query, before: u64, limit: usize, upto: u64) -> Result<Vec<Arc<[u8]>>, StoreError> {
        let index = self.index(upto)?;
        let mut last = None;
        let mut place = String::new();
        // A checkpoint may move or drop records meanwhile; the next attempt then uses the updated index.
        for _ in 0..3 {
            let records: io::Result<Option<Vec<Arc<[u8]>>>> = index
                .find(query, before, limit)?
                .into_iter()
                .map(|(position, location)| {
                    let path = location.part.path(&self.folder, location.generation);
                    place = format!("record {position} in {} at byte {}", path.display(), location.offset);
                    let batch = read_at(&path, location.offset, location.length as usize)?;
                    Ok(batch.filter(|batch| batch.position == position).map(|batch| batch.record))
                })
                .collect();
            match records {
                Ok(Some(records)) => return Ok(records),
                Ok(None) => last = None,
                Err(error) => last = Some(error),
            }
        }
        let reason = last.map_or_else(|| "its checksum does not match".to_owned(), |error| error.to_string());
        Err(StoreError::corrupt(&self.folder, format!("{place} cannot be read: {reason}")))
    }

    fn index(&self, upto: u64) -> Result<Arc<Index>, StoreError> {
        let behind = |progress: &mut Progress| {
            progress.failed.is_none() && (progress.index.is_none() || progress.applied < upto)
        };
        let waited = self.shared.moved.wait_timeout_while(self.shared.progress(), PATIENCE, behind);
        let (progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = &progress.failed {
            return Err(error.clone());
        }
        match &progress.index {
            Some(index) if progress.applied >= upto => Ok(Arc::clone(index)),
            _ => Err(StoreError::new(Code::StoreFailed, "the history index is still being built; try again later")),
        }
    }

    /// Converts the journals before a generation to history files, which contain no changes and so no secrets.
    pub fn fold(&self, generation: u64) -> Result<(), StoreError> {
        let index = self.index(0).ok();
        for old in Part::Journal.generations(&self.folder)?.into_iter().filter(|old| *old < generation) {
            let (from, to) = (Part::Journal.path(&self.folder, old), Part::History.path(&self.folder, old));
            let mut journal = Reader::open(&from, false)?;
            let (store, start) = (journal.store, journal.start);
            let following = Reader::open(&Part::Journal.path(&self.folder, old + 1), false)?.start;
            journal::write_history(&to, store, start, || match journal.batch()? {
                Some(framed) => Ok(Some(framed.batch)),
                None if (journal.tip.position, journal.tip.hash) == (following.position, following.hash) => Ok(None),
                // The journal is removed below, so damage must stop this first.
                None => {
                    let found = format!("record {} at byte {} cannot be read", journal.tip.position + 1, journal.end);
                    Err(StoreError::corrupt(&from, found))
                }
            })?;
            if let Some(index) = &index {
                // The index must have the new location before the old file is removed.
                let mut history = Reader::open(&to, false)?;
                add_file(index, (Part::History, old), &mut history, false, |_| true)?;
            }
            files::remove(&from)?;
        }
        Ok(())
    }

    /// Drops history files that exceed the retention. The newest file always stays.
    pub fn retain(&self, retention: &Retention, tip: Tip) -> Result<(), StoreError> {
        let mut histories = Part::History.generations(&self.folder)?;
        histories.pop();
        let size =
            |generation: u64| fs::metadata(Part::History.path(&self.folder, generation)).map_or(0, |it| it.len());
        let mut total: u64 = histories.iter().map(|generation| size(*generation)).sum();
        let (mut oldest, mut dropped) = (0, Vec::new());
        for generation in histories {
            let path = Part::History.path(&self.folder, generation);
            let mut history = Reader::open(&path, false)?;
            let mut last = None;
            while let Some(framed) = history.batch()? {
                last = Some(framed.batch.record);
            }
            let old = match last {
                // A store that was migrated without a commit has an empty file: without it there is no gap.
                None => true,
                Some(record) => {
                    let age = mint::now().duration_since(Record::from_bytes(&record)?.at);
                    age.unsigned_abs() > retention.age && age.is_positive()
                }
            };
            if !old && tip.position - history.tip.position < retention.records && total <= retention.bytes {
                break;
            }
            total -= size(generation);
            oldest = history.tip.position + 1;
            dropped.push(path);
        }
        if dropped.is_empty() {
            return Ok(());
        }
        // The index goes first, so that it never refers to a missing file.
        if let Ok(index) = self.index(0) {
            index.forget(oldest)?;
        }
        dropped.iter().try_for_each(|path| files::remove(path))
    }
}

impl Drop for Librarian {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Adds the wanted records of a file to the index, in portions. Unless they are `new`, only their locations change.
fn add_file(
    index: &Index,
    (part, generation): (Part, u64),
    reader: &mut Reader,
    new: bool,
    mut wanted: impl FnMut(&Batch) -> bool,
) -> Result<(), StoreError> {
    let mut records: Vec<(Location, Batch)> = Vec::new();
    loop {
        let next = reader.batch()?;
        let at_end = next.is_none();
        if let Some(Framed { offset, length, batch }) = next
            && wanted(&batch)
        {
            records.push((Location { part, generation, offset, length }, batch));
        }
        if (at_end || records.len() >= PORTION)
            && let Some((_, last)) = records.last()
        {
            let applied = new.then(|| Tip::after(last));
            index.add(records.iter().map(|(location, batch)| (*location, batch)), applied)?;
            records.clear();
        }
        if at_end {
            return Ok(());
        }
    }
}

fn work(folder: &Path, tip: Tip, shared: &Shared, jobs: &Receiver<Job>, head: &File) {
    let mut index = match open(folder, tip) {
        Ok(index) => {
            let index = Arc::new(index);
            shared.set(|progress| {
                progress.index = Some(Arc::clone(&index));
                progress.applied = tip.position;
            });
            Some(index)
        }
        // Without an index the head still has to be synced.
        Err(error) => {
            tracing::warn!(code = %error.code, "the history cannot be read: {error}");
            shared.set(|progress| progress.failed = Some(error));
            None
        }
    };
    let mut unsynced = false;
    loop {
        // The head is synced in a pause, so that a commit does not wait for this sync as well.
        let next = match unsynced {
            true => jobs.recv_timeout(PAUSE),
            false => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let job = match next {
            Ok(job) => job,
            Err(RecvTimeoutError::Timeout) => {
                let _ = head.sync_data();
                unsynced = false;
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let mut records = match job {
            Job::Add(records) => records,
            Job::Stop => break,
        };
        let mut stop = false;
        // sled is faster with one large batch than with many small ones.
        while let Ok(job) = jobs.try_recv() {
            match job {
                Job::Add(more) => records.extend(more),
                Job::Stop => stop = true,
            }
        }
        if let (Some(open), Some((_, last))) = (&index, records.last()) {
            let last = Tip::after(last);
            let added = open.add(records.iter().map(|(location, batch)| (*location, batch)), Some(last));
            match added {
                Ok(()) => shared.set(|progress| progress.applied = last.position),
                // The next start continues where the index ends, so nothing may be added after a gap.
                Err(error) => {
                    tracing::warn!(code = %error.code, "{error}");
                    shared.set(|progress| progress.failed = Some(error));
                    index = None;
                }
            }
        }
        unsynced = true;
        if stop {
            break;
        }
    }
    let _ = head.sync_data();
    if let Some(index) = index {
        index.flush();
    }
}

/// Opens the index and adds missing records. Rebuilds an index that cannot be used.
fn open(folder: &Path, tip: Tip) -> Result<Index, StoreError> {
    let path = folder.join("index");
    let usable = Index::open(&path).and_then(|index| {
        let whole = catch_up(folder, &index, tip, false)? && follows_checkpoint(folder, &index, tip)?;
        Ok((index, whole))
    });
    if let Ok((index, true)) = usable {
        return Ok(index);
    }
    drop(usable);
    Index::remove(&path)?;
    let index = Index::open(&path)?;
    catch_up(folder, &index, tip, true)?;
    Ok(index)
}

/// Adds missing records up to `tip`. Returns false if the index belongs to another log.
fn catch_up(folder: &Path, index: &Index, tip: Tip, fresh: bool) -> Result<bool, StoreError> {
    let applied = index.applied()?;
    if let Some((position, hash)) = applied
        && (position, hash) == (tip.position, tip.hash)
    {
        return Ok(true);
    }
    if applied.is_none() && !fresh && tip.position > 0 {
        return Ok(false);
    }
    let (from, hash) = applied.unwrap_or_default();
    let mut known = applied.is_none();
    let mut end: Option<(u64, Hash)> = None;
    for (part, generation) in log::parts(folder)? {
        let path = part.path(folder, generation);
        let mut reader = Reader::open(&path, false)?;
        let start = (reader.start.position, reader.start.hash);
        // The newest history file is always kept, so an older file is missing if the log begins with a later journal.
        let continues = end.map_or(part == Part::History || start.0 == 0, |end| end == start);
        if !continues {
            let found = format!("the history before record {} is missing", start.0 + 1);
            return Err(StoreError::corrupt(&path, found));
        }
        known |= start == (from, hash);
        add_file(index, (part, generation), &mut reader, true, |batch| {
            known |= (batch.position, batch.hash) == (from, hash);
            known && batch.position > from && batch.position <= tip.position
        })?;
        if part == Part::History && reader.rest.is_some() {
            return Err(StoreError::corrupt(&path, format!("the record at byte {} cannot be read", reader.end)));
        }
        end = Some((reader.tip.position, reader.tip.hash));
        if reader.tip.position >= from && !known {
            return Ok(false);
        }
    }
    Ok(known)
}

/// Checks that the index knows what the last checkpoint did, and drops the records that it removed. A crash takes what
/// sled has not written yet, while the files of the log are moved and removed for good.
fn follows_checkpoint(folder: &Path, index: &Index, tip: Tip) -> Result<bool, StoreError> {
    let parts = log::parts(folder)?;
    let mut starts = Vec::with_capacity(parts.len());
    for (part, generation) in &parts {
        starts.push(Reader::open(&part.path(folder, *generation), false)?.start.position);
    }
    let Some(first) = starts.first() else { return Ok(true) };
    if index.oldest()?.is_some_and(|oldest| oldest <= *first) {
        index.forget(first + 1)?;
    }
    // The last record of a file is moved last.
    for (file, (start, next)) in parts.iter().zip(starts.iter().zip(starts.iter().skip(1))) {
        if start < next && *next <= tip.position {
            let (_, location) = index.locate(*next)?;
            if (location.part, location.generation) != *file {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

//! The thread that keeps the index of the history behind the journals, so that no commit waits for sled.

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
    journal,
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

/// How long the log must be quiet before the head is synced.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a reader waits for the index to be opened and to catch up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers what is asked of the history.
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

/// The files of the log that is kept, oldest first.
pub fn logs(folder: &Path) -> Result<Vec<(Part, u64)>, StoreError> {
    let journals = Part::Journal.generations(folder)?;
    // Where both exist, a checkpoint was interrupted, and the journal is the one that counts.
    let histories = Part::History.generations(folder)?.into_iter().filter(|it| !journals.contains(it));
    let mut logs: Vec<(Part, u64)> = histories.map(|generation| (Part::History, generation)).collect();
    logs.extend(journals.iter().map(|generation| (Part::Journal, *generation)));
    logs.sort_by_key(|(_, generation)| *generation);
    Ok(logs)
}

impl Librarian {
    /// Opens the index in the background and brings it up to `tip`. `head` is synced when there is nothing else to do.
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

    /// Adds records that are durable.
    pub fn add(&self, records: Vec<(Location, Batch)>) {
        let _ = self.jobs.send(Job::Add(records));
    }

    /// The records of a query, before a position, newest first, once everything up to `upto` is in the index.
    pub fn find(&self, query: &Query, before: u64, limit: usize, upto: u64) -> Result<Vec<Arc<[u8]>>, StoreError> {
        let index = self.index(upto)?;
        let mut last = None;
        let mut place = String::new();
        // A checkpoint moves records from one file to another; then the index knows better at the second try.
        for _ in 0..3 {
            let mut moved = None;
            let records: io::Result<Option<Vec<Arc<[u8]>>>> = index
                .find(query, before, limit)?
                .into_iter()
                .map(|(position, location)| {
                    let path = location.part.path(&self.folder, location.generation);
                    place = format!("record {position} in {} at byte {}", path.display(), location.offset);
                    let batch =
                        journal::read_at(&path, location.offset, location.length as usize).inspect_err(|_| {
                            let history = Part::History.path(&self.folder, location.generation);
                            moved = history.exists().then_some(location.generation);
                        })?;
                    Ok(batch.filter(|batch| batch.position == position).map(|batch| batch.record))
                })
                .collect();
            match records {
                Ok(Some(records)) => return Ok(records),
                Ok(None) => last = None,
                Err(error) => last = Some(error),
            }
            // An index that failed during a checkpoint has old places.
            if let Some(generation) = moved {
                relocate(&index, &self.folder, generation)?;
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

    /// Turns the journals before a generation into history, which has no changes and so no secrets.
    pub fn fold(&self, generation: u64) -> Result<(), StoreError> {
        for old in Part::Journal.generations(&self.folder)?.into_iter().filter(|old| *old < generation) {
            let (from, to) = (Part::Journal.path(&self.folder, old), Part::History.path(&self.folder, old));
            let content = journal::read(&from, false)?;
            journal::write_history(&to, content.store, content.start, &content.batches)?;
            // The index must know the new places before the old ones are gone, and it must already know the old ones:
            // a record that it adds later would get its old place again.
            let last = content.batches.last().map_or(0, |(_, batch)| batch.position);
            if let Ok(index) = self.index(last) {
                relocate(&index, &self.folder, old)?;
            }
            files::remove(&from)?;
        }
        Ok(())
    }

    /// Drops the history that is over the limits. The newest file always stays.
    pub fn retain(&self, retention: &Retention, tip: Tip) -> Result<(), StoreError> {
        let mut histories = Part::History.generations(&self.folder)?;
        histories.pop();
        let mut oldest = None;
        let size =
            |generation: u64| fs::metadata(Part::History.path(&self.folder, generation)).map_or(0, |it| it.len());
        let mut total: u64 = histories.iter().map(|generation| size(*generation)).sum();
        for generation in histories {
            let path = Part::History.path(&self.folder, generation);
            let own = size(generation);
            let content = journal::read(&path, false)?;
            let Some((_, last)) = content.batches.last() else { continue };
            let age = mint::now().duration_since(Record::from_bytes(&last.record)?.at);
            let old = age.unsigned_abs() > retention.age && age.is_positive();
            if !old && tip.position - last.position < retention.records && total <= retention.bytes {
                break;
            }
            total -= own;
            oldest = Some(last.position + 1);
            files::remove(&path)?;
        }
        match (oldest, self.index(0)) {
            (Some(oldest), Ok(index)) => index.forget(oldest),
            _ => Ok(()),
        }
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

/// Tells the index where the records of a journal are now that it has become history.
fn relocate(index: &Index, folder: &Path, generation: u64) -> Result<(), StoreError> {
    let written = journal::read(&Part::History.path(folder, generation), false)?;
    index.add(located(Part::History, generation, &written).into_iter(), None)
}

fn located(part: Part, generation: u64, content: &journal::Content) -> Vec<(Location, &Batch)> {
    let ends = content.batches.iter().skip(1).map(|(start, _)| *start).chain([content.end]);
    let located =
        content.batches.iter().zip(ends).map(|((offset, batch), end)| {
            (Location { part, generation, offset: *offset, length: end - offset }, batch)
        });
    located.collect()
}

fn work(folder: &Path, tip: Tip, shared: &Shared, jobs: &Receiver<Job>, head: &File) {
    let index = match open(folder, tip) {
        Ok(index) => Arc::new(index),
        Err(error) => {
            tracing::warn!(code = %error.code, "the history cannot be read: {error}");
            return shared.set(|progress| progress.failed = Some(error));
        }
    };
    shared.set(|progress| {
        progress.index = Some(Arc::clone(&index));
        progress.applied = tip.position;
    });
    let mut unsynced = false;
    loop {
        // The head is synced in a pause: a commit that waits for the disk must not wait for this.
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
        if let Some((_, last)) = records.last() {
            let last = Tip::after(last);
            let added = index.add(records.iter().map(|(location, batch)| (*location, batch)), Some(last));
            match added {
                Ok(()) => shared.set(|progress| progress.applied = last.position),
                Err(error) => {
                    tracing::warn!(code = %error.code, "{error}");
                    shared.set(|progress| progress.failed = Some(error));
                }
            }
        }
        unsynced = true;
        if stop {
            break;
        }
    }
    let _ = head.sync_data();
    index.flush();
}

/// Opens the index and adds what it lacks; what cannot be used is made anew.
fn open(folder: &Path, tip: Tip) -> Result<Index, StoreError> {
    let path = folder.join("index");
    let usable = Index::open(&path).and_then(|index| catch_up(folder, &index, tip, false).map(|whole| (index, whole)));
    if let Ok((index, true)) = usable {
        return Ok(index);
    }
    drop(usable);
    Index::remove(&path)?;
    let index = Index::open(&path)?;
    catch_up(folder, &index, tip, true)?;
    Ok(index)
}

/// Adds the records up to `tip` that the index lacks. False if the index is of another log.
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
    for (part, generation) in logs(folder)? {
        let path = part.path(folder, generation);
        let content = journal::read(&path, false)?;
        let start = (content.start.position, content.start.hash);
        // The newest history file is always kept, so a journal never begins in the void.
        let continues = end.map_or(part == Part::History || start.0 == 0, |end| end == start);
        if !continues {
            let found = format!("the history before record {} is missing", start.0 + 1);
            return Err(StoreError::corrupt(&path, found));
        }
        if part == Part::History && content.rest.is_some() {
            return Err(StoreError::corrupt(&path, format!("the record at byte {} cannot be read", content.end)));
        }
        let last = content.batches.last().map_or(content.start, |(_, batch)| Tip::after(batch));
        end = Some((last.position, last.hash));
        if last.position < from {
            continue;
        }
        known |= (content.start.position, content.start.hash) == (from, hash)
            || content.batches.iter().any(|(_, batch)| (batch.position, batch.hash) == (from, hash));
        if !known {
            return Ok(false);
        }
        let missing = located(part, generation, &content)
            .into_iter()
            .filter(|(_, batch)| batch.position > from && batch.position <= tip.position);
        let missing: Vec<(Location, &Batch)> = missing.collect();
        if let Some((_, last)) = missing.last() {
            let last = Tip::after(last);
            index.add(missing.into_iter(), Some(last))?;
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::operation::Author,
        store::history::{Outcome, chain},
    };

    fn batch(position: u64) -> Batch {
        let record = Record {
            position,
            revision: Some(position),
            at: mint::now(),
            milliseconds: 1,
            author: Author::Local,
            outcome: Outcome::Applied,
            message: String::new(),
            calls: Vec::new(),
            resources: Vec::new(),
            changes: String::new(),
        };
        let record: Arc<[u8]> = record.to_bytes().unwrap_or_default().into();
        let hash = chain(&[0; 32], &record);
        Batch { position, revision: position, next_order: 0, record, hash, changes: Vec::new() }
    }

    #[test]
    fn records_are_found_where_a_checkpoint_has_moved_them() -> Result<(), StoreError> {
        let folder = tempfile::tempdir().map_err(|error| StoreError::io("create", Path::new("folder"), &error))?;
        let (path, generation) = (folder.path(), 3);
        let batches: Vec<(u64, Batch)> = (1..=2).map(|position| (0, batch(position))).collect();
        journal::write_history(&Part::History.path(path, generation), [0; 16], Tip::default(), &batches)?;
        // The index added the records after the journal had become history.
        let old = |offset| Location { part: Part::Journal, generation, offset, length: 200 };
        let index = Index::open(&path.join("index"))?;
        let tip = batches.last().map(|(_, last)| Tip::after(last));
        index.add(batches.iter().map(|(offset, batch)| (old(*offset), batch)), tip)?;
        let shared = Arc::new(Shared::default());
        shared.set(|progress| (progress.index, progress.applied) = (Some(Arc::new(index)), 2));
        let librarian = Librarian { folder: path.to_owned(), shared, jobs: channel().0, thread: None };
        let found = librarian.find(&Query::All, u64::MAX, 10, 2)?;
        let expected: Vec<_> = batches.iter().rev().map(|(_, batch)| Arc::clone(&batch.record)).collect();
        assert_eq!(found, expected);
        Ok(())
    }
}

//! The thread that updates the index of the history. It keeps the newest records in memory, and writes many at once.

use std::{
    fs::File,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use super::{
    index::Index,
    memtable::Unwritten,
    rows::{IndexedRecord, Location},
};
use crate::store::{
    StoreError,
    engine::{Batch, Tip},
    fault,
};

/// The time without a commit after which the head is synced.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest time for which records are only in memory.
const LONGEST_UNWRITTEN: Duration = Duration::from_secs(5);
/// How many records are prepared for the index at once.
const PORTION: usize = 1000;

/// What the thread is asked to do.
pub(super) enum Job {
    /// Adds durable records.
    Add(Vec<(Location, Batch)>),
    /// Closes the index, which cannot be read.
    GiveUp,
    /// Writes what is only in memory, and ends.
    Stop,
}

/// What the thread and the queries share.
#[derive(Default)]
pub(super) struct Shared {
    progress: Mutex<Progress>,
    /// Notified when the progress changes.
    pub moved: Condvar,
}

/// How far the index has come.
#[derive(Default)]
pub(super) struct Progress {
    /// The open index.
    pub index: Option<Arc<Index>>,
    /// The last record that can be found.
    pub applied: u64,
    /// The last of these records, which are only in memory.
    pub unwritten: Unwritten,
    /// Why there is no index until the next start.
    pub failed: Option<StoreError>,
}

impl Shared {
    pub(super) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the progress, and wakes those who wait for it.
    pub(super) fn set(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress());
        self.moved.notify_all();
    }
}

/// Carries out jobs until it is told to stop. Syncs `head` when no record arrives.
pub(super) fn work(index: Result<Index, StoreError>, tip: Tip, shared: &Shared, jobs: &Receiver<Job>, head: &File) {
    let mut index = match index {
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
            shared.set(|progress| progress.failed = Some(error));
            None
        }
    };
    // Since when records are only in memory.
    let mut unwritten: Option<Instant> = None;
    let mut unsynced = false;
    loop {
        // The head is synced in a pause, so that a commit does not wait for this sync as well.
        let next = match (unsynced, unwritten) {
            (true, _) => jobs.recv_timeout(PAUSE),
            (false, Some(since)) => jobs.recv_timeout(LONGEST_UNWRITTEN.saturating_sub(since.elapsed())),
            (false, None) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let job = match next {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) if unsynced => {
                let _ = fault::point("head.sync").and_then(|()| head.sync_data());
                unsynced = false;
                continue;
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let (mut records, mut is_due, mut stop) = (Vec::new(), job.is_none(), false);
        for job in job.into_iter().chain(jobs.try_iter()) {
            match job {
                Job::Add(more) => records.extend(more),
                Job::GiveUp => index = None,
                Job::Stop => stop = true,
            }
        }
        if !records.is_empty() {
            unsynced = true;
            unwritten.get_or_insert_with(Instant::now);
        }
        is_due |= unwritten.is_some_and(|since| since.elapsed() >= LONGEST_UNWRITTEN);
        if let Some(open) = &index {
            match keep(open, shared, &records, is_due) {
                Ok(true) => unwritten = None,
                Ok(false) => {}
                // The next start continues where the index ends, so nothing may be added after a gap.
                Err(error) => {
                    fail(shared, error);
                    index = None;
                }
            }
        }
        if index.is_none() {
            unwritten = None;
        }
        if stop {
            break;
        }
    }
    let _ = fault::point("head.sync").and_then(|()| head.sync_data());
    if let Some(index) = index {
        if let Err(error) = write(&index, shared) {
            fail(shared, error);
        }
        index.flush();
    }
}

/// Keeps records in memory, and writes all of them to the index if there are many or if it `is_due`. Returns whether none
/// is left in memory.
fn keep(index: &Index, shared: &Shared, records: &[(Location, Batch)], is_due: bool) -> Result<bool, StoreError> {
    for portion in records.chunks(PORTION) {
        let indexed: Vec<_> = portion.iter().map(|(location, batch)| IndexedRecord::of(*location, batch)).collect();
        let mut is_full = false;
        shared.set(|progress| {
            progress.applied = portion.last().map_or(progress.applied, |(_, last)| last.position);
            progress.unwritten.extend(indexed.into_iter());
            is_full = progress.unwritten.is_full();
        });
        if is_full {
            write(index, shared)?;
        }
    }
    if is_due {
        write(index, shared)?;
    }
    Ok(shared.progress().unwritten.oldest().is_none())
}

/// Writes the records in memory to the index. Readers find them in one place or in both.
fn write(index: &Index, shared: &Shared) -> Result<(), StoreError> {
    let records = shared.progress().unwritten.all();
    let Some(last) = records.last() else { return Ok(()) };
    fault::point("index.write").map_err(|error| StoreError::io("write", index.path(), &error))?;
    index.add(&records)?;
    shared.set(|progress| progress.unwritten.drop_upto(last.tip.position));
    Ok(())
}

/// Gives the index up until the next start.
pub(super) fn fail(shared: &Shared, error: StoreError) {
    tracing::warn!(code = %error.code, "{error}");
    shared.set(|progress| {
        progress.failed = Some(error);
        progress.unwritten = Unwritten::default();
    });
}

//! Checkpoints: the engine gets the whole state when its log has grown long, or when another data key encrypts it.
//!
//! A checkpoint has two halves. The log is cut under the lock of the queue, between two groups of commits, so that it is
//! known which state is written: that takes a moment. A thread writes the state afterwards, with a lower priority, while
//! commits go to the next part of the log. The state is a value that nobody changes, so nothing has to be copied or stopped
//! for it.
//!
//! One is due when the log after the newest state is longer than that state and than 8 MiB, so that a start reads about twice
//! the state at most, and all checkpoints together write about as much as the log does. A command that has changed something
//! writes one at its end, if that takes little of its time: others than edgewright see the current state in sled then. A
//! failed one changes nothing but the time until the next; the log has everything.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::{
    commit::codec, commit_queue::QueueState, error::StoreError, open_store::Store, quota_usage::count_earlier_records,
};
use crate::background::{ThreadGuard, lower_priority};
use crate::model::{Code, Snapshot};

/// How long to wait after a failed checkpoint before the next one.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(30);
/// How often to check whether other writers are done.
const PAUSE: Duration = Duration::from_millis(5);

/// How often to check whether a checkpoint is due without a commit.
const MAINTENANCE: Duration = Duration::from_secs(1800);

/// The rest of a checkpoint, which needs no lock.
type WriteState = Box<dyn FnOnce() -> Result<(), StoreError> + Send>;

impl Store {
    /// Writes a checkpoint if one is due. The log is cut here, while nothing is being appended; a separate thread writes
    /// the state.
    pub(super) fn checkpoint_if_wanted(&self, queue: &mut QueueState) {
        let early = queue.checkpoint_after.is_some_and(|after| Instant::now() < after);
        if early || !self.engine.wants_checkpoint() || self.checkpointing.swap(true, Ordering::AcqRel) {
            return;
        }
        let write = match self.begin_checkpoint(queue) {
            Ok(write) => write,
            Err(error) => {
                tracing::warn!(code = %error.code, "cannot write a checkpoint: {error}");
                return self.checkpointing.store(false, Ordering::Release);
            }
        };
        let running = Arc::clone(&self.checkpointing);
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(move || {
            lower_priority();
            match catch_unwind(AssertUnwindSafe(write)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(code = %error.code, "cannot write a checkpoint: {error}"),
                Err(_) => tracing::warn!("cannot write a checkpoint: unexpected failure"),
            }
            running.store(false, Ordering::Release);
        });
        let mut checkpoint = self.checkpoint.lock();
        match thread {
            Ok(thread) => *checkpoint = Some(thread),
            Err(_) => self.checkpointing.store(false, Ordering::Release),
        }
    }

    /// Cuts the log. Must not be called while anything is being appended.
    fn begin_checkpoint(&self, queue: &mut QueueState) -> Result<WriteState, StoreError> {
        let state = self.snapshot();
        queue.forget = state.revision.saturating_sub(self.retention.records);
        queue.checkpoint_after = Some(Instant::now() + CHECKPOINT_RETRY);
        self.engine.rotate()?;
        queue.checkpoint_after = None;
        let (engine, retention, forget) = (Arc::clone(&self.engine), self.retention, queue.forget);
        let keyring = self.keyring.clone();
        Ok(Box::new(move || {
            let state = Snapshot::clone(&state).without_tombstones(forget);
            engine.checkpoint(&mut codec::records(&state, keyring.as_deref())?, &retention)
        }))
    }

    /// Writes a checkpoint if one is due, although no commit arrives: data keys get old by themselves.
    fn maintain(&self) {
        let mut queue = self.queue.lock();
        // A leader writes it behind its commits, and appends without the lock.
        if !queue.led {
            self.checkpoint_if_wanted(&mut queue);
        }
    }

    /// Writes a last checkpoint if the state on the disk is not the current one, and that takes little of the time that the
    /// process has run: what only sled reads shows everything then. The log has it anyway.
    pub(super) fn end(&self) {
        if self.health().is_ok()
            && self.engine.wants_last_checkpoint()
            && let Err(error) = self.checkpoint_now(|| {})
        {
            tracing::info!(code = %error.code, "cannot write a final checkpoint: {error}");
        }
    }

    /// Writes a checkpoint, and waits for it. Waits for a checkpoint that is being written and for the writers in the queue;
    /// no others enter until the log is cut. `prepare` runs just before that, when no commit is on its way.
    pub(super) fn checkpoint_now(&self, prepare: impl FnOnce()) -> Result<(), StoreError> {
        while self.checkpointing.swap(true, Ordering::AcqRel) {
            std::thread::sleep(PAUSE);
        }
        let write = {
            // Under a steady load, the queue would never be empty by itself.
            let _closed = self.queue.close();
            loop {
                let mut queue = self.queue.lock();
                if !queue.led {
                    prepare();
                    break self.begin_checkpoint(&mut queue);
                }
                drop(queue);
                std::thread::sleep(PAUSE);
            }
        };
        let unexpected = |_| Err(StoreError::new(Code::Internal, "the checkpoint failed unexpectedly"));
        let written = write.and_then(|write| catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(unexpected));
        self.checkpointing.store(false, Ordering::Release);
        written
    }
}

/// Maintains a store until the returned value is dropped, and counts what its history has of each owner.
pub(crate) fn maintain_from_time_to_time(store: &Arc<Store>) -> Option<ThreadGuard> {
    let store = Arc::downgrade(store);
    let counted = Weak::clone(&store);
    let count = move || {
        lower_priority();
        count_earlier_records(&counted);
    };
    if let Err(error) = std::thread::Builder::new().name("shares".into()).spawn(count) {
        tracing::warn!("Shares of the history do not count records of earlier processes: {error}");
    }
    let maintenance = ThreadGuard::start("maintenance", move |goes_on| {
        while goes_on(MAINTENANCE) {
            let Some(store) = store.upgrade() else { return };
            store.maintain();
        }
    });
    maintenance.inspect_err(|error| tracing::warn!("The store is maintained only after commits: {error}")).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::MEMORY;

    #[test]
    fn the_threads_of_the_maintenance_end_with_it() {
        let store = Arc::new(Store::open(MEMORY).unwrap());
        let maintenance = maintain_from_time_to_time(&store);
        assert!(Arc::weak_count(&store) > 0);
        drop(maintenance);
        let began = Instant::now();
        while Arc::weak_count(&store) > 0 {
            assert!(began.elapsed() < Duration::from_secs(20), "a thread goes on");
            std::thread::sleep(PAUSE);
        }
    }
}

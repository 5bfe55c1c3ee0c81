//! States of earlier revisions: the current state, with every later batch of the log undone (D79).

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use quick_cache::sync::Cache;

use crate::{
    model::snapshot::Snapshot,
    store::{Store, StoreError, commit::codec::Former, engine::Tip},
};

/// How many earlier states are kept: the pages of a list are requested one after another. They share all that has not
/// changed since.
const MOST_KEPT: usize = 4;
/// A checkpoint can move the files of the log while they are read.
const ATTEMPTS: usize = 3;

/// Why there is no state of a revision.
#[derive(Debug)]
pub enum PastError {
    /// The revision is newer than the store.
    Future {
        /// The revision.
        revision: u64,
        /// The current revision.
        current: u64,
    },
    /// The history no longer has all changes since the revision.
    Gone {
        /// The revision.
        revision: u64,
        /// The oldest revision whose state can be restored.
        oldest: u64,
    },
    /// The store failed.
    Failed(StoreError),
}

impl fmt::Display for PastError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PastError::Future { revision, current } => {
                write!(f, "revision {revision} does not exist; the store is at revision {current}")
            }
            PastError::Gone { revision, oldest } => {
                write!(f, "the state of revision {revision} is no longer kept; the oldest revision is {oldest}")
            }
            PastError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PastError {}

impl From<StoreError> for PastError {
    fn from(error: StoreError) -> Self {
        PastError::Failed(error)
    }
}

/// The states that were restored last.
pub(crate) struct PastStates {
    states: Cache<u64, Arc<Snapshot>>,
    /// How often all of them were forgotten.
    forgotten: AtomicU64,
}

impl Default for PastStates {
    fn default() -> Self {
        Self { states: Cache::new(MOST_KEPT), forgotten: AtomicU64::new(0) }
    }
}

impl PastStates {
    /// Returns the state of a revision if it is kept, or what [`PastStates::keep`] needs.
    fn get(&self, revision: u64) -> Result<Arc<Snapshot>, u64> {
        let forgotten = self.forgotten.load(Ordering::SeqCst);
        self.states.get(&revision).ok_or(forgotten)
    }

    /// Keeps a state, unless all were forgotten while it was restored.
    fn keep(&self, state: &Arc<Snapshot>, forgotten: u64) {
        self.states.insert(state.revision, Arc::clone(state));
        if self.forgotten.load(Ordering::SeqCst) != forgotten {
            self.states.remove(&state.revision);
        }
    }

    /// Forgets all states: they have secrets whose data keys are destroyed.
    pub(crate) fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
        self.states.clear();
    }
}

impl Store {
    /// Returns the state of a revision: exactly what it was, including secrets, unless their data key was destroyed (D96).
    /// The state of an earlier revision is restored from the history, which reads from disk.
    pub fn snapshot_at(&self, revision: u64) -> Result<Arc<Snapshot>, PastError> {
        let current = self.snapshot();
        if revision == current.revision {
            return Ok(current);
        }
        if revision > current.revision {
            return Err(PastError::Future { revision, current: current.revision });
        }
        let forgotten = match self.past.get(revision) {
            Ok(state) => return Ok(state),
            Err(forgotten) => forgotten,
        };
        let mut restored = self.restored(&current, revision);
        for _ in 1..ATTEMPTS {
            if !matches!(restored, Err(PastError::Failed(_))) {
                break;
            }
            restored = self.restored(&current, revision);
        }
        let state = Arc::new(restored?);
        self.past.keep(&state, forgotten);
        Ok(state)
    }

    fn restored(&self, current: &Snapshot, revision: u64) -> Result<Snapshot, PastError> {
        let mut former = Former::default();
        // The end of the log at the revision.
        let mut end: Option<Tip> = None;
        // The oldest revision that can be restored, if it is newer than the revision.
        let mut oldest = None;
        let mut last = None;
        self.engine.walk(revision, &mut |before, batch| {
            // The current state is without newer batches.
            if batch.revision > current.revision {
                return Ok(());
            }
            if last.is_none() && before.revision > revision {
                oldest = Some(before.revision);
            }
            let after = batch.revision;
            last = Some(after);
            if before.revision == revision {
                end = Some(before);
            }
            if after > before.revision && after > revision {
                former.add(&batch);
            }
            Ok(())
        })?;
        match (end, oldest) {
            (Some(end), None) if last == Some(current.revision) => {
                Ok(former.before(current, revision, end.next_order, self.keyring.as_deref())?)
            }
            (_, oldest) => Err(PastError::Gone { revision, oldest: oldest.unwrap_or(current.revision) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_was_being_restored_while_all_were_forgotten_is_not_kept() {
        let (states, state) = (PastStates::default(), Arc::new(Snapshot::default()));
        let before = states.get(state.revision).err().unwrap_or(u64::MAX);
        states.keep(&state, before);
        assert!(states.get(state.revision).is_ok());
        states.forget();
        assert!(states.get(state.revision).is_err());
        states.keep(&state, before);
        assert!(states.get(state.revision).is_err());
        let now = states.get(state.revision).err().unwrap_or(u64::MAX);
        states.keep(&state, now);
        assert!(states.get(state.revision).is_ok());
    }
}

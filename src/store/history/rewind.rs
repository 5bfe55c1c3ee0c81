//! Rewinds the current state to an earlier revision (D79).
//!
//! # The problem
//!
//! A rollback, a read with `at=` and a restore need the state of any revision that is kept. States on the disk for all of
//! them would be the store a thousand times, and a replay from the beginning of the history would make yesterday as expensive
//! as the first day, which retention may have removed.
//!
//! # The idea
//!
//! Only the newest state is kept as a whole. The log has, for every record that a commit changed, the value before it. Of all
//! commits since the revision, the *oldest* one that changed a record has the value that the record had then:
//!
//! ```text
//! revision 4   shop = A   docs = X
//! revision 5   shop: A -> B
//! revision 6   shop: B -> C   new: +api
//! revision 7   docs: X -> Y
//! now          shop = C   docs = Y   api
//!
//! at 4         shop = A (before 5)   docs = X (before 7)   api did not exist (before 6)
//! at 6         shop = C (not changed since)   docs = X   api
//! ```
//!
//! So a state costs as much as what has changed since, and shares everything else with the current one. The last four stay in
//! memory, because the pages of a list are requested one after another.
//!
//! # What it never does
//!
//! A state is never guessed: if a commit since the revision is no longer kept, there is no state, and the error says
//! from which revision on there is. Secrets whose data key is destroyed stay lost, unless the digests show that the
//! current state has the same ones.

use std::sync::Arc;

use thiserror::Error;

use super::change_window::NextRevision;
use crate::model::Snapshot;
use crate::store::commit::batch::Tip;
use crate::store::commit::codec::FormerValues;
use crate::store::error::StoreError;
use crate::store::open_store::Store;
use crate::store::read_again::read_again;

/// Why there is no state of a revision.
#[derive(Debug, Error)]
pub enum RevisionError {
    /// The revision is newer than the store.
    #[error("revision {revision} does not exist; the store is at revision {current}")]
    Future {
        /// The revision.
        revision: u64,
        /// The current revision.
        current: u64,
    },
    /// The history no longer has all changes since the revision.
    #[error("the state of revision {revision} is no longer kept; the oldest revision is {oldest}")]
    Gone {
        /// The revision.
        revision: u64,
        /// The oldest revision whose state can be restored.
        oldest: u64,
    },
    /// The store failed.
    #[error(transparent)]
    Failed(#[from] StoreError),
}

impl Store {
    /// Returns the state of a revision: exactly what it was, including secrets, unless their data key was destroyed (D96).
    /// The state of an earlier revision is restored from the history, which reads from disk.
    pub fn snapshot_at(&self, revision: u64) -> Result<Arc<Snapshot>, RevisionError> {
        let current = self.snapshot();
        if revision == current.revision {
            return Ok(current);
        }
        if revision > current.revision {
            return Err(RevisionError::Future { revision, current: current.revision });
        }
        let (known, version) = self.earlier_states.get(&revision);
        if let Some(state) = known {
            return Ok(state);
        }
        let state = self.restored(&current, revision)?;
        self.earlier_states.keep(revision, Arc::clone(&state), version);
        Ok(state)
    }

    /// Returns the state of a revision for a look that nobody repeats: a restored one displaces none of those that are kept for
    /// others.
    pub(crate) fn glance_at(&self, revision: u64) -> Result<Arc<Snapshot>, RevisionError> {
        if let Some(NextRevision::Here(recent)) = revision.checked_sub(1).map(|before| self.change_window.next(before))
        {
            return Ok(recent.snapshot);
        }
        let current = self.snapshot();
        if revision == current.revision {
            return Ok(current);
        }
        match self.earlier_states.get(&revision) {
            (Some(state), _) => Ok(state),
            (None, _) => self.restored(&current, revision),
        }
    }

    fn restored(&self, current: &Snapshot, revision: u64) -> Result<Arc<Snapshot>, RevisionError> {
        let restored = read_again(|| self.rewind(current, revision))?;
        restored.map(Arc::new).map_err(|oldest| RevisionError::Gone { revision, oldest })
    }

    /// Returns the state of a revision, or the oldest revision that can be restored.
    fn rewind(&self, current: &Snapshot, revision: u64) -> Result<Result<Snapshot, u64>, StoreError> {
        let mut former = FormerValues::default();
        // The end of the log at the revision.
        let mut end: Option<Tip> = None;
        // The oldest revision that can be restored, if it is newer than the revision.
        let mut oldest = None;
        let mut last = None;
        self.walk(revision, &mut |before, batch| {
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
                former.before(current, revision, end.next_order, self.keyring.as_deref()).map(Ok)
            }
            (_, oldest) => Ok(Err(oldest.unwrap_or(current.revision))),
        }
    }
}

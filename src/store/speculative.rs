//! The input of a commit: operations, or the result of operations that were tried on it before.
//!
//! A plan of 100,000 operations is tried before it is shown, so that it says whether it would be refused. To apply it again
//! inside the commit would take as long, and all other writers would wait for it. So a speculative commit keeps the state that
//! it led to. If the store is still at the state that it began with, the commit takes that result; if others have committed
//! since, or it is more than a minute old, it is not used. What is committed is the same in both cases.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{attempt::Attempt, clock};
use crate::model::{Key, Operation, Snapshot, snapshot::Refusal};

/// An older try is not committed: its time would be that of the new resources.
const LONGEST: Duration = Duration::from_secs(60);

/// The state after operations, which a commit can take instead of applying them again. For a large plan that takes as
/// long as everything else under the lock.
#[derive(Debug)]
pub(crate) struct SpeculativeCommit {
    before: Snapshot,
    after: Snapshot,
    changed: Arc<BTreeSet<Key>>,
    at: Timestamp,
    began: Instant,
}

impl SpeculativeCommit {
    /// Applies operations to a state, without committing them.
    pub(crate) fn new(before: &Snapshot, operations: &[&Operation]) -> Result<Self, Refusal> {
        let (at, began) = (clock::now(), Instant::now());
        let (after, changed) = before.apply(operations, at)?;
        Ok(Self { before: before.clone(), after, changed: Arc::new(changed), at, began })
    }

    /// Whether the operations were applied to this very state, a moment ago.
    pub(crate) fn fits(&self, current: &Snapshot) -> bool {
        self.before.is_same(current) && self.began.elapsed() < LONGEST
    }

    /// The state after the operations.
    pub(crate) fn after(&self) -> &Snapshot {
        &self.after
    }
}

/// The changes of a commit to the state that it was computed from.
pub(crate) enum NextState {
    /// The operations to apply.
    Operations(Vec<Operation>),
    /// The result of operations that were tried on this state, and their calls.
    Speculative(Arc<SpeculativeCommit>, Vec<String>),
    /// No other resources: a source accepts those of the state, so that none of its manifests are rejected any longer (D78).
    Accepted,
}

impl NextState {
    /// Whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            NextState::Operations(operations) => operations.is_empty(),
            NextState::Speculative(..) | NextState::Accepted => false,
        }
    }

    /// Dates an attempt: resources are as old as the record that creates them.
    pub(super) fn dated(&self, attempt: Attempt) -> Attempt {
        match self {
            NextState::Operations(_) | NextState::Accepted => attempt,
            NextState::Speculative(tried, _) => {
                Attempt { at: tried.at, began: attempt.began.min(tried.began), ..attempt }
            }
        }
    }

    /// Returns the state after `before` and the changed keys.
    pub(super) fn next(&self, before: &Snapshot, at: Timestamp) -> Result<(Snapshot, Arc<BTreeSet<Key>>), Refusal> {
        match self {
            NextState::Operations(operations) => {
                before.apply(operations, at).map(|(next, changed)| (next, Arc::new(changed)))
            }
            NextState::Speculative(tried, _) => Ok((tried.after.clone(), Arc::clone(&tried.changed))),
            NextState::Accepted => before.apply::<Operation>(&[], at).map(|(next, changed)| (next, Arc::new(changed))),
        }
    }

    /// Returns the calls, for the history.
    pub(super) fn into_calls(self) -> Vec<String> {
        match self {
            NextState::Operations(operations) => operations.iter().map(ToString::to_string).collect(),
            NextState::Speculative(_, calls) => calls,
            NextState::Accepted => {
                vec!["(in sync: the manifests that a rollback undid can be applied again)".to_owned()]
            }
        }
    }
}

//! The input of a commit: operations, or the result of operations that were tried on it before.
//!
//! A plan of 100,000 operations is tried before it is shown, so that it says whether it would be refused. To apply it again
//! inside the commit would take as long, and all other writers would wait for it. So a speculative commit keeps the state that
//! it led to. If the store is still at the state that it began with, the commit takes that result; if others have committed
//! since, or it is more than a minute old, it is not used. What is committed is the same in both cases.
//!
//! Every commit of this process gets its next state here, so invariants are enforced here (D120).

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{attempt::Attempt, clock};
use crate::model::{Fault, Key, Operation, Path, Snapshot, snapshot::Refusal};
use crate::routing::invariant::enforce;

/// An older try is not committed: its time would be that of the new resources.
const LONGEST: Duration = Duration::from_secs(60);

/// The state after operations, which a commit can take instead of applying them again. For a large plan that takes as
/// long as everything else under the lock.
#[derive(Debug)]
pub(crate) struct SpeculativeCommit {
    before: Snapshot,
    after: Snapshot,
    changed: Arc<BTreeSet<Key>>,
    /// The invariants of which nobody can tell any longer whether they hold, each with the resource that it depends on.
    doubts: Vec<(Key, Fault)>,
    at: Timestamp,
    began: Instant,
}

impl SpeculativeCommit {
    /// Applies operations to a state, without committing them. Returns every refusal at which a manifest can be corrected.
    pub(crate) fn new(before: &Snapshot, operations: &[&Operation]) -> Result<Self, CommitRefusals> {
        let (at, began) = (clock::now(), Instant::now());
        let NextSnapshot { after, changed, doubts } = NextSnapshot::new(before, operations, at)?;
        Ok(Self { before: before.clone(), after, changed, doubts, at, began })
    }

    /// Whether the operations were applied to this very state, a moment ago.
    pub(crate) fn fits(&self, current: &Snapshot) -> bool {
        self.before.is_same(current) && self.began.elapsed() < LONGEST
    }

    /// The state before the operations.
    pub(crate) fn before(&self) -> &Snapshot {
        &self.before
    }

    /// The state after the operations.
    pub(crate) fn after(&self) -> &Snapshot {
        &self.after
    }

    /// The changed keys.
    pub(crate) fn changed(&self) -> &BTreeSet<Key> {
        &self.changed
    }

    /// The invariants of which nobody can tell after the operations whether they hold, each with the resource that it
    /// depends on.
    pub(crate) fn doubts(&self) -> &[(Key, Fault)] {
        &self.doubts
    }
}

/// A state after operations, which meets all invariants as far as anybody can tell.
pub(super) struct NextSnapshot {
    pub(super) after: Snapshot,
    /// The changed keys.
    pub(super) changed: Arc<BTreeSet<Key>>,
    /// The invariants of which nobody can tell any longer whether they hold, each with the resource that it depends on.
    pub(super) doubts: Vec<(Key, Fault)>,
}

impl NextSnapshot {
    fn new<O: Borrow<Operation> + Sync>(
        before: &Snapshot,
        operations: &[O],
        at: Timestamp,
    ) -> Result<Self, CommitRefusals> {
        let (after, changed) = before.apply(operations, at)?;
        let doubts =
            enforce(before, &after, &changed, at).map_err(|(first, others)| CommitRefusals { first, others })?;
        Ok(Self { after, changed: Arc::new(changed), doubts })
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

    /// Returns the state after `before`.
    pub(super) fn next(&self, before: &Snapshot, at: Timestamp) -> Result<NextSnapshot, Refusal> {
        match self {
            NextState::Operations(operations) => {
                NextSnapshot::new(before, operations, at).map_err(CommitRefusals::into_one)
            }
            NextState::Speculative(tried, _) => {
                let SpeculativeCommit { after, changed, doubts, .. } = tried.as_ref();
                Ok(NextSnapshot { after: after.clone(), changed: Arc::clone(changed), doubts: doubts.clone() })
            }
            NextState::Accepted => {
                let (after, changed) = before.apply::<Operation>(&[], at)?;
                Ok(NextSnapshot { after, changed: Arc::new(changed), doubts: Vec::new() })
            }
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

/// Why operations are refused, at each resource at which that can be corrected.
#[derive(Debug)]
pub(crate) struct CommitRefusals {
    first: Refusal,
    others: Vec<Refusal>,
}

impl From<Refusal> for CommitRefusals {
    fn from(first: Refusal) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl CommitRefusals {
    /// All of them.
    pub(crate) fn into_vec(self) -> Vec<Refusal> {
        [vec![self.first], self.others].concat()
    }

    /// One refusal with all faults.
    pub(crate) fn into_one(self) -> Refusal {
        let Refusal { key, mut faults } = self.first;
        // A path in another resource would be read as one in the first.
        let others = self.others.into_iter().flat_map(|refusal| refusal.faults);
        faults.extend(others.map(|fault| fault.at(Path::root())));
        Refusal { key, faults }
    }
}

//! The result of a loop's last sync, as long as it is valid.

use super::clock::Clock;
use crate::lint;
use crate::lint::validity::findings_valid_until;
use crate::reconcile::prelude::*;
use crate::reconcile::run::options::Options;
use crate::reconcile::run::plan_result::PlanResult;

/// The interval of full runs, even without changes.
const LONGEST_FRESHNESS: Duration = Duration::from_secs(3600);

/// A run that is over.
pub(crate) struct FinishedRun<'a> {
    /// The plan.
    pub planned: &'a PlanResult,
    /// The revision of the store after it.
    pub revision: u64,
    /// The time from which lints may report something else.
    pub until: Option<Timestamp>,
}

impl<'a> FinishedRun<'a> {
    /// A run that judged the manifests just now.
    pub(crate) fn judged_now(planned: &'a PlanResult, revision: u64, options: &Options) -> Self {
        let days = options.lints.certificate_expiry_days.unwrap_or(lint::EXPIRY_DAYS);
        Self { planned, revision, until: findings_valid_until(&planned.desired, clock::now(), days) }
    }
}

/// A record that the store matched the folder.
pub(super) struct Freshness {
    revision: u64,
    at: Instant,
    /// The time from which lints may report something else.
    until: Option<Timestamp>,
}

impl Freshness {
    /// The store matches the folder at a revision. Lints may report something else from a time on, if a run judged them now.
    pub(super) fn new(revision: u64, until: Option<Timestamp>, clock: &Clock) -> Self {
        Self { revision, at: clock.now(), until }
    }

    /// Whether the store is unchanged since. Expires, because lints depend on the time.
    pub(super) fn holds(&self, store: &Store, clock: &Clock) -> bool {
        store.snapshot().revision == self.revision
            && clock.now().saturating_duration_since(self.at) < LONGEST_FRESHNESS
            && self.until.is_none_or(|until| clock.time() < until)
    }
}

//! The result of a loop's last sync, as long as it is valid.

use super::clock::Clock;
use crate::reconcile::prelude::*;

/// The interval of full runs, even without changes.
const LONGEST_FRESHNESS: Duration = Duration::from_secs(3600);

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

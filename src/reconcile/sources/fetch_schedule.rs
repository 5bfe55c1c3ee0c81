//! When the repository of a source is fetched (D88).
//!
//! A fetch is due with the first sync, at each interval, and when a webhook asks for it; any other sync reads the
//! mirror as it is. After a failure the pause doubles, up to ten intervals or ten minutes, and is shortened at random,
//! so that many servers do not return to a forge at the same moment. A request during a fetch is about what that fetch
//! may have missed: it is one flag, so any number of webhooks cause one more fetch.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::Rng;

use crate::manifest::tree::remote::{RemoteMirror, RemoteUrl};
use crate::reconcile::prelude::*;
use crate::syntax::text::escaped;

/// The longest pause between attempts, unless the interval is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// The longest pause in intervals.
const MOST_INTERVALS: u32 = 10;

/// The fetches of a source.
#[derive(Debug)]
pub(crate) struct FetchSchedule {
    source: String,
    mirror: Arc<RemoteMirror>,
    interval: Duration,
    /// Whether a change is known.
    is_requested: AtomicBool,
    state: Lock<ScheduleState>,
}

#[derive(Debug)]
struct ScheduleState {
    /// When the next fetch is due.
    due: Instant,
    /// The failures since the last success.
    failures: u32,
}

impl FetchSchedule {
    /// The fetches into a mirror; the first one is due now.
    pub(crate) fn new(source: &str, mirror: Arc<RemoteMirror>, interval: Duration) -> Self {
        let state = Lock::new(ScheduleState { due: Instant::now(), failures: 0 });
        Self { source: source.to_owned(), mirror, interval, is_requested: AtomicBool::new(false), state }
    }

    /// Why the last fetch failed, if it did.
    pub(crate) fn failure(&self) -> Option<Diagnostic> {
        self.mirror.failure()
    }

    /// How long until the next fetch is due.
    pub(super) fn pause(&self) -> Duration {
        self.state.lock().due.saturating_duration_since(Instant::now())
    }

    /// Whether one of the URLs is the repository's.
    pub(super) fn is_of_any(&self, urls: &[RemoteUrl]) -> bool {
        urls.iter().any(|url| url.is_same_repository(&self.mirror.url))
    }

    /// Requests a fetch. Returns whether the request is the first one since the last fetch began.
    pub(super) fn request(&self) -> bool {
        !self.is_requested.swap(true, Ordering::AcqRel)
    }

    /// Fetches if it is due. `goes_on` is called meanwhile; once it returns false, the fetch is given up. Returns whether
    /// the repository has become reachable or unreachable.
    pub(crate) fn fetch_if_due(&self, goes_on: &mut dyn FnMut() -> bool) -> bool {
        // A request during a fetch is about what that fetch may have missed.
        if !self.is_requested.swap(false, Ordering::AcqRel) && !self.pause().is_zero() {
            return false;
        }
        let before = self.failure().map(|failure| failure.message);
        let is_fetched = self.mirror.fetch(goes_on);
        let mut state = self.state.lock();
        state.failures = if is_fetched { 0 } else { state.failures.saturating_add(1) };
        let pause = pause_after(self.interval, state.failures, rand::rng().random());
        state.due = Instant::now() + pause;
        drop(state);
        let source = self.source.as_str();
        let after = self.failure();
        match &after {
            Some(failure) if before.as_ref() != Some(&failure.message) => {
                tracing::warn!(source, code = %failure.code, "{}", escaped(&failure.message));
            }
            None if before.is_some() => tracing::info!(source, "the repository can be fetched again"),
            _ => {}
        }
        before.is_some() != after.is_some()
    }
}

/// The pause before the next fetch: the interval, and after failures twice as long each time, up to ten intervals or ten
/// minutes. `chance` is between 0 and 1 and spreads the attempts of many servers.
fn pause_after(interval: Duration, failures: u32, chance: f64) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else { return interval };
    let longest = interval.saturating_mul(MOST_INTERVALS).min(LONGEST_PAUSE).max(interval);
    let pause = interval.saturating_mul(2_u32.saturating_pow(doublings)).min(longest);
    pause.mul_f64(1.0 - 0.25 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_double_the_pause_up_to_ten_intervals_or_ten_minutes() {
        let of = |interval: u64, failures: u32| pause_after(Duration::from_secs(interval), failures, 0.0).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 5, 100].map(|failures| of(30, failures)), [30, 30, 60, 120, 240, 300, 300]);
        assert_eq!([1, 2, 3, 4, 5].map(|failures| of(120, failures)), [120, 240, 480, 600, 600]);
        assert_eq!([0, 1, 50].map(|failures| of(3600, failures)), [3600, 3600, 3600]);
        assert_eq!(of(86_400, u32::MAX), 86_400, "no overflow");
    }

    #[test]
    fn chance_shortens_only_the_pause_after_a_failure_and_by_a_quarter_at_most() {
        let second = Duration::from_secs(1);
        assert_eq!(pause_after(100 * second, 0, 1.0), 100 * second);
        assert_eq!(pause_after(100 * second, 1, 1.0), 75 * second);
        assert_eq!(pause_after(100 * second, 1, 7.0), 75 * second);
    }
}

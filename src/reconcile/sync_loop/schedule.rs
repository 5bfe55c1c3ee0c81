//! When a loop syncs its source next, and what wakes it.
//!
//! It is decided from the events that came and the time alone, both of which a test provides: a burst of events is
//! followed by one sync, once they have paused for [`QUIET`], or after [`LONGEST_DEBOUNCE`] if they never do. A rest,
//! after a panic for example, ignores events.

use std::time::{Duration, Instant};

/// How long a followed file must stay the same before it is read: an editor may still be writing it.
pub(crate) const QUIET: Duration = Duration::from_millis(150);
/// The longest wait for that.
pub(crate) const LONGEST_DEBOUNCE: Duration = Duration::from_secs(2);
/// How often a path is checked: swapping a link or folder far above it causes no event.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// A request to the loop.
#[derive(Debug)]
pub(crate) enum Signal {
    Sync,
    Stop,
}

/// The state that decides when a loop syncs next.
#[derive(Debug)]
pub(super) struct Schedule {
    /// When it syncs without an event.
    due: Instant,
    /// Whether events are ignored until then.
    is_resting: bool,
    /// The first and the last event since the last sync.
    burst: Option<(Instant, Instant)>,
}

impl Schedule {
    /// A schedule for a sync after a time, or sooner if there is an event.
    pub(super) fn within(now: Instant, time: Duration) -> Self {
        Self { due: now + time, is_resting: false, burst: None }
    }

    /// A schedule for a sync after a time, whatever happens.
    pub(super) fn rest(now: Instant, time: Duration) -> Self {
        Self { is_resting: true, ..Self::within(now, time) }
    }

    /// Records an event.
    pub(super) fn event(&mut self, now: Instant) {
        if !self.is_resting {
            let first = self.burst.map_or(now, |(first, _)| first);
            self.burst = Some((first, now));
        }
    }

    /// Whether no event has come, and one would count.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_resting && self.burst.is_none()
    }

    /// How long the loop waits for an event, at most. None if it syncs now.
    pub(super) fn left(&self, now: Instant) -> Option<Duration> {
        let at = self.burst.map_or(self.due, |(first, last)| (last + QUIET).min(first + LONGEST_DEBOUNCE));
        let left = Some(at.saturating_duration_since(now)).filter(|left| !left.is_zero())?;
        Some(if self.is_idle() { left.min(TICK) } else { left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_waits_until_events_stop_and_not_for_ever() {
        let (began, ms) = (Instant::now(), Duration::from_millis);
        let mut schedule = Schedule::within(began, ms(30_000));
        assert_eq!(schedule.left(began), Some(TICK));
        assert_eq!(schedule.left(began + ms(29_900)), Some(ms(100)));
        assert_eq!(schedule.left(began + ms(30_000)), None);
        schedule.event(began + ms(1_000));
        assert_eq!(schedule.left(began + ms(1_100)), Some(ms(50)));
        for at in (1_100..3_000).step_by(100) {
            schedule.event(began + ms(at));
            assert_ne!(schedule.left(began + ms(at)), None, "the folder is not quiet");
        }
        assert_eq!(schedule.left(began + ms(2_990)), Some(ms(10)));
        assert_eq!(schedule.left(began + ms(3_000)), None);
    }

    #[test]
    fn events_do_not_end_a_rest() {
        let (began, ms) = (Instant::now(), Duration::from_millis);
        let mut schedule = Schedule::rest(began, ms(4_000));
        schedule.event(began + ms(10));
        assert_eq!(schedule.left(began + ms(10)), Some(ms(3_990)));
        assert_eq!(schedule.left(began + ms(4_000)), None);
    }
}

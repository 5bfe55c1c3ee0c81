//! The time that a store trusts, and what may be removed because of its age (D58).
//!
//! # The problem
//!
//! Records of the history go after two years, and former data keys after a month. Both are gone forever, and both are decided
//! by a clock. A machine that starts can show 2099 until it is corrected from the network, seconds later. In these seconds,
//! everything is old. Another one shows 1970, and what it writes then seems to be fifty years old ever after.
//!
//! # The idea
//!
//! A process cannot know the time, but it knows how much time has passed while it ran. So the store has a time of its own,
//! which is saved with the keys, and grows with the process's uptime. A clock that agrees within an hour is right. Any other
//! reading is a *jump*, and counts only when it has lasted for a day: the process has seen the clock go on from it for as
//! long or, between two commands, the clock has not gone back.
//!
//! ```text
//! the store knows   the clock says   in the process for
//! 2026-11-01 12:00  2026-11-01 12:05  …                   right: the store takes it
//! 2026-11-01 12:05  2099-01-01 00:00  3 s                 a jump: nothing ages
//! 2026-11-01 12:05  2026-11-01 12:05  4 s                 right again: the jump is forgotten
//!
//! 2026-11-01 12:05  2029-11-01 12:00  1 s                 the store was off for three years, or the clock is wrong
//! 2026-11-02 12:05  2029-11-02 12:00  24 h                it has lasted: the store takes it
//! ```
//!
//! Even then, only a quarter of what is kept goes at once, and nothing more for a day: if the clock is wrong for long, people
//! have days to notice the lines in the log.
//!
//! # What it never does
//!
//! Ages are never counted to a time later than the clock, so a store that was ahead for a while ages nothing until the
//! clock is there. Limits of records and bytes, and secrets that somebody wants gone, do not ask it. The newest record
//! is no clock: two commands with a wrong one would age everything, and a store that nobody changes would keep its
//! secrets forever.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The log target of what is removed because of a limit or its age (D58).
pub(crate) const REMOVAL: &str = "edgewright::store::removal";

/// How far the clock may be from the expected time, and clocks of several servers from each other.
pub(crate) const TOLERANCE: SignedDuration = SignedDuration::from_hours(1);
/// How long another time must last before it counts, and how long nothing more is removed after a removal.
const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How far the trusted time moves until it is saved again. The clock of a server that starts or takes over soon after the last one
/// must be within [`TOLERANCE`] of what was saved: it would be a jump otherwise, and nothing would age for a day.
const SAVED_AFTER: SignedDuration = SignedDuration::from_mins(20);
/// At most one of so many parts of what is kept is removed at once because of its age.
const PARTS: u64 = 4;

/// The time as a store knows it. Saved, so that each process continues from what earlier ones have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownTime {
    /// The trusted time.
    reached: Timestamp,
    /// Where the clock has jumped to, as long as that does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jump: Option<Timestamp>,
    /// When something was last removed because of its age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    removed: Option<Timestamp>,
}

impl KnownTime {
    /// A time that the store has seen.
    pub(crate) fn at(reached: Timestamp) -> Self {
        Self { reached, jump: None, removed: None }
    }

    /// The trusted time.
    pub(crate) fn reached(&self) -> Timestamp {
        self.reached
    }

    /// The trusted time, and where the clock is instead, if that does not count yet.
    pub(crate) fn disagreement(&self) -> Option<(Timestamp, Timestamp)> {
        self.jump.map(|jump| (self.reached, jump))
    }
}

/// A reading of the clock, as far as it is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrustedMoment {
    /// The trusted time. New data keys are dated with it.
    pub(crate) now: Timestamp,
    /// The time that ages are counted to. It is never later than the clock, and [`Timestamp::MIN`], which is after nothing,
    /// for a day after a removal.
    pub(crate) ages: Timestamp,
}

/// Decides which readings of the clock count. Time that this process has seen pass counts at once, anything else when it has
/// lasted.
#[derive(Debug)]
pub(crate) struct TrustedTime {
    known: KnownTime,
    saved: KnownTime,
    /// How long the process had run at the last reading.
    read_at: Option<Duration>,
    /// How long it had run when it noticed the jump; none if an earlier process has.
    jumped_at: Option<Duration>,
}

impl TrustedTime {
    /// Starts with what earlier processes have saved.
    pub(crate) fn new(known: KnownTime) -> Self {
        Self { known, saved: known, read_at: None, jumped_at: None }
    }

    /// Takes a reading of the clock after the process has run for `uptime`.
    pub(crate) fn read(&mut self, clock: Timestamp, uptime: Duration) -> TrustedMoment {
        let last = self.read_at.replace(uptime).unwrap_or(uptime);
        let expected = after(self.known.reached, since(last, uptime));
        self.known.reached = match clock.duration_since(expected).abs() <= TOLERANCE {
            true => {
                self.end_jump();
                clock
            }
            false => self.jumped(clock, expected, uptime),
        };
        // A clock that was wrong for days and is right again must not end removals for as long as it was ahead.
        self.known.removed = self.known.removed.map(|removed| removed.min(self.known.reached));
        let now = self.known.reached;
        let rests = self.known.removed.is_some_and(|removed| now.duration_since(removed) < DAY);
        TrustedMoment { now, ages: if rests { Timestamp::MIN } else { now.min(clock) } }
    }

    /// The trusted time while the clock is elsewhere.
    fn jumped(&mut self, clock: Timestamp, expected: Timestamp, uptime: Duration) -> Timestamp {
        let Some(jump) = self.known.jump.filter(|jump| self.goes_on(*jump, clock, uptime)) else {
            (self.known.jump, self.jumped_at) = (Some(clock), Some(uptime));
            return expected;
        };
        let lasted = self.jumped_at.map_or(clock.duration_since(jump), |at| since(at, uptime));
        if lasted < DAY {
            return expected;
        }
        if self.jumped_at.is_some() || clock < expected {
            self.end_jump();
            return clock;
        }
        // Nobody has seen how much time has passed since an earlier process noticed the jump. What that one saw has lasted.
        (self.known.jump, self.jumped_at) = (Some(clock), Some(uptime));
        expected.max(jump)
    }

    /// Whether the clock has gone on since a jump, without another one.
    fn goes_on(&self, jump: Timestamp, clock: Timestamp, uptime: Duration) -> bool {
        match self.jumped_at {
            Some(at) => clock.duration_since(after(jump, since(at, uptime))).abs() <= TOLERANCE,
            None => clock >= jump,
        }
    }

    fn end_jump(&mut self) {
        (self.known.jump, self.jumped_at) = (None, None);
    }

    /// Notes that something was removed because of its age.
    pub(crate) fn note_removal(&mut self) {
        self.known.removed = Some(self.known.reached);
    }

    /// Returns what should be saved, if anything. It counts as saved then: the next time is soon enough if it cannot be.
    pub(crate) fn unsaved(&mut self) -> Option<KnownTime> {
        let KnownTime { reached, jump, removed } = self.saved;
        let is_late = self.known.reached.duration_since(reached).abs() >= SAVED_AFTER;
        let is_unsaved = is_late || (jump, removed) != (self.known.jump, self.known.removed);
        is_unsaved.then(|| {
            self.saved = self.known;
            self.known
        })
    }
}

/// Returns how many of so many things can be removed at once because of their age.
pub(crate) fn most_at_once(kept: u64) -> u64 {
    (kept / PARTS).max(1)
}

fn since(earlier: Duration, later: Duration) -> SignedDuration {
    SignedDuration::try_from(later.saturating_sub(earlier)).unwrap_or(SignedDuration::MAX)
}

fn after(time: Timestamp, passed: SignedDuration) -> Timestamp {
    time.checked_add(passed).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;
    const YEARS: i64 = 3 * 365 * 24;

    /// So many hours after the store was made.
    fn hours(hours: i64) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start.checked_add(SignedDuration::from_hours(hours)).unwrap()
    }

    fn minutes(minutes: i64) -> Timestamp {
        hours(0).checked_add(SignedDuration::from_mins(minutes)).unwrap()
    }

    fn uptime(hours: i64) -> Duration {
        Duration::from_secs(u64::try_from(hours).unwrap() * HOUR)
    }

    /// Reads a right clock every hour.
    fn run(time: &mut TrustedTime, from: i64, until: i64) -> TrustedMoment {
        let mut moment = None;
        for hour in from..=until {
            moment = Some(time.read(hours(hour), uptime(hour)));
        }
        moment.unwrap()
    }

    #[test]
    fn time_that_passes_counts_at_once() {
        let mut time = TrustedTime::new(KnownTime::at(hours(0)));
        let moment = run(&mut time, 0, 1000);
        assert_eq!(moment, TrustedMoment { now: hours(1000), ages: hours(1000) });
    }

    #[test]
    fn a_clock_that_is_wrong_for_a_moment_ages_nothing() {
        for wrong in [YEARS, -YEARS, 25, 2, -2] {
            let mut time = TrustedTime::new(KnownTime::at(hours(0)));
            run(&mut time, 0, 1000);
            // More than one reading, and another wrong time between.
            for off in [wrong, wrong, wrong + YEARS + 7, wrong] {
                let moment = time.read(hours(1000 + off), uptime(1000) + Duration::from_secs(3));
                let expected = hours(1000).checked_add(SignedDuration::from_secs(3)).unwrap();
                assert_eq!(
                    moment,
                    TrustedMoment { now: expected, ages: expected.min(hours(1000 + off)) },
                    "{wrong} {off}"
                );
            }
            assert_eq!(run(&mut time, 1001, 1001).ages, hours(1001), "{wrong}");
            assert_eq!(time.known, KnownTime::at(hours(1001)), "the jump is forgotten");
        }
    }

    #[test]
    fn a_process_that_starts_with_a_wrong_clock_ages_nothing() {
        let mut known = KnownTime::at(hours(0));
        for round in 0..5 {
            let mut time = TrustedTime::new(known);
            assert_eq!(time.read(hours(YEARS + round), uptime(0)).ages, hours(0), "{round}");
            known = time.unsaved().unwrap_or(known);
        }
        // The clock is right again, and wrong once more: only the time between has lasted.
        let mut time = TrustedTime::new(known);
        assert_eq!(time.read(hours(6), uptime(0)).now, hours(0));
        let mut time = TrustedTime::new(time.unsaved().unwrap());
        assert_eq!(time.read(hours(YEARS + 30), uptime(0)).ages, hours(6));
    }

    #[test]
    fn a_store_that_was_not_used_for_long_trusts_the_clock_after_a_day() {
        let mut time = TrustedTime::new(KnownTime::at(hours(0)));
        for hour in 0..24 {
            let expected = TrustedMoment { now: hours(hour), ages: hours(hour) };
            assert_eq!(time.read(hours(2 * YEARS + hour), uptime(hour)), expected);
        }
        assert_eq!(time.read(hours(2 * YEARS + 24), uptime(24)).ages, hours(2 * YEARS + 24));
    }

    #[test]
    fn commands_trust_what_was_seen_a_day_before() {
        let (mut known, mut ages) = (KnownTime::at(hours(0)), Vec::new());
        // A run each week, and several on one day.
        for hour in [168, 169, 170, 336, 337, 504] {
            let mut time = TrustedTime::new(known);
            ages.push(time.read(hours(hour), uptime(0)).ages);
            known = time.unsaved().unwrap_or(time.known);
        }
        assert_eq!(ages, [hours(0), hours(0), hours(0), hours(168), hours(168), hours(336)]);
    }

    #[test]
    fn a_clock_that_was_set_back_counts_after_a_day_and_ages_nothing_meanwhile() {
        let mut time = TrustedTime::new(KnownTime::at(hours(YEARS)));
        for hour in 0..24 {
            assert_eq!(time.read(hours(hour), uptime(hour)).ages, hours(hour));
        }
        assert_eq!(time.read(hours(24), uptime(24)), TrustedMoment { now: hours(24), ages: hours(24) });
        // Also if each process only takes a look.
        let mut known = KnownTime::at(hours(YEARS));
        for hour in [0, 25] {
            let mut time = TrustedTime::new(known);
            assert_eq!(time.read(hours(hour), uptime(0)).ages, hours(hour));
            known = time.unsaved().unwrap();
        }
        assert_eq!(known.reached, hours(25));
    }

    #[test]
    fn nothing_is_removed_for_a_day_after_a_removal() {
        let mut time = TrustedTime::new(KnownTime::at(hours(0)));
        run(&mut time, 0, 10);
        time.note_removal();
        assert_eq!(run(&mut time, 11, 33), TrustedMoment { now: hours(33), ages: Timestamp::MIN });
        let mut time = TrustedTime::new(time.unsaved().unwrap());
        assert_eq!(time.read(hours(33), uptime(0)).ages, Timestamp::MIN, "also after a restart");
        assert_eq!(time.read(hours(34), uptime(1)).ages, hours(34));
        // What was removed while the clock was ahead does not end removals.
        let mut time = TrustedTime::new(KnownTime { removed: Some(hours(YEARS)), ..KnownTime::at(hours(0)) });
        assert_eq!(run(&mut time, 0, 23).ages, Timestamp::MIN);
        assert_eq!(run(&mut time, 24, 24).ages, hours(24));
    }

    #[test]
    fn the_time_is_saved_from_time_to_time() {
        let mut time = TrustedTime::new(KnownTime::at(hours(0)));
        let saved = (0..12).filter(|reading| {
            time.read(minutes(10 * *reading), Duration::from_secs(600 * *reading as u64));
            time.unsaved().is_some()
        });
        assert_eq!(saved.count(), 5);
    }

    #[test]
    fn a_server_that_takes_over_goes_on_with_the_time_of_the_one_before() {
        let mut time = TrustedTime::new(KnownTime::at(hours(0)));
        let saved = (0..1000).filter_map(|reading| {
            time.read(minutes(30 * reading), Duration::from_secs(1800 * reading as u64));
            time.unsaved()
        });
        let saved = saved.last().unwrap();
        // The last reading was almost half an hour ago, and the clocks differ by a minute.
        for differs in [-1, 1] {
            let clock = minutes(30 * 999 + 29 + differs);
            let moment = TrustedTime::new(saved).read(clock, Duration::ZERO);
            assert_eq!(moment, TrustedMoment { now: clock, ages: clock });
        }
    }

    #[test]
    fn a_part_of_what_is_kept_is_removed_at_once() {
        assert_eq!([0, 1, 3, 8, 100].map(most_at_once), [1, 1, 1, 2, 25]);
    }
}

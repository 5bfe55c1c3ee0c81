//! The health of the reconcile loop, as a condition (D33), for `/readyz` and `/metrics` (D52).

use super::clock::Clock;
use super::condition::{Condition, Reason, Status};
use crate::reconcile::prelude::*;

/// A longer run is considered stuck.
const LONGEST_RUN: Duration = Duration::from_secs(600);

/// Whether the server is ready for requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Ready.
    Ready,
    /// Ready with the last good state.
    Degraded(String),
    /// Not ready.
    NotReady(String),
}

/// The state that the loop records.
#[derive(Debug)]
pub struct Health {
    /// A loop without a heartbeat for this long is considered stuck.
    longest_silence: Duration,
    clock: Clock,
    state: Lock<HealthState>,
}

#[derive(Debug)]
struct HealthState {
    condition: Condition,
    /// The reason of an earlier process, and since when the source was in its state.
    restored: Option<(Reason, Timestamp)>,
    /// The last heartbeat.
    beat: (Instant, Timestamp),
    /// The start of the current run.
    running_since: Option<(Instant, Timestamp)>,
    /// When the loop ended.
    ended: Option<Timestamp>,
    /// Whether the store holds resources of the source.
    is_applied: bool,
    /// Whether the server is ready without the source.
    is_optional: bool,
    last_attempt: Option<Timestamp>,
    last_success: Option<Timestamp>,
}

impl Health {
    /// Creates the health of a source's loop that starts now by its clock, and wakes up more often than every
    /// `longest_silence`.
    pub(crate) fn new(clock: Clock, longest_silence: Duration) -> Self {
        let condition = Condition {
            status: Status::Unknown,
            reason: Reason::Starting,
            message: "the first sync has not finished".into(),
            last_transition_time: clock.time(),
            observed_revision: 0,
        };
        let state = HealthState {
            condition,
            restored: None,
            beat: (clock.now(), clock.time()),
            running_since: None,
            ended: None,
            is_applied: false,
            is_optional: false,
            last_attempt: None,
            last_success: None,
        };
        Self { longest_silence, clock, state: Lock::new(state) }
    }

    /// Takes over from the loop that the source had before its settings changed.
    pub(crate) fn take_over(&self, before: &Health) {
        let before = before.state.lock();
        let mut state = self.state.lock();
        (state.is_applied, state.is_optional) = (before.is_applied, before.is_optional);
        (state.last_attempt, state.last_success) = (before.last_attempt, before.last_success);
    }

    /// Takes over the condition, too: the manifests are where they were, so that it still holds.
    pub(crate) fn take_over_condition(&self, before: &Health) {
        self.state.lock().condition = before.condition();
    }

    /// Recalls the reason that an earlier process has left, and since when: if the first run finds the same state, it has been
    /// so since then.
    pub(crate) fn restore(&self, reason: Reason, since: Timestamp) {
        // A clock that was set back must not put the beginning into the future.
        self.state.lock().restored = (since <= self.clock.time()).then_some((reason, since));
    }

    /// Records that the server is ready without the source: it was added while the server was running (D91).
    pub(crate) fn set_optional(&self) {
        self.state.lock().is_optional = true;
    }

    /// Records a heartbeat.
    pub fn beat(&self) {
        self.state.lock().beat = self.now();
    }

    /// Records the start of a run.
    pub fn begin(&self) {
        let mut state = self.state.lock();
        state.beat = self.now();
        state.running_since = Some(state.beat);
        state.last_attempt = Some(state.beat.1);
    }

    /// Records a run without changes since the last one.
    pub fn unchanged(&self) {
        let mut state = self.state.lock();
        if state.condition.status == Status::Synced {
            state.last_success = Some(self.clock.time());
        }
    }

    /// Records the result of a run and the store's revision.
    pub fn result(&self, reason: Reason, message: String, revision: u64) {
        let mut state = self.state.lock();
        let status = reason.status();
        let now = self.clock.time();
        if status == Status::Synced {
            state.last_success = Some(now);
        }
        state.is_applied |= status == Status::Synced || reason == Reason::PartlyApplied;
        if state.condition.reason.state() != reason.state() {
            let restored = state.restored.take().filter(|(before, _)| before.state() == reason.state());
            state.condition.last_transition_time = restored.map_or(now, |(_, since)| since);
        }
        let last_transition_time = state.condition.last_transition_time;
        state.condition = Condition { status, reason, message, last_transition_time, observed_revision: revision };
    }

    /// Records that a suspension has ended now: whatever the last run found, the source gets out of that state.
    pub(crate) fn end_suspension(&self) {
        self.state.lock().condition.last_transition_time = self.clock.time();
        self.resume();
    }

    /// Records that the source is not suspended: what the last run found is not held back any longer.
    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        let condition = &mut state.condition;
        if condition.reason == Reason::Suspended {
            condition.last_transition_time = self.clock.time();
            condition.reason = Reason::Resumed;
            condition.message = "resumed; the next sync has not finished".to_owned();
        }
    }

    /// Records the end of the run.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.beat = self.now();
        state.running_since = None;
    }

    /// Records that the store already has resources of the source.
    pub fn has_resources(&self) {
        self.state.lock().is_applied = true;
    }

    /// Whether the store is known to have resources of the source.
    pub fn is_applied(&self) -> bool {
        self.state.lock().is_applied
    }

    /// Records that the loop has ended.
    pub fn record_end(&self) {
        self.state.lock().ended = Some(self.clock.time());
    }

    fn now(&self) -> (Instant, Timestamp) {
        (self.clock.now(), self.clock.time())
    }

    /// The condition after the last run.
    pub fn condition(&self) -> Condition {
        self.state.lock().condition.clone()
    }

    /// The condition, or the loop's problem, during which nobody knows whether what the last run found still holds.
    pub(crate) fn condition_at(&self, now: Instant) -> Condition {
        let state = self.state.lock();
        let condition = state.condition.clone();
        let Some((since, trouble)) = state.trouble(now, self.longest_silence) else { return condition };
        let (reason, message) = (Reason::Failed, format!("{trouble}, since {since}"));
        Condition { status: reason.status(), reason, message, last_transition_time: since, ..condition }
    }

    /// The start of the last run.
    pub fn last_attempt(&self) -> Option<Timestamp> {
        self.state.lock().last_attempt
    }

    /// When the store last matched the manifests.
    pub fn last_success(&self) -> Option<Timestamp> {
        self.state.lock().last_success
    }

    /// Whether the loop is running and not stuck.
    pub fn is_up(&self) -> bool {
        self.trouble().is_none()
    }

    /// The loop's problem, if any.
    pub fn trouble(&self) -> Option<&'static str> {
        self.state.lock().trouble(self.clock.now(), self.longest_silence).map(|(_, trouble)| trouble)
    }

    /// Whether the server is ready for requests.
    pub fn verdict(&self) -> Verdict {
        self.verdict_at(self.clock.now())
    }

    fn verdict_at(&self, now: Instant) -> Verdict {
        let state = self.state.lock();
        if let Some((_, trouble)) = state.trouble(now, self.longest_silence) {
            return Verdict::NotReady(trouble.into());
        }
        let Condition { status, reason, message, .. } = &state.condition;
        // The messages contain local paths, URLs and branch names, and probes send no token.
        let message = match reason {
            Reason::Failed | Reason::FetchFailed => "see GET /sources or the log for the error",
            _ => message.as_str(),
        };
        // A source that was suspended, rolled back or added must not take the server out of rotation.
        let is_excused = state.is_optional || reason.is_intended();
        match status {
            Status::Synced => Verdict::Ready,
            _ if state.is_applied || is_excused => Verdict::Degraded(format!("{status} ({reason}): {message}")),
            _ => Verdict::NotReady(format!("{status} ({reason}): {message}")),
        }
    }
}

impl HealthState {
    /// The loop's problem, if any, and since when. Both stay the same while the problem does.
    fn trouble(&self, now: Instant, longest_silence: Duration) -> Option<(Timestamp, &'static str)> {
        let longer = |since: Instant, limit: Duration| now.saturating_duration_since(since) > limit;
        if let Some(ended) = self.ended {
            return Some((ended, "the reconcile loop has ended"));
        }
        match (self.running_since, self.beat) {
            (Some((since, at)), _) if longer(since, LONGEST_RUN) => Some((at, "the reconcile loop is stuck in a sync")),
            (None, (beat, at)) if longer(beat, longest_silence) => Some((at, "the reconcile loop is not responding")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(90);

    fn health() -> Health {
        Health::new(Clock::default(), SILENCE)
    }

    fn is_ready(health: &Health, later: Duration) -> bool {
        !matches!(health.verdict_at(Instant::now() + later), Verdict::NotReady(_))
    }

    #[test]
    fn a_loop_is_ready_after_its_first_good_run_and_stays_so_with_broken_manifests() {
        let health = health();
        assert!(!is_ready(&health, Duration::ZERO), "before the first run");
        health.begin();
        assert!(!is_ready(&health, Duration::ZERO), "during the first run");
        health.result(Reason::Applied, "applied".into(), 7);
        health.end();
        assert_eq!(health.verdict(), Verdict::Ready);
        for reason in [Reason::Invalid, Reason::Refused, Reason::Panicked] {
            health.result(reason, "why".into(), 7);
            assert_eq!(health.verdict(), Verdict::Degraded(format!("OutOfSync ({reason}): why")));
        }
        for reason in [Reason::Failed, Reason::FetchFailed] {
            health.result(reason, "cannot read /srv/edge".into(), 7);
            let said = format!("OutOfSync ({reason}): see GET /sources or the log for the error");
            assert_eq!(health.verdict(), Verdict::Degraded(said));
        }
        health.record_end();
        assert!(!is_ready(&health, Duration::ZERO));
        assert!(!health.is_up());
    }

    #[test]
    fn what_was_never_applied_is_not_ready() {
        let health = health();
        health.result(Reason::Invalid, "one error".into(), 1);
        assert_eq!(health.verdict(), Verdict::NotReady("OutOfSync (Invalid): one error".into()));
        health.has_resources();
        assert!(is_ready(&health, Duration::ZERO), "an earlier process has applied it");
    }

    #[test]
    fn a_source_that_somebody_has_taken_over_does_not_keep_a_server_from_being_ready() {
        for reason in [Reason::Suspended, Reason::RolledBack, Reason::Drifted, Reason::Fight] {
            let health = health();
            health.result(reason, "one to create".into(), 1);
            assert_eq!(health.verdict(), Verdict::Degraded(format!("OutOfSync ({reason}): one to create")));
        }
    }

    #[test]
    fn a_source_that_is_resumed_is_not_told_to_be_suspended() {
        let health = health();
        health.result(Reason::Suspended, "not applied: 1 to create".into(), 1);
        health.resume();
        let said = "OutOfSync (Resumed): resumed; the next sync has not finished";
        assert_eq!(health.verdict(), Verdict::Degraded(said.into()));
        health.result(Reason::InSync, "1 unchanged".into(), 1);
        health.resume();
        assert_eq!(health.condition().reason, Reason::InSync);
    }

    #[test]
    fn a_source_that_is_added_or_changed_does_not_make_a_server_unready() {
        let added = health();
        added.set_optional();
        assert_eq!(added.verdict(), Verdict::Degraded("Unknown (Starting): the first sync has not finished".into()));
        added.result(Reason::Invalid, "one error".into(), 1);
        assert_eq!(added.verdict(), Verdict::Degraded("OutOfSync (Invalid): one error".into()));

        let first = health();
        first.result(Reason::Applied, "one to create".into(), 1);
        let moved = health();
        moved.take_over(&first);
        assert_eq!((moved.condition().status, is_ready(&moved, Duration::ZERO)), (Status::Unknown, true));
        assert_eq!(moved.last_success(), first.last_success());
        let same = health();
        same.take_over(&first);
        same.take_over_condition(&first);
        assert_eq!((same.condition(), same.verdict()), (first.condition(), Verdict::Ready));

        // A source that was never applied is still missing after a change of its settings.
        let missing = health();
        missing.take_over(&health());
        assert!(!is_ready(&missing, Duration::ZERO));
    }

    #[test]
    fn a_loop_that_hangs_is_not_ready() {
        let health = health();
        health.begin();
        health.result(Reason::InSync, "in sync".into(), 1);
        assert!(is_ready(&health, LONGEST_RUN - Duration::from_secs(10)), "a run may take its time");
        let stuck = LONGEST_RUN + Duration::from_secs(10);
        assert!(!is_ready(&health, stuck));
        let (shown, began) = (health.condition_at(Instant::now() + stuck), health.last_attempt().unwrap_or_default());
        assert_eq!(
            (shown.status, shown.reason, shown.last_transition_time),
            (Status::OutOfSync, Reason::Failed, began)
        );
        assert_eq!(shown.message, format!("the reconcile loop is stuck in a sync, since {began}"));
        assert_eq!(health.condition().reason, Reason::InSync, "which the next process finds again");
        health.end();
        assert_eq!(health.condition_at(Instant::now()), health.condition());
        assert!(is_ready(&health, SILENCE - Duration::from_secs(10)));
        assert!(!is_ready(&health, SILENCE + Duration::from_secs(10)));
    }

    #[test]
    fn the_time_of_a_transition_is_that_of_the_state() {
        let (health, began) = (health(), Clock::default().time() - jiff::SignedDuration::from_hours(1));
        let since = |reason: Reason| {
            health.result(reason, "why".into(), 1);
            let condition = health.condition();
            assert_eq!((condition.status, condition.reason), (reason.status(), reason));
            std::mem::replace(&mut health.state.lock().condition.last_transition_time, began)
        };
        for states in [
            vec![Reason::Drifted, Reason::Fight],
            vec![Reason::Invalid],
            vec![Reason::Failed, Reason::FetchFailed, Reason::Panicked],
            vec![Reason::PartlyApplied, Reason::RolledBack],
            vec![Reason::Suspended],
        ] {
            let mut times = states.iter().map(|reason| since(*reason));
            assert!(times.next() > Some(began), "{states:?} begin");
            assert!(times.all(|time| time == began), "{states:?} are one state");
        }
        assert!(health.last_success().is_none());
        health.resume();
        assert!(health.condition().last_transition_time > began, "the suspension has ended");
    }

    #[test]
    fn a_state_that_a_restart_finds_again_began_before_it() {
        let before = Clock::default().time() - jiff::SignedDuration::from_hours(1);
        let since = |results: &[Reason]| {
            let health = health();
            health.restore(Reason::InSync, before);
            results.iter().for_each(|reason| health.result(*reason, "why".into(), 1));
            health.condition().last_transition_time
        };
        assert_eq!(since(&[Reason::InSync]), before);
        assert_eq!(since(&[Reason::Applied, Reason::InSync]), before);
        assert!(since(&[Reason::Invalid]) > before, "another state begins when it is found");
        assert!(since(&[Reason::Invalid, Reason::InSync]) > before, "and ends what was before");
        assert!(since(&[Reason::InSync, Reason::Invalid, Reason::InSync]) > before);
    }
}

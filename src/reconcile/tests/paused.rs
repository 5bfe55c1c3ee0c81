//! A time that passes only while a loop waits, for tests: days of timers take as long as the work between them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::lock::Lock;
use crate::reconcile::sync_loop::schedule::Signal;

/// An event at a time.
type Happening = Box<dyn FnOnce() + Send>;

/// A paused time, and what happens in it.
pub(crate) struct PausedTime {
    began: (Instant, Timestamp),
    state: Lock<SimulatedTime>,
}

#[derive(Default)]
struct SimulatedTime {
    /// How much time has passed.
    passed: Duration,
    /// The remaining events, in order.
    script: VecDeque<(Duration, Happening)>,
}

impl fmt::Debug for PausedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PausedTime").field("passed", &self.passed()).finish_non_exhaustive()
    }
}

impl PausedTime {
    /// A time that begins at a time of day.
    pub(in crate::reconcile) fn new(began: Timestamp) -> Self {
        Self { began: (Instant::now(), began), state: Lock::default() }
    }

    /// Adds what happens so long after the beginning. Call it in order.
    pub(in crate::reconcile) fn at(&self, after: Duration, happens: impl FnOnce() + Send + 'static) {
        self.state.lock().script.push_back((after, Box::new(happens)));
    }

    /// How much time has passed.
    pub(in crate::reconcile) fn passed(&self) -> Duration {
        self.state.lock().passed
    }

    /// The time for durations.
    pub(in crate::reconcile) fn now(&self) -> Instant {
        self.began.0 + self.passed()
    }

    /// The time of day in whole seconds.
    pub(in crate::reconcile) fn time(&self) -> Timestamp {
        self.began.1 + Duration::from_secs(self.passed().as_secs())
    }

    /// Waits for a signal: lets the time pass until something has sent one, at most for a time.
    pub(in crate::reconcile) fn wait(
        &self,
        received: &Receiver<Signal>,
        time: Duration,
    ) -> Result<Signal, RecvTimeoutError> {
        let until = self.passed() + time;
        loop {
            match received.try_recv() {
                Ok(signal) => return Ok(signal),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) => {}
            }
            match self.pass(until) {
                Some(happens) => happens(),
                None => return Err(RecvTimeoutError::Timeout),
            }
        }
    }

    /// Lets the time pass until something happens, or to the end of a wait.
    fn pass(&self, until: Duration) -> Option<Happening> {
        let mut state = self.state.lock();
        match state.script.pop_front() {
            Some((at, happens)) if at <= until => {
                state.passed = state.passed.max(at);
                Some(happens)
            }
            later => {
                if let Some(later) = later {
                    state.script.push_front(later);
                }
                state.passed = until;
                None
            }
        }
    }
}

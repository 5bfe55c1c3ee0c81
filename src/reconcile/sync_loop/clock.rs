//! The time of a loop, and how it waits. All times of a loop come from here, so that a test can pause it and let hours
//! pass.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::SystemTime;

use super::schedule::Signal;
use crate::reconcile::prelude::*;

/// The clock of a loop; clones share one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    /// The time that passes only while the loop waits.
    #[cfg(test)]
    pub paused: Option<std::sync::Arc<crate::reconcile::tests::paused::PausedTime>>,
}

/// A point in time, for durations and to compare with files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    /// The time that never goes back.
    pub now: Instant,
    /// The time of day.
    pub wall: SystemTime,
}

impl Clock {
    /// The time for durations.
    pub(crate) fn now(&self) -> Instant {
        #[cfg(test)]
        if let Some(paused) = &self.paused {
            return paused.now();
        }
        Instant::now()
    }

    /// The time of day in whole seconds.
    pub(crate) fn time(&self) -> Timestamp {
        #[cfg(test)]
        if let Some(paused) = &self.paused {
            return paused.time();
        }
        clock::now()
    }

    /// The time to compare with files, whose times no test pauses.
    pub(super) fn moment(&self) -> Moment {
        Moment { now: self.now(), wall: SystemTime::now() }
    }

    /// Waits for a signal, at most for a time.
    pub(super) fn wait(&self, received: &Receiver<Signal>, time: Duration) -> Result<Signal, RecvTimeoutError> {
        #[cfg(test)]
        if let Some(paused) = &self.paused {
            return paused.wait(received, time);
        }
        received.recv_timeout(time)
    }
}

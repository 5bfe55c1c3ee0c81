//! The time, which the pure model cannot read.

use jiff::{SignedDuration, Timestamp, Unit};

use crate::files::fault::clock_jump;

/// Returns the time in whole seconds (D13).
pub fn now() -> Timestamp {
    let now = Timestamp::now() + SignedDuration::from_secs(clock_jump());
    now.round(Unit::Second)
        .map_or(now, |rounded| if rounded > now { rounded - SignedDuration::from_secs(1) } else { rounded })
}

//! Tests of the loop as a whole: what it does beside other commits, during a suspension, and over days.

mod contended;
mod interrupted;
pub(super) mod paused;
mod timers;

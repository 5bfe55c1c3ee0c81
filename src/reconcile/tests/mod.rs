//! Tests of the loop as a whole: concurrent commits, suspensions, and behaviour over days.

mod contended;
mod held_drift;
mod interrupted;
pub(super) mod paused;
mod put_back;
mod timers;

//! Tests of the loop as a whole: concurrent commits, suspensions, and behaviour over days.

mod contended;
mod held_drift;
mod interrupted;
pub(super) mod paused;
mod put_back;
mod timers;

use super::run::decision::{self, RunMode};
use super::run::result::RunResult;
use super::sync_loop::drift_policy::DriftPolicy;
use super::{Options, Prepared};
use crate::manifest::tree::{Sent, SentFile};
use crate::store::Store;

/// Manifests in one file.
fn manifests(text: impl Into<String>) -> Sent {
    Sent::new(vec![SentFile::new("shop.yaml", text)], None)
}

/// Runs manifests once, as a loop with a drift policy.
fn run(store: &Store, options: Options, drift: DriftPolicy) -> RunResult {
    let mode = RunMode::Apply { drift, rests_until: None, content: None, changed_values: &[], may_apply: &|| true };
    decision::run(store, &Prepared::load(options), mode, |_, _| {})
}

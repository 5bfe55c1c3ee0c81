//! Metrics of commits (D87).

use std::time::Instant;

use super::error::{CommitError, Declined};

/// How long a group of commits takes to become durable.
pub(crate) const SYNC_SECONDS: &str = "edgewright_store_sync_duration_seconds";
/// How many commits a group has.
pub(crate) const GROUP_COMMITS: &str = "edgewright_store_group_commits";
/// The groups that could not be made durable.
pub(crate) const SYNC_FAILURES: &str = "edgewright_store_sync_failures_total";

/// Records a commit.
pub(super) fn commit<T, E>(result: &Result<T, Declined<E>>, began: Instant) {
    let result = match result {
        Ok(_) => "applied",
        Err(Declined::Commit(CommitError::Failed(_))) => "failed",
        Err(Declined::Declined(_) | Declined::Commit(CommitError::Refused(_) | CommitError::Stale { .. })) => "refused",
    };
    metrics::histogram!("edgewright_store_commit_duration_seconds", "result" => result)
        .record(began.elapsed().as_secs_f64());
}

/// Records a group of commits that was given to the engine.
pub(super) fn group(commits: usize, durable: bool, began: Instant) {
    metrics::histogram!(SYNC_SECONDS).record(began.elapsed().as_secs_f64());
    metrics::histogram!(GROUP_COMMITS).record(commits as f64);
    if !durable {
        metrics::counter!(SYNC_FAILURES).increment(1);
    }
}

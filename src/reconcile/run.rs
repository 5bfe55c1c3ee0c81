//! One run, the part of a sync that works on the store: plans the manifests, decides what may happen, applies it, and
//! reports.

mod decision;

use std::time::{Duration, Instant};

use jiff::Timestamp;

use self::decision::{Decider, Stop};
use super::{
    Options, Planned, Prepared, apply_current, measure, report::RunReport, status::RunFindings, token::TokenFiles,
};
use crate::{
    model::{code::Code, diagnostic::Diagnostic, drift::DriftedResource, operation::Author, snapshot::Snapshot},
    store::Store,
};

/// How often a run plans again if the history does not have the changes yet that it would overwrite.
const MOST_ROUNDS: u32 = 10;
/// How long it waits for them each time. A commit that is being written takes milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What a run may do.
#[derive(Clone, Copy)]
pub(super) enum RunMode<'a> {
    /// Apply the plan.
    Apply {
        /// What to do with drift.
        on_drift: OnDrift,
        /// The values that have changed since their commit was applied.
        changed_values: &'a [String],
        /// Whether it still may, asked inside the commit.
        may_apply: &'a dyn Fn() -> bool,
    },
    /// Report the plan, because the source is suspended.
    Suspended,
}

/// What a run does with drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDrift {
    /// Reverts it.
    Revert,
    /// Leaves it, and reports it.
    Report,
    /// Leaves it because of a fight, and reports that.
    Rest {
        /// When it is reverted again.
        until: Timestamp,
    },
    /// Leaves it, and only counts it.
    Count,
}

/// The result of a run.
pub(super) struct RunResult {
    /// The report.
    pub report: RunReport,
    /// What it found, for the status.
    pub findings: RunFindings,
    /// The source, with the commit of the manifests if they are in Git.
    pub author: Author,
}

impl RunResult {
    /// The commit of the manifests, if known.
    pub(super) fn commit(&self) -> Option<String> {
        commit_of(&self.author)
    }

    /// Whether the run was cancelled before its end. Then it has no result.
    pub(super) fn is_cut_short(&self, options: &Options) -> bool {
        options.cancel.is_cancelled() && matches!(self.report, RunReport::Invalid(_) | RunReport::Failed(_))
    }
}

/// The commit of the manifests, if known.
pub(super) fn commit_of(author: &Author) -> Option<String> {
    match author {
        Author::Source { commit, .. } => commit.clone(),
        _ => None,
    }
}

/// Plans the manifests on the store, and does what the mode and the checks of the plan permit. `in_sync` is called if the
/// store matches the manifests now, with its revision.
pub(super) fn run(
    store: &Store,
    prepared: &Prepared,
    mode: RunMode<'_>,
    in_sync: impl FnOnce(&Planned, u64),
) -> RunResult {
    let began = Instant::now();
    let author = prepared.options.author();
    let mut decider = Decider::new(store, &prepared.options.source, &author, mode);
    let done = match mode {
        RunMode::Apply { may_apply, .. } => apply(store, prepared, &author, &mut decider, may_apply),
        RunMode::Suspended => {
            let current = store.snapshot();
            decider.decide(&current, prepared.plan(&current)).map(|planned| (planned, None))
        }
    };
    let report = match done {
        Ok((planned, revision)) => report(&decider, planned, revision, in_sync),
        Err(stop) => stop.report(&author),
    };
    let findings = decider.findings(&report);
    let run = RunResult { report, findings, author };
    if !run.is_cut_short(&prepared.options) {
        let result = match mode {
            RunMode::Apply { .. } => run.report.result(),
            RunMode::Suspended => "suspended",
        };
        measure(result, began);
    }
    run
}

/// Plans on the current revision, and applies the plan if `decider` permits it. Returns the plan and its revision, or no
/// revision if there was nothing to do.
fn apply(
    store: &Store,
    prepared: &Prepared,
    author: &Author,
    decider: &mut Decider<'_>,
    may_apply: &dyn Fn() -> bool,
) -> Result<(Planned, Option<u64>), Stop> {
    let cancelled = || Stop::Failed(vec![Diagnostic::error(Code::Unavailable, "the run was cancelled")]);
    let permit = || if may_apply() { Ok(()) } else { Err(cancelled()) };
    let mut rounds = 0;
    loop {
        let plan = |current: &Snapshot| prepared.plan(current);
        let decide = |current: &Snapshot, planned: Planned| decider.decide(current, planned);
        match apply_current(store, plan, |_| Ok(author.clone()), &mut TokenFiles::default(), decide, permit) {
            Err(Stop::NotInHistory { current, .. }) if rounds < MOST_ROUNDS => {
                // Commits become visible only when this run does not hold the lock.
                store.wait_for_revision(current.saturating_sub(1), LONGEST_WAIT);
                rounds += 1;
            }
            done => return done,
        }
    }
}

/// The report of a plan that was applied as a revision, or that had nothing to do.
fn report(
    decider: &Decider<'_>,
    planned: Planned,
    revision: Option<u64>,
    in_sync: impl FnOnce(&Planned, u64),
) -> RunReport {
    if planned.has_errors() {
        return RunReport::Partly(planned);
    }
    let (unchanged, mut base) = planned.plan.as_ref().map(|plan| (plan.unchanged, plan.base)).unwrap_or_default();
    let has_held = !decider.held().is_empty();
    // What is left as it is would be remembered as in sync.
    if !has_held {
        if revision.is_none() {
            base = decider.accept(base).unwrap_or(base);
        }
        in_sync(&planned, revision.unwrap_or(base));
    }
    match (planned.plan.zip(revision), decider.on_drift()) {
        (applied, Some(on_drift)) if has_held && on_drift != OnDrift::Count => {
            let (drifted, resources) = decider.drifted();
            RunReport::Drifted {
                applied,
                drifted,
                resources: resources.iter().map(DriftedResource::to_string).collect(),
                fight_until: match on_drift {
                    OnDrift::Rest { until } => Some(until),
                    OnDrift::Revert | OnDrift::Report | OnDrift::Count => None,
                },
            }
        }
        (Some((plan, revision)), _) => RunReport::Applied { plan, revision },
        (None, _) => RunReport::InSync { unchanged, revision: base },
    }
}

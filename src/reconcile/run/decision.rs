//! The decision on a plan: a list of checks, each of which passes it on or stops the run.

use super::apply::{apply_current, measure};
use super::apply_error::ApplyError;
use super::plan_result::PlanResult;
use super::report::RunReport;
use super::result::{RunResult, commit_of};
use super::stages::Prepared;
use super::token::TokenFiles;
use super::validation::cancelled;
use crate::model::DriftedResource;
use crate::plan::Summary;
use crate::reconcile::prelude::*;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::reconcile::sync_loop::plan_drift::{HeldChanges, find_drift, hold};
use crate::reconcile::sync_loop::put_back::only_puts_required;
use crate::reconcile::sync_loop::status::{MOST_DRIFTED, RunFindings};
use crate::reconcile::sync_loop::sync_log::or_warn;

/// How often a run plans again if the history does not have the changes yet that it would overwrite.
const MOST_ROUNDS: u32 = 10;
/// How long it waits for them each time. A commit that is being written takes milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The permissions of a run.
#[derive(Clone, Copy)]
pub(in crate::reconcile) enum RunMode<'a> {
    /// Apply the plan.
    Apply {
        /// The drift policy.
        drift: DriftPolicy,
        /// Until when it is left although it is to be reverted, because of a fight.
        rests_until: Option<Timestamp>,
        /// The digest of the files and values that were read, if it is known (D78).
        content: Option<&'a str>,
        /// The values that have changed since their commit was applied.
        changed_values: &'a [String],
        /// Whether the run still may apply it, asked inside the commit.
        may_apply: &'a dyn Fn() -> bool,
    },
    /// Report the plan, because the source is suspended.
    Suspended,
}

/// Why a plan is not applied.
enum NotApplied {
    /// The state that the plan would overwrite is not in the history yet.
    NotInHistory { visible: u64, current: u64 },
    /// The run ends with a report.
    Reported(Box<RunReport>),
}

impl From<RunReport> for NotApplied {
    fn from(report: RunReport) -> Self {
        NotApplied::Reported(Box::new(report))
    }
}

impl From<ApplyError> for NotApplied {
    fn from(error: ApplyError) -> Self {
        RunReport::Failed(vec![error.diagnostic()]).into()
    }
}

/// Plans the manifests on the store, and does what the mode and the checks of the plan permit. `in_sync` is called if the
/// store matches the manifests now, with its revision.
pub(in crate::reconcile) fn run(
    store: &Store,
    prepared: &Prepared,
    mode: RunMode<'_>,
    in_sync: impl FnOnce(&PlanResult, u64),
) -> RunResult {
    let began = Instant::now();
    let (author, source) = (prepared.options.author(), prepared.options.source.as_str());
    let (findings, held) = (RunFindings::default(), HeldChanges::default());
    let mut run = PlannedRun { store, prepared, source, author, mode, findings, held };
    let done = match mode {
        RunMode::Apply { may_apply, .. } => run.apply(may_apply),
        RunMode::Suspended => {
            let current = store.snapshot();
            run.decide(&current, prepared.plan(&current)).map(|planned| (planned, None))
        }
    };
    let report = match done {
        Ok((planned, revision)) => run.report(planned, revision, in_sync),
        Err(NotApplied::Reported(report)) => *report,
        Err(NotApplied::NotInHistory { visible, current }) => {
            let stale = ApplyError::Commit(CommitError::Stale { base: visible, current });
            RunReport::Failed(vec![stale.diagnostic()])
        }
    };
    let result = run.result(report);
    if !result.is_cut_short(&prepared.options) {
        let name = if matches!(mode, RunMode::Suspended) { "suspended" } else { result.report.result() };
        measure(name, began);
    }
    result
}

/// A run in progress.
struct PlannedRun<'a> {
    store: &'a Store,
    prepared: &'a Prepared,
    source: &'a str,
    author: Author,
    mode: RunMode<'a>,
    /// The findings of the last plan.
    findings: RunFindings,
    /// The changes that were left out of the plan.
    held: HeldChanges,
}

impl PlannedRun<'_> {
    /// Plans on the current revision, and applies what is decided. Returns the plan and its revision, or no revision if there
    /// was nothing to do.
    fn apply(&mut self, may_apply: &dyn Fn() -> bool) -> Result<(PlanResult, Option<u64>), NotApplied> {
        let (store, prepared, author) = (self.store, self.prepared, self.author.clone());
        let permit = || if may_apply() { Ok(()) } else { Err(NotApplied::from(RunReport::Failed(vec![cancelled()]))) };
        let mut rounds = 0;
        loop {
            let plan = |current: &Snapshot| prepared.plan(current);
            let decide = |current: &Snapshot, planned: PlanResult| self.decide(current, planned);
            match apply_current(store, plan, |_| Ok(author.clone()), &mut TokenFiles::default(), decide, permit) {
                Err(NotApplied::NotInHistory { current, .. }) if rounds < MOST_ROUNDS => {
                    // Commits become visible only when this run does not hold the lock.
                    store.change_window.wait(current.saturating_sub(1), LONGEST_WAIT);
                    rounds += 1;
                }
                done => return done,
            }
        }
    }

    /// Decides on a plan from a state: each check passes it on, or stops the run. Returns what to apply of it. If others commit
    /// meanwhile, the run plans again, and the last decision counts.
    fn decide(&mut self, current: &Snapshot, planned: PlanResult) -> Result<PlanResult, NotApplied> {
        let planned = self.find_drift(current, planned)?;
        self.findings = RunFindings::from_plan(&planned, current);
        self.check_rollback(current, &planned)?;
        let planned = self.check_errors(planned)?;
        check_refusals(&planned)?;
        let planned = self.check_suspension(current, planned)?;
        let planned = self.hold_drift(current, planned)?;
        self.check_token_files(planned)
    }

    /// Adds to a plan what others have changed, and which values.
    fn find_drift(&self, current: &Snapshot, mut planned: PlanResult) -> Result<PlanResult, NotApplied> {
        if let Err(error) = find_drift(self.store, self.source, current, &mut planned, None) {
            // Only a partial apply needs to tell drift from pending changes.
            if self.leaves_drift() {
                return Err(ApplyError::Commit(CommitError::Failed(error)).into());
            }
            or_warn(self.source, "cannot tell drift from pending changes", Err::<(), _>(error));
        }
        if let (RunMode::Apply { changed_values, .. }, Some(plan)) = (self.mode, &mut planned.plan) {
            changed_values.clone_into(&mut plan.changed_values);
        }
        Ok(planned)
    }

    /// Manifests with errors have no plan, or one for their valid part. A suspended source shows the errors.
    fn check_errors(&self, planned: PlanResult) -> Result<PlanResult, NotApplied> {
        let is_shown = matches!(self.mode, RunMode::Suspended) && planned.has_errors();
        if planned.plan.is_none() || is_shown { Err(RunReport::invalid(planned).into()) } else { Ok(planned) }
    }

    /// Manifests that a rollback left are not applied again (D78).
    fn check_rollback(&self, current: &Snapshot, planned: &PlanResult) -> Result<(), NotApplied> {
        // Once a suspended source is resumed, the next run says what a rollback left.
        if matches!(self.mode, RunMode::Suspended) {
            return Ok(());
        }
        let was_rolled_back = match &planned.plan {
            Some(plan) if !plan.is_empty() => self.was_rolled_back(current, plan, planned)?,
            // What was brought back can be in the way of manifests that had no errors, such as a host that another source has again.
            _ if planned.has_errors() => self.was_read(planned) && self.is_rejected(current, None)?,
            _ => self.transfer_was_undone(current, planned),
        };
        let report = || RunReport::RolledBack { commit: commit_of(&self.author) };
        if was_rolled_back { Err(report().into()) } else { Ok(()) }
    }

    /// The plan of a suspended source is not applied (D84).
    fn check_suspension(&self, current: &Snapshot, planned: PlanResult) -> Result<PlanResult, NotApplied> {
        let is_in_sync =
            planned.plan.as_ref().is_some_and(Plan::is_empty) && !self.transfer_was_undone(current, &planned);
        match self.mode {
            RunMode::Suspended if !is_in_sync => Err(RunReport::Suspended(planned).into()),
            RunMode::Suspended | RunMode::Apply { .. } => Ok(planned),
        }
    }

    /// The digest of what was read, if the plan may be applied.
    fn content(&self) -> Option<&str> {
        match self.mode {
            RunMode::Apply { content, .. } => content,
            RunMode::Suspended => None,
        }
    }

    /// Whether the run applies the plan without its drift.
    fn leaves_drift(&self) -> bool {
        match self.mode {
            RunMode::Apply { drift, rests_until, .. } => drift != DriftPolicy::Enforce || rests_until.is_some(),
            RunMode::Suspended => false,
        }
    }

    /// Leaves drift out of the plan, unless it is reverted (D85).
    fn hold_drift(&mut self, current: &Snapshot, mut planned: PlanResult) -> Result<PlanResult, NotApplied> {
        if !self.leaves_drift() {
            return Ok(planned);
        }
        let visible = self.store.snapshot();
        if planned.plan.as_ref().is_some_and(|plan| overwrites_newer(plan, &visible, current)) {
            return Err(NotApplied::NotInHistory { visible: visible.revision, current: current.revision });
        }
        self.held = hold(current, &mut planned).map_err(RunReport::Failed)?;
        self.findings.drifted = self.held.drifted.len();
        self.findings.drift = self.held.drifted.iter().take(MOST_DRIFTED).cloned().collect();
        if self.held.is_empty() { Ok(planned) } else { self.judge_rest(current, planned) }
    }

    /// Judges what is left of a plan without the drift: the state that it leaves is another one.
    fn judge_rest(&mut self, current: &Snapshot, planned: PlanResult) -> Result<PlanResult, NotApplied> {
        let planned = self.prepared.judge_again(planned, current);
        let known = std::mem::replace(&mut self.findings, RunFindings::from_plan(&planned, current));
        let RunFindings { pending, drifted, drift, .. } = known;
        (self.findings.pending, self.findings.drifted, self.findings.drift) = (pending, drifted, drift);
        let planned = self.check_errors(planned)?;
        check_refusals(&planned)?;
        Ok(planned)
    }

    /// A token that cannot be written is an error at the line of its `token_file` (D27).
    fn check_token_files(&mut self, planned: PlanResult) -> Result<PlanResult, NotApplied> {
        let found = planned.token_faults();
        if found.is_empty() {
            return Ok(planned);
        }
        self.findings = std::mem::take(&mut self.findings).after(&found);
        Err(RunReport::Failed(found).into())
    }

    /// Whether a rollback left what a plan would apply.
    fn was_rolled_back(&self, current: &Snapshot, plan: &Plan, planned: &PlanResult) -> Result<bool, ApplyError> {
        if only_declares_retransferred(plan, current, self.source) || only_puts_required(plan, current, self.source) {
            return Ok(false);
        }
        // A plan that is refused was not tried.
        let is_untried = !plan.refusals.is_empty() && !current.rejected(self.source).is_empty();
        let untried = is_untried.then(|| SpeculativeCommit::new(current, &plan.each_operation()).ok()).flatten();
        let after = planned.tried.as_deref().or(untried.as_ref()).map(|tried| tried.after());
        self.is_rejected(current, after)
    }

    /// Whether a rollback left the manifests, which lead to a state if that is known.
    fn is_rejected(&self, current: &Snapshot, after: Option<&Snapshot>) -> Result<bool, ApplyError> {
        let commit = commit_of(&self.author);
        let left = self.store.is_rejected(current, self.source, self.content(), commit.as_deref(), after);
        left.map_err(|error| ApplyError::Commit(CommitError::Failed(error)))
    }

    /// Whether all manifests were read, and the run was not cancelled meanwhile.
    fn was_read(&self, planned: &PlanResult) -> bool {
        planned.unread.is_none() && !self.prepared.options.cancel.is_cancelled()
    }

    /// Whether manifests with nothing to do are still those from after a transfer that a rollback undid: it gave resources to
    /// another source, or back to this one.
    fn transfer_was_undone(&self, current: &Snapshot, planned: &PlanResult) -> bool {
        !planned.has_errors() && !current.rejected(self.source).is_empty() && planned.transfer_was_undone
    }

    /// The report of a plan that was applied as a revision, or that had nothing to do.
    fn report(&self, planned: PlanResult, revision: Option<u64>, in_sync: impl FnOnce(&PlanResult, u64)) -> RunReport {
        if planned.has_errors() {
            return RunReport::Partly(planned);
        }
        let (unchanged, mut base) = planned.plan.as_ref().map(|plan| (plan.unchanged, plan.base)).unwrap_or_default();
        if revision.is_none() {
            base = self.accept(base).unwrap_or(base);
        }
        // Drift that is left as is would be remembered as in sync.
        if self.held.is_empty() {
            in_sync(&planned, revision.unwrap_or(base));
        }
        match (planned.plan.zip(revision), self.mode) {
            (applied, RunMode::Apply { drift, rests_until, .. })
                if !self.held.is_empty() && drift != DriftPolicy::Off =>
            {
                RunReport::Drifted {
                    applied,
                    drifted: self.findings.drifted,
                    resources: self.findings.drift.iter().map(DriftedResource::to_string).collect(),
                    fight_until: rests_until,
                }
            }
            (Some((plan, revision)), _) => RunReport::Applied { plan, revision },
            (None, _) => RunReport::InSync { unchanged, revision: base },
        }
    }

    /// Records that the store matches manifests that no rollback left, and returns the revision of that (D78).
    fn accept(&self, base: u64) -> Option<u64> {
        let RunMode::Apply { may_apply, .. } = self.mode else { return None };
        let state = self.store.snapshot();
        if state.revision != base {
            return None;
        }
        let accepted = self.store.accept(&self.author, self.content(), &state, may_apply);
        or_warn(self.source, "cannot record that the source is in sync after a rollback", accepted).flatten()
    }

    /// The result of the run, with what it has left to do.
    fn result(self, report: RunReport) -> RunResult {
        let leaves_drift = self.leaves_drift();
        let Self { author, mut findings, held, mode, .. } = self;
        if let RunReport::Applied { revision, .. } | RunReport::Drifted { applied: Some((_, revision)), .. } = &report {
            findings.planned_at = Some(*revision);
        }
        match &report {
            RunReport::Failed(found) => findings = findings.failed(found),
            RunReport::Invalid(_) | RunReport::Suspended(_) | RunReport::RolledBack { .. } => {}
            // Only drift that is left as is remains.
            _ => {
                findings.pending = Summary { change: held.waiting, ..Summary::default() };
                if !leaves_drift {
                    (findings.drifted, findings.drift) = (0, Vec::new());
                } else if matches!(mode, RunMode::Apply { drift: DriftPolicy::Off, .. }) {
                    findings.drift.clear();
                }
            }
        }
        let declared = held.whole.map(|whole| whole.after().clone());
        RunResult { report, findings, author, left: held.left, declared }
    }
}

/// A safety limit refuses a plan, such as the deletion limit (D41).
fn check_refusals(planned: &PlanResult) -> Result<(), NotApplied> {
    let refusals = planned.plan.iter().flat_map(|plan| &plan.refusals).cloned().collect::<Vec<_>>();
    if refusals.is_empty() { Ok(()) } else { Err(RunReport::Failed(refusals).into()) }
}

/// Whether commits that are not durable yet have changed what a plan changes. The history does not have them.
fn overwrites_newer(plan: &Plan, visible: &Snapshot, current: &Snapshot) -> bool {
    let is_same = |key: &Key| visible.get(key).map(Arc::as_ptr) == current.get(key).map(Arc::as_ptr);
    visible.revision < current.revision && !plan.changes.iter().all(|change| is_same(&change.key))
}

/// Whether a plan changes nothing but claims on resources that a rollback took from the source and a command transferred to it
/// again: its manifests may declare them. Anything else that the rollback undid stays undone.
fn only_declares_retransferred(plan: &Plan, current: &Snapshot, source: &str) -> bool {
    let retransferred = current.retransferred_paths(source);
    let declares = |operation: &Operation| match operation {
        Operation::Claim { claim: Some(claim), .. } => claim.source == source && !claim.is_promised(),
        _ => false,
    };
    let is_retransferred = |change: &Change| {
        let held = current.get(&change.key).and_then(|entry| entry.claim.as_deref());
        held.is_some_and(|held| held.source == source && held.awaits_manifest())
            && retransferred.contains(change.key.path().as_str())
    };
    let completes = |change: &Change| change.operations.iter().all(declares) && is_retransferred(change);
    !retransferred.is_empty() && plan.changes.iter().all(completes)
}

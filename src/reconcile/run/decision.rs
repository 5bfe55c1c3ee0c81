//! What happens with the plan of a run. Each check passes the plan on, or stops the run.

use std::sync::Arc;

use super::{OnDrift, RunMode, commit_of};
use crate::{
    model::{
        diagnostic::Diagnostic,
        drift::{DriftState, DriftedResource},
        key::Key,
        operation::{Author, Operation},
        snapshot::Snapshot,
    },
    plan::{Change, Plan, Summary},
    reconcile::{
        ApplyError, Planned,
        drift::{HeldChanges, find_drift, hold},
        report::RunReport,
        status::RunFindings,
    },
    store::{CommitError, Store, Tried},
};

/// Why a plan is not applied.
pub(super) enum Stop {
    /// The manifests have errors.
    Invalid(Box<Planned>),
    /// A rollback left what they declare.
    RolledBack,
    /// The source is suspended.
    Suspended(Box<Planned>),
    /// What it would overwrite is not in the history yet.
    NotInHistory { visible: u64, current: u64 },
    /// A safety limit refuses it, or something failed.
    Failed(Vec<Diagnostic>),
}

impl From<ApplyError> for Stop {
    fn from(error: ApplyError) -> Self {
        Stop::Failed(vec![error.diagnostic()])
    }
}

impl Stop {
    /// The report of the run.
    pub(super) fn report(self, author: &Author) -> RunReport {
        match self {
            Stop::Invalid(planned) => RunReport::invalid(*planned),
            Stop::RolledBack => RunReport::RolledBack { commit: commit_of(author) },
            Stop::Suspended(planned) => RunReport::Suspended(*planned),
            Stop::NotInHistory { visible, current } => {
                let stale = CommitError::Stale { base: visible, current };
                RunReport::Failed(vec![ApplyError::Commit(stale).diagnostic()])
            }
            Stop::Failed(found) => RunReport::Failed(found),
        }
    }
}

/// Decides on each plan of a run: it plans again if others commit meanwhile, and the last decision counts.
pub(super) struct Decider<'a> {
    store: &'a Store,
    source: &'a str,
    author: &'a Author,
    mode: RunMode<'a>,
    findings: RunFindings,
    held: HeldChanges,
}

impl<'a> Decider<'a> {
    /// Nothing is planned yet.
    pub(super) fn new(store: &'a Store, source: &'a str, author: &'a Author, mode: RunMode<'a>) -> Self {
        Self { store, source, author, mode, findings: RunFindings::default(), held: HeldChanges::default() }
    }

    /// Decides on a plan from a state. Returns what to apply of it.
    pub(super) fn decide(&mut self, current: &Snapshot, planned: Planned) -> Result<Planned, Stop> {
        let planned = self.find_drift(current, planned)?;
        self.findings = RunFindings::of(&planned, current);
        let planned = self.check_errors(planned)?;
        self.check_rollback(current, &planned)?;
        check_refusals(&planned)?;
        let planned = self.check_suspension(current, planned)?;
        self.hold_drift(current, planned)
    }

    /// What the run does with drift; none if it applies nothing.
    pub(super) fn on_drift(&self) -> Option<OnDrift> {
        match self.mode {
            RunMode::Apply { on_drift, .. } => Some(on_drift),
            RunMode::Suspended => None,
        }
    }

    /// What was left out of the plan.
    pub(super) fn held(&self) -> &HeldChanges {
        &self.held
    }

    /// The number of the resources that drifted, and the first of them.
    pub(super) fn drifted(&self) -> (usize, &[DriftedResource]) {
        (self.findings.drifted, &self.findings.drift)
    }

    /// Adds to a plan what others have changed, and which values.
    fn find_drift(&self, current: &Snapshot, mut planned: Planned) -> Result<Planned, Stop> {
        if let Err(error) = find_drift(self.store, self.source, current, &mut planned, None) {
            match self.on_drift() {
                None | Some(OnDrift::Revert) => {
                    let source = self.source;
                    tracing::warn!(source, code = %error.code, "cannot tell drift from pending changes: {error}");
                }
                // What is left must be known; all else can be applied without.
                Some(_) => return Err(ApplyError::Commit(CommitError::Failed(error)).into()),
            }
        }
        if let (RunMode::Apply { changed_values, .. }, Some(plan)) = (self.mode, &mut planned.plan) {
            changed_values.clone_into(&mut plan.changed_values);
        }
        Ok(planned)
    }

    /// Manifests with errors have no plan, or one for their valid part. A suspended source shows the errors.
    fn check_errors(&self, planned: Planned) -> Result<Planned, Stop> {
        let is_shown = matches!(self.mode, RunMode::Suspended) && planned.has_errors();
        if planned.plan.is_none() || is_shown { Err(Stop::Invalid(Box::new(planned))) } else { Ok(planned) }
    }

    /// Manifests that a rollback left are not applied again (D78).
    fn check_rollback(&self, current: &Snapshot, planned: &Planned) -> Result<(), Stop> {
        // Once a suspended source is resumed, the next run says what a rollback left.
        let (RunMode::Apply { .. }, Some(plan)) = (self.mode, &planned.plan) else { return Ok(()) };
        let is_left = match plan.is_empty() {
            true => self.is_undone(current, planned),
            false => self.is_left(current, plan, planned)?,
        };
        if is_left { Err(Stop::RolledBack) } else { Ok(()) }
    }

    /// The plan of a suspended source is not applied (D84).
    fn check_suspension(&self, current: &Snapshot, planned: Planned) -> Result<Planned, Stop> {
        let is_in_sync = planned.plan.as_ref().is_some_and(Plan::is_empty) && !self.is_undone(current, &planned);
        match self.mode {
            RunMode::Suspended if !is_in_sync => Err(Stop::Suspended(Box::new(planned))),
            RunMode::Suspended | RunMode::Apply { .. } => Ok(planned),
        }
    }

    /// Leaves drift out of the plan, unless it is reverted (D85).
    fn hold_drift(&mut self, current: &Snapshot, mut planned: Planned) -> Result<Planned, Stop> {
        if matches!(self.on_drift(), None | Some(OnDrift::Revert)) {
            return Ok(planned);
        }
        let visible = self.store.snapshot();
        if planned.plan.as_ref().is_some_and(|plan| overwrites_newer(plan, &visible, current)) {
            return Err(Stop::NotInHistory { visible: visible.revision, current: current.revision });
        }
        self.held = hold(current, &mut planned).map_err(Stop::Failed)?;
        self.findings.drifted = self.held.drifted;
        let is_drift = |it: &DriftedResource| it.fields.iter().any(|field| field.state == DriftState::Drift);
        self.findings.drift.retain(is_drift);
        Ok(planned)
    }

    /// Whether a rollback left what a plan would apply.
    fn is_left(&self, current: &Snapshot, plan: &Plan, planned: &Planned) -> Result<bool, ApplyError> {
        if only_returns_claims(plan, current, self.source) {
            return Ok(false);
        }
        // A plan that is refused was not tried.
        let is_untried = !plan.refusals.is_empty() && !current.rejected(self.source).is_empty();
        let untried = is_untried.then(|| Tried::new(current, &plan.each_operation()).ok()).flatten();
        let after = planned.tried.as_deref().or(untried.as_ref()).map(|tried| tried.after());
        let left = self.store.is_rejected(current, self.source, commit_of(self.author).as_deref(), after);
        left.map_err(|error| ApplyError::Commit(CommitError::Failed(error)))
    }

    /// Whether manifests with nothing to do are still those from after a transfer that a rollback undid: it gave resources to
    /// another source, or back to this one.
    fn is_undone(&self, current: &Snapshot, planned: &Planned) -> bool {
        !planned.has_errors() && !current.rejected(self.source).is_empty() && planned.is_undone
    }

    /// Records that the store matches manifests that no rollback left, and returns the revision of that (D78).
    pub(super) fn accept(&self, base: u64) -> Option<u64> {
        let RunMode::Apply { may_apply, .. } = self.mode else { return None };
        let state = self.store.snapshot();
        if state.revision != base {
            return None;
        }
        self.store.accept(self.author, &state, may_apply).unwrap_or_else(|error| {
            let source = self.source;
            tracing::warn!(source, code = %error.code, "cannot record that the source is in sync after a rollback: {error}");
            None
        })
    }

    /// What the run found, for the status.
    pub(super) fn findings(self, report: &RunReport) -> RunFindings {
        let mut findings = self.findings;
        match report {
            RunReport::Failed(found) => return findings.failed(found),
            RunReport::Invalid(_) | RunReport::Suspended(_) | RunReport::RolledBack { .. } => return findings,
            RunReport::Applied { .. }
            | RunReport::InSync { .. }
            | RunReport::Unfetched { .. }
            | RunReport::Partly(_)
            | RunReport::Drifted { .. } => {}
        }
        // Nothing is left to do but what is left as it is.
        findings.pending = Summary { change: self.held.waiting, ..Summary::default() };
        match self.mode {
            RunMode::Apply { on_drift: OnDrift::Report | OnDrift::Rest { .. }, .. } => {}
            RunMode::Apply { on_drift: OnDrift::Count, .. } => findings.drift.clear(),
            RunMode::Apply { on_drift: OnDrift::Revert, .. } | RunMode::Suspended => {
                (findings.drifted, findings.drift) = (0, Vec::new());
            }
        }
        findings
    }
}

/// A safety limit refuses a plan, such as the deletion limit (D41).
fn check_refusals(planned: &Planned) -> Result<(), Stop> {
    let refusals = planned.plan.iter().flat_map(|plan| &plan.refusals).cloned().collect::<Vec<_>>();
    if refusals.is_empty() { Ok(()) } else { Err(Stop::Failed(refusals)) }
}

/// Whether commits that are not durable yet have changed what a plan changes. The history does not have them.
fn overwrites_newer(plan: &Plan, visible: &Snapshot, current: &Snapshot) -> bool {
    let is_same = |key: &Key| match (visible.get(key), current.get(key)) {
        (Some(visible), Some(current)) => Arc::ptr_eq(visible, current),
        (None, None) => true,
        _ => false,
    };
    visible.revision < current.revision && !plan.changes.iter().all(|change| is_same(&change.key))
}

/// Whether a plan changes nothing but claims on resources that a rollback took from the source and a command transferred to it
/// again: its manifests may declare them. Anything else that the rollback undid stays undone.
fn only_returns_claims(plan: &Plan, current: &Snapshot, source: &str) -> bool {
    let returned = current.moved_again(source);
    let declares = |operation: &Operation| match operation {
        Operation::Claim { claim: Some(claim), .. } => claim.source == source && !claim.is_promised(),
        _ => false,
    };
    let is_returned = |change: &Change| {
        let held = current.get(&change.key).and_then(|entry| entry.claim.as_deref());
        held.is_some_and(|held| held.source == source && held.awaits_manifest())
            && returned.contains(change.key.path().as_str())
    };
    let completes = |change: &Change| change.operations.iter().all(declares) && is_returned(change);
    !returned.is_empty() && plan.changes.iter().all(completes)
}

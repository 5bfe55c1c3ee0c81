//! One run of the loop, and its report.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use super::{
    ApplyError, Options, Planned, Prepared, apply_current,
    drift::{HeldChanges, hold, tell},
    health::Reason,
    measure,
    moved_again::only_declares,
    status::RunFindings,
    token::TokenFiles,
};
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name, Severity},
        drift::{DriftState, DriftedResource},
        key::Key,
        operation::Author,
        snapshot::Snapshot,
    },
    plan::{Plan, Summary},
    store::{CommitError, Store, StoreError, Tried},
};

/// How often a run plans again if the history does not have the changes yet that it would overwrite.
const MOST_ROUNDS: u32 = 10;
/// How long it waits for them each time. A commit that is being written takes milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A report of the loop.
#[derive(Debug)]
pub enum RunReport {
    /// A plan was applied.
    Applied {
        /// The plan.
        plan: Plan,
        /// The new revision of the store.
        revision: u64,
    },
    /// The store matches the folder.
    InSync {
        /// The number of resources of the source.
        unchanged: usize,
        /// The revision of the store.
        revision: u64,
    },
    /// The store matches the last commit that was fetched, and the repository cannot be fetched now.
    Unfetched {
        /// The plan that was applied and its revision, if anything had to change.
        applied: Option<(Plan, u64)>,
        /// The number of resources of the source.
        resources: usize,
        /// Why it cannot be fetched.
        failure: Diagnostic,
    },
    /// The manifests have errors; the store keeps its last good state.
    Invalid(Planned),
    /// Some manifests have errors; the rest is applied (D44).
    Partly(Planned),
    /// The source is suspended; the plan is not applied.
    Suspended(Planned),
    /// A rollback left the state that the manifests declare. They are not applied again until they change.
    RolledBack {
        /// The commit of the manifests, if they are in Git.
        commit: Option<String>,
    },
    /// Others have changed resources of the source, which are left as they are. All else is applied (D85).
    Drifted {
        /// The plan that was applied and its revision, if anything else had to change.
        applied: Option<(Plan, u64)>,
        /// The number of resources that drifted.
        drifted: usize,
        /// The first of them, with what was changed by whom.
        resources: Vec<String>,
        /// When they are put back again, if others keep changing them.
        fight_until: Option<Timestamp>,
    },
    /// The plan was refused or failed.
    Failed(Vec<Diagnostic>),
}

/// What a run does with drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDrift {
    /// Puts it back.
    PutBack,
    /// Leaves it, and reports it.
    Report,
    /// Leaves it because of a fight, and reports that.
    Rest {
        /// When it is put back again.
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

/// Reconciles once, like the `reconcile` command. `changed_values` have changed since the commit was applied. `may_apply` is asked inside the commit. `settled` is called if the store
/// matches the manifests now, with its revision.
pub(super) fn run_once(
    store: &Store,
    prepared: &Prepared,
    changed_values: &[String],
    on_drift: OnDrift,
    may_apply: &dyn Fn() -> bool,
    settled: impl FnOnce(&Planned, u64),
) -> RunResult {
    let began = Instant::now();
    let run = look(store, prepared, changed_values, on_drift, may_apply, settled);
    if !run.is_cut_short(&prepared.options) {
        measure(run.report.result(), began);
    }
    run
}

/// Plans like [`run_once`], and applies nothing. `settled` is called if the store matches the manifests.
pub(super) fn run_suspended(store: &Store, prepared: &Prepared, settled: impl FnOnce(&Planned, u64)) -> RunResult {
    let began = Instant::now();
    let snapshot = store.snapshot();
    let mut planned = prepared.plan(&snapshot);
    if let Err(error) = tell(store, &prepared.options.source, &snapshot, &mut planned, None) {
        untold(prepared, &error);
    }
    let findings = RunFindings::of(&planned, &snapshot);
    let author = prepared.options.author();
    let outlook = planned.plan.as_ref().map(|plan| (plan.is_empty(), plan.unchanged, plan.refusals.clone()));
    let report = match outlook {
        None => not_applied(planned),
        Some(_) if planned.has_errors() => not_applied(planned),
        Some((_, _, refusals)) if !refusals.is_empty() => RunReport::Failed(refusals),
        // Once it is resumed, the next run says what a rollback left.
        Some((true, ..)) if is_undone(&prepared.options.source, &snapshot, &planned) => RunReport::Suspended(planned),
        Some((true, unchanged, _)) => {
            settled(&planned, snapshot.revision);
            RunReport::InSync { unchanged, revision: snapshot.revision }
        }
        Some(_) => RunReport::Suspended(planned),
    };
    let run = RunResult { report, findings, author };
    if !run.is_cut_short(&prepared.options) {
        measure("suspended", began);
    }
    run
}

/// Logs that drift is not told apart.
fn untold(prepared: &Prepared, error: &StoreError) {
    let source = prepared.options.source.as_str();
    tracing::warn!(source, code = %error.code, "cannot tell drift from pending changes: {error}");
}

fn look(
    store: &Store,
    prepared: &Prepared,
    changed_values: &[String],
    on_drift: OnDrift,
    may_apply: &dyn Fn() -> bool,
    settled: impl FnOnce(&Planned, u64),
) -> RunResult {
    /// Why a plan must not run.
    enum RunStop {
        Invalid(Box<Planned>),
        Refused(Vec<Diagnostic>),
        RolledBack,
        Cancelled,
        /// What it would overwrite is not in the history yet.
        Unseen {
            visible: u64,
            current: u64,
        },
        Failed(ApplyError),
    }
    impl From<ApplyError> for RunStop {
        fn from(error: ApplyError) -> Self {
            RunStop::Failed(error)
        }
    }
    let author = prepared.options.author();
    let mut findings = RunFindings::default();
    let mut held = HeldChanges::default();
    let mut accept = |snapshot: &Snapshot, mut planned: Planned| {
        match tell(store, &prepared.options.source, snapshot, &mut planned, None) {
            Ok(()) => {}
            // What is not put back must be known; all else can be applied without.
            Err(error) if on_drift == OnDrift::PutBack => untold(prepared, &error),
            Err(error) => return Err(RunStop::Failed(ApplyError::Commit(CommitError::Failed(error)))),
        }
        if let Some(plan) = &mut planned.plan {
            changed_values.clone_into(&mut plan.changed_values);
        }
        findings = RunFindings::of(&planned, snapshot);
        match &planned.plan {
            Some(plan) if !plan.is_empty() && is_left(store, &author, snapshot, &planned)? => {
                return Err(RunStop::RolledBack);
            }
            // Nothing to do, because a rollback gave resources to another source, or back to this one.
            Some(plan) if plan.is_empty() && is_undone(&prepared.options.source, snapshot, &planned) => {
                return Err(RunStop::RolledBack);
            }
            None => return Err(RunStop::Invalid(Box::new(planned))),
            Some(plan) if !plan.refusals.is_empty() => return Err(RunStop::Refused(plan.refusals.clone())),
            Some(_) if on_drift == OnDrift::PutBack => return Ok(planned),
            Some(plan) => {
                let visible = store.snapshot();
                if has_unseen(plan, &visible, snapshot) {
                    return Err(RunStop::Unseen { visible: visible.revision, current: snapshot.revision });
                }
            }
        }
        held = hold(snapshot, &mut planned).map_err(RunStop::Refused)?;
        findings.drifted = held.drifted;
        findings.drift.retain(|resource| resource.fields.iter().any(|field| field.state == DriftState::Drift));
        Ok(planned)
    };
    let plan = |current: &Snapshot| prepared.plan(current);
    let permit = || if may_apply() { Ok(()) } else { Err(RunStop::Cancelled) };
    let mut rounds = 0;
    let applied = loop {
        let mut tokens = TokenFiles::default();
        match apply_current(store, plan, |_| Ok(author.clone()), &mut tokens, &mut accept, permit) {
            Err(RunStop::Unseen { current, .. }) if rounds < MOST_ROUNDS => {
                // Commits become visible only when this run does not hold the lock.
                store.wait_for_revision(current.saturating_sub(1), LONGEST_WAIT);
                rounds += 1;
            }
            applied => break applied,
        }
    };
    let report = match applied {
        Ok((planned, _)) if planned.has_errors() => RunReport::Partly(planned),
        Ok((planned, applied)) => {
            let plan = planned.plan.as_ref();
            let (unchanged, mut base) = plan.map(|plan| (plan.unchanged, plan.base)).unwrap_or_default();
            // What is left as it is would be remembered as in sync.
            if held.is_empty() {
                if applied.is_none() {
                    base = accepted(store, &author, base, may_apply).unwrap_or(base);
                }
                settled(&planned, applied.unwrap_or(base));
            }
            match planned.plan.zip(applied) {
                applied if !held.is_empty() && on_drift != OnDrift::Count => RunReport::Drifted {
                    applied,
                    drifted: findings.drifted,
                    resources: findings.drift.iter().map(DriftedResource::to_string).collect(),
                    fight_until: match on_drift {
                        OnDrift::Rest { until } => Some(until),
                        OnDrift::PutBack | OnDrift::Report | OnDrift::Count => None,
                    },
                },
                Some((plan, revision)) => RunReport::Applied { plan, revision },
                None => RunReport::InSync { unchanged, revision: base },
            }
        }
        Err(RunStop::Invalid(planned)) => not_applied(*planned),
        Err(RunStop::Refused(refusals)) => RunReport::Failed(refusals),
        Err(RunStop::RolledBack) => RunReport::RolledBack { commit: commit_of(&author) },
        Err(RunStop::Cancelled) => {
            RunReport::Failed(vec![Diagnostic::error(Code::Unavailable, "the run was cancelled")])
        }
        Err(RunStop::Unseen { visible, current }) => {
            let stale = CommitError::Stale { base: visible, current };
            RunReport::Failed(vec![ApplyError::Commit(stale).diagnostic()])
        }
        Err(RunStop::Failed(error)) => RunReport::Failed(vec![error.diagnostic()]),
    };
    match &report {
        RunReport::Failed(found) => findings = findings.failed(found),
        RunReport::Invalid(_) | RunReport::Suspended(_) | RunReport::RolledBack { .. } => {}
        // Nothing is left to do but what is left as it is.
        RunReport::Applied { .. }
        | RunReport::InSync { .. }
        | RunReport::Unfetched { .. }
        | RunReport::Partly(_)
        | RunReport::Drifted { .. } => {
            findings.pending = Summary { change: held.waiting, ..Summary::default() };
            match on_drift {
                OnDrift::PutBack => (findings.drifted, findings.drift) = (0, Vec::new()),
                OnDrift::Report | OnDrift::Rest { .. } => {}
                OnDrift::Count => findings.drift.clear(),
            }
        }
    }
    RunResult { report, findings, author }
}

/// Whether commits that are not durable yet have changed what a plan changes. The history does not have them.
fn has_unseen(plan: &Plan, visible: &Snapshot, current: &Snapshot) -> bool {
    let is_same = |key: &Key| match (visible.get(key), current.get(key)) {
        (Some(visible), Some(current)) => Arc::ptr_eq(visible, current),
        (None, None) => true,
        _ => false,
    };
    visible.revision < current.revision && !plan.changes.iter().all(|change| is_same(&change.key))
}

/// Records that the store matches manifests that no rollback left, and returns the revision of that (D78).
fn accepted(store: &Store, author: &Author, base: u64, may_apply: &dyn Fn() -> bool) -> Option<u64> {
    let state = store.snapshot();
    if state.revision != base {
        return None;
    }
    store.accept(author, &state, may_apply).unwrap_or_else(|error| {
        let Author::Source { source, .. } = author else { return None };
        tracing::warn!(source, code = %error.code, "cannot record that the source is in sync after a rollback: {error}");
        None
    })
}

/// Whether a rollback left what the manifests declare (D78).
fn is_left(store: &Store, author: &Author, current: &Snapshot, planned: &Planned) -> Result<bool, ApplyError> {
    let Author::Source { source, commit, .. } = author else { return Ok(false) };
    if planned.plan.as_ref().is_some_and(|plan| only_declares(plan, current, source)) {
        return Ok(false);
    }
    // A plan that is refused was not tried.
    let refused =
        planned.plan.as_ref().filter(|plan| !plan.refusals.is_empty() && !current.rejected(source).is_empty());
    let untried = refused.and_then(|plan| Tried::new(current, &plan.each_operation()).ok());
    let after = planned.tried.as_deref().or(untried.as_ref()).map(|tried| tried.after());
    let left = store.is_rejected(current, source, commit.as_deref(), after);
    left.map_err(|error| ApplyError::Commit(CommitError::Failed(error)))
}

/// Whether manifests are still those from after a transfer that a rollback undid.
fn is_undone(source: &str, current: &Snapshot, planned: &Planned) -> bool {
    !planned.has_errors() && !current.rejected(source).is_empty() && planned.is_undone
}

impl RunReport {
    /// What the run means while the repository cannot be fetched. Other results are more urgent than that.
    pub(super) fn unfetched(self, failure: &Diagnostic) -> Self {
        let failure = failure.clone();
        match self {
            RunReport::Applied { plan, revision } => {
                let summary = plan.summary();
                let resources = summary.unchanged + summary.create + summary.change + summary.replace + summary.adopt;
                RunReport::Unfetched { applied: Some((plan, revision)), resources, failure }
            }
            RunReport::InSync { unchanged, .. } => {
                RunReport::Unfetched { applied: None, resources: unchanged, failure }
            }
            other => other,
        }
    }

    /// The plan that was applied, if any.
    pub(crate) fn applied_plan(&self) -> Option<&Plan> {
        match self {
            RunReport::Applied { plan, .. }
            | RunReport::Unfetched { applied: Some((plan, _)), .. }
            | RunReport::Drifted { applied: Some((plan, _)), .. } => Some(plan),
            RunReport::Partly(planned) => planned.plan.as_ref(),
            _ => None,
        }
    }

    /// The name of the result in metrics and spans.
    pub(super) fn result(&self) -> &'static str {
        match self {
            RunReport::Applied { .. } | RunReport::Unfetched { applied: Some(_), .. } => "applied",
            RunReport::InSync { .. } | RunReport::Unfetched { applied: None, .. } => "in_sync",
            RunReport::Invalid(_) => "invalid",
            RunReport::Partly(_) => "partly_applied",
            RunReport::Suspended(_) => "suspended",
            RunReport::RolledBack { .. } => "rolled_back",
            RunReport::Drifted { .. } => "drifted",
            RunReport::Failed(_) => "failed",
        }
    }

    /// The reason for the loop's condition (D33).
    pub(crate) fn condition(&self) -> (Reason, String) {
        let errors = |planned: &Planned| {
            let count = planned.diagnostics.iter().filter(|it| it.severity == Severity::Error).count();
            format!("{count} error{} in the manifests", if count == 1 { "" } else { "s" })
        };
        match self {
            RunReport::Applied { plan, .. } => (Reason::Applied, format!("applied: {}", plan.summary())),
            RunReport::InSync { unchanged, .. } => (Reason::InSync, format!("{unchanged} unchanged")),
            RunReport::Unfetched { failure, .. } => (Reason::FetchFailed, failure.message.clone()),
            RunReport::Invalid(planned) => unread(planned).unwrap_or_else(|| (Reason::Invalid, errors(planned))),
            RunReport::Partly(planned) => {
                // Without its context, a part of the source was applied nevertheless.
                let is_unread = |(reason, _): &(Reason, String)| *reason != Reason::Failed || planned.own_files() == 0;
                unread(planned).filter(is_unread).unwrap_or_else(|| (Reason::PartlyApplied, errors(planned)))
            }
            RunReport::Suspended(planned) => {
                let summary = planned.plan.as_ref().map(|plan| plan.summary()).unwrap_or_default();
                (Reason::Suspended, format!("not applied: {summary}"))
            }
            RunReport::RolledBack { commit } => {
                let (what, verb) = match commit {
                    Some(commit) => (format!("commit {commit}"), "declares"),
                    None => ("the manifests".to_owned(), "declare"),
                };
                (
                    Reason::RolledBack,
                    format!("a rollback undid what {what} {verb}; nothing is applied until that changes"),
                )
            }
            RunReport::Drifted { drifted, fight_until, .. } => {
                let resources = if *drifted == 1 {
                    "1 drifted resource".to_owned()
                } else {
                    format!("{drifted} drifted resources")
                };
                match fight_until {
                    Some(until) => (
                        Reason::Fight,
                        format!("{resources} left as is until {until}: others keep changing what is put back"),
                    ),
                    None => (Reason::Drifted, format!("{resources} left as is")),
                }
            }
            RunReport::Failed(diagnostics) => {
                let message = diagnostics.first().map(|it| it.message.clone()).unwrap_or_default();
                let reason = match diagnostics.first().map(|it| it.code) {
                    Some(Name::Code(Code::PreventDestroy | Code::TooManyDeletions)) => Reason::Refused,
                    Some(Name::Code(Code::Internal)) => Reason::Panicked,
                    _ => Reason::Failed,
                };
                (reason, message)
            }
        }
    }
}

/// The report of manifests with errors. If there was nothing to read, such as a branch or folder that does not exist, the
/// run has failed, and nothing is known about the manifests.
fn not_applied(mut planned: Planned) -> RunReport {
    match &planned.unread {
        Some(unread) if reason(unread) == Reason::Failed => {
            // The first diagnostic becomes the message of the condition.
            planned.diagnostics.sort_by_key(|found| (found.code, found.cause) != (unread.code, unread.cause));
            RunReport::Failed(planned.diagnostics)
        }
        _ => RunReport::Invalid(planned),
    }
}

/// The reason and message if the manifests were not read (D82, D88, D89).
fn unread(planned: &Planned) -> Option<(Reason, String)> {
    planned.unread.as_ref().map(|unread| (reason(unread), unread.message.clone()))
}

/// The reason of a source whose manifests were not read: it failed, or they must not be read.
fn reason(unread: &Diagnostic) -> Reason {
    match unread.code {
        Name::Code(Code::FetchFailed) => Reason::FetchFailed,
        Name::Code(Code::UnverifiedCommit | Code::Rewound) => Reason::Refused,
        _ => Reason::Failed,
    }
}

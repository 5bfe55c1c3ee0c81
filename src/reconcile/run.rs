//! One run of the loop, and its report.

use std::{fmt, time::Instant};

use super::{
    ApplyError, Planned, Prepared, apply_current, health::Reason, measure, status::RunFindings, token::TokenFiles,
};
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name, Severity},
        operation::Author,
        snapshot::Snapshot,
    },
    plan::{Plan, Summary},
    store::{CommitError, Store},
};

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
    /// The plan was refused or failed.
    Failed(Vec<Diagnostic>),
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
}

fn commit_of(author: &Author) -> Option<String> {
    match author {
        Author::Source { commit, .. } => commit.clone(),
        _ => None,
    }
}

/// Reconciles once, like the `reconcile` command. `settled` is called if the store matches the manifests now, with its
/// revision.
pub(super) fn run_once(store: &Store, prepared: &Prepared, settled: impl FnOnce(&Planned, u64)) -> RunResult {
    let began = Instant::now();
    let run = look(store, prepared, settled);
    let result = match run.report {
        RunReport::Applied { .. } => "applied",
        RunReport::InSync { .. } => "in_sync",
        RunReport::Invalid(_) => "invalid",
        RunReport::Partly(_) => "partly_applied",
        RunReport::Suspended(_) => "suspended",
        RunReport::RolledBack { .. } => "rolled_back",
        RunReport::Failed(_) => "failed",
    };
    measure(result, began);
    run
}

/// Plans like [`run_once`], and applies nothing. `settled` is called if the store matches the manifests.
pub(super) fn run_suspended(store: &Store, prepared: &Prepared, settled: impl FnOnce(&Planned, u64)) -> RunResult {
    let began = Instant::now();
    let snapshot = store.snapshot();
    let planned = prepared.plan(&snapshot);
    let findings = RunFindings::of(&planned, &snapshot);
    let author = prepared.options.author();
    let outlook = planned.plan.as_ref().map(|plan| (plan.is_empty(), plan.unchanged, plan.refusals.clone()));
    let report = match outlook {
        None => RunReport::Invalid(planned),
        Some(_) if planned.has_errors() => RunReport::Invalid(planned),
        Some((_, _, refusals)) if !refusals.is_empty() => RunReport::Failed(refusals),
        Some((true, unchanged, _)) => {
            settled(&planned, snapshot.revision);
            RunReport::InSync { unchanged, revision: snapshot.revision }
        }
        Some(_) => RunReport::Suspended(planned),
    };
    measure("suspended", began);
    RunResult { report, findings, author }
}

fn look(store: &Store, prepared: &Prepared, settled: impl FnOnce(&Planned, u64)) -> RunResult {
    /// Why a plan must not run.
    enum RunStop {
        Invalid(Box<Planned>),
        Refused(Vec<Diagnostic>),
        RolledBack,
        Failed(ApplyError),
    }
    impl From<ApplyError> for RunStop {
        fn from(error: ApplyError) -> Self {
            RunStop::Failed(error)
        }
    }
    let author = prepared.options.author();
    let mut findings = RunFindings::default();
    let accept = |snapshot: &Snapshot, planned: Planned| {
        findings = RunFindings::of(&planned, snapshot);
        match &planned.plan {
            Some(plan) if !plan.is_empty() && is_left(store, &author, snapshot, &planned)? => Err(RunStop::RolledBack),
            None => Err(RunStop::Invalid(Box::new(planned))),
            Some(plan) if !plan.refusals.is_empty() => Err(RunStop::Refused(plan.refusals.clone())),
            Some(_) => Ok(planned),
        }
    };
    let plan = |current: &Snapshot| prepared.plan(current);
    let report = match apply_current(store, plan, |_| Ok(author.clone()), &mut TokenFiles::default(), accept) {
        Ok((planned, _)) if planned.has_errors() => RunReport::Partly(planned),
        Ok((planned, applied)) => {
            let plan = planned.plan.as_ref();
            let (unchanged, base) = plan.map(|plan| (plan.unchanged, plan.base)).unwrap_or_default();
            settled(&planned, applied.unwrap_or(base));
            match (planned.plan, applied) {
                (Some(plan), Some(revision)) => RunReport::Applied { plan, revision },
                _ => RunReport::InSync { unchanged, revision: base },
            }
        }
        Err(RunStop::Invalid(planned)) => RunReport::Invalid(*planned),
        Err(RunStop::Refused(refusals)) => RunReport::Failed(refusals),
        Err(RunStop::RolledBack) => RunReport::RolledBack { commit: commit_of(&author) },
        Err(RunStop::Failed(error)) => RunReport::Failed(vec![error.diagnostic()]),
    };
    match &report {
        RunReport::Failed(found) => findings = findings.failed(found),
        RunReport::Invalid(_) | RunReport::Suspended(_) | RunReport::RolledBack { .. } => {}
        // Nothing is left to do.
        RunReport::Applied { .. } | RunReport::InSync { .. } | RunReport::Partly(_) => {
            findings.pending = Summary::default();
        }
    }
    RunResult { report, findings, author }
}

/// Whether a rollback left what the manifests declare (D78).
fn is_left(store: &Store, author: &Author, current: &Snapshot, planned: &Planned) -> Result<bool, ApplyError> {
    let Author::Source { source, commit, .. } = author else { return Ok(false) };
    let after = planned.tried.as_ref().map(|tried| tried.after());
    let left = store.is_rejected(current, source, commit.as_deref(), after);
    left.map_err(|error| ApplyError::Commit(CommitError::Failed(error)))
}

impl RunReport {
    /// The reason for the loop's condition (D33).
    pub(super) fn condition(&self) -> (Reason, String) {
        let errors = |planned: &Planned| {
            let count = planned.diagnostics.iter().filter(|it| it.severity == Severity::Error).count();
            format!("{count} error{} in the manifests", if count == 1 { "" } else { "s" })
        };
        match self {
            RunReport::Applied { plan, .. } => (Reason::Applied, plan.summary().to_string()),
            RunReport::InSync { unchanged, .. } => (Reason::InSync, format!("{unchanged} unchanged")),
            RunReport::Invalid(planned) => unread(planned).unwrap_or_else(|| (Reason::Invalid, errors(planned))),
            RunReport::Partly(planned) => unread(planned).unwrap_or_else(|| (Reason::PartlyApplied, errors(planned))),
            RunReport::Suspended(planned) => {
                let summary = planned.plan.as_ref().map(|plan| plan.summary()).unwrap_or_default();
                (Reason::Suspended, format!("suspended, not applied: {summary}"))
            }
            RunReport::RolledBack { commit } => {
                let what =
                    commit.as_ref().map_or_else(|| "the manifests".to_owned(), |commit| format!("commit {commit}"));
                (Reason::RolledBack, format!("a rollback undid {what}; nothing is applied until the manifests change"))
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

/// The reason and message if there is no commit to read, or if it must not be read (D88, D89).
fn unread(planned: &Planned) -> Option<(Reason, String)> {
    planned.diagnostics.iter().find_map(|found| {
        let reason = match found.code {
            Name::Code(Code::FetchFailed) => Reason::FetchFailed,
            Name::Code(Code::UnverifiedCommit) => Reason::Refused,
            _ => return None,
        };
        Some((reason, found.message.clone()))
    })
}

/// The digest of a report, hashed while writing because the text may be as large as the manifests.
pub(super) fn digest(report: &RunReport) -> blake3::Hash {
    struct HashWriter(blake3::Hasher);
    impl fmt::Write for HashWriter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut writer = HashWriter(blake3::Hasher::new());
    let _ = match report {
        // Changes by others are not news about the manifests.
        RunReport::InSync { unchanged, .. } => fmt::Write::write_fmt(&mut writer, format_args!("in sync {unchanged}")),
        RunReport::Partly(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.len());
            let news = (&planned.diagnostics, planned.left_out_names(), changes);
            fmt::Write::write_fmt(&mut writer, format_args!("partly {news:?}"))
        }
        RunReport::Suspended(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.as_slice()).unwrap_or_default();
            let news: Vec<_> = changes.iter().map(|change| (&change.key, change.effect)).collect();
            fmt::Write::write_fmt(&mut writer, format_args!("suspended {:?} {news:?}", planned.diagnostics))
        }
        _ => fmt::Write::write_fmt(&mut writer, format_args!("{report:?}")),
    };
    writer.0.finalize()
}

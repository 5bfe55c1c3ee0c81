//! The report of a run, and the condition that a source has after it.

use super::plan_result::PlanResult;
use crate::model::{Cause, Name};
use crate::reconcile::prelude::*;
use crate::reconcile::sync_loop::condition::Reason;

/// The report of a run.
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
    Invalid(PlanResult),
    /// Some manifests have errors; the rest is applied (D44).
    Partly(PlanResult),
    /// The source is suspended; the plan is not applied.
    Suspended(PlanResult),
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
        /// When they are reverted again, if others keep changing them.
        fight_until: Option<Timestamp>,
    },
    /// The plan was refused or failed.
    Failed(Vec<Diagnostic>),
}

impl RunReport {
    /// The report of manifests with errors. If there was nothing to read, such as a branch or folder that does not exist, the
    /// run has failed, and nothing is known about the manifests.
    pub(super) fn invalid(mut planned: PlanResult) -> Self {
        match &planned.unread {
            Some(unread) if reason(unread) == Reason::Failed => {
                // The first diagnostic becomes the message of the condition.
                let is_like =
                    |found: &Diagnostic| (found.cause, found.is_surrounding) == (unread.cause, unread.is_surrounding);
                planned.diagnostics.sort_by_key(|found| !is_like(found));
                RunReport::Failed(planned.diagnostics)
            }
            _ => RunReport::Invalid(planned),
        }
    }

    /// Returns the report while the repository cannot be fetched. Other results take precedence.
    pub(crate) fn unfetched(self, failure: &Diagnostic) -> Self {
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
    pub(in crate::reconcile) fn result(&self) -> &'static str {
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

    /// The message of the record in the history: that of the condition, with the first error in the manifests.
    pub(in crate::reconcile) fn note(&self) -> String {
        let message = self.condition().1;
        let (RunReport::Invalid(planned) | RunReport::Partly(planned)) = self else { return message };
        let first = planned.diagnostics.iter().find(|it| it.is_error() && !message.contains(&it.message));
        first.map_or_else(|| message.clone(), |first| format!("{message}: {}", first.on_one_line()))
    }

    /// The reason for the loop's condition (D33).
    pub(crate) fn condition(&self) -> (Reason, String) {
        let errors = |planned: &PlanResult| {
            let count = planned.diagnostics.iter().filter(|it| it.is_error()).count();
            format!("{} in the manifests", number_of(count, "error"))
        };
        match self {
            RunReport::Applied { plan, .. } => (Reason::Applied, format!("applied: {}", plan.summary().changes())),
            RunReport::InSync { unchanged, .. } => (Reason::InSync, format!("{unchanged} unchanged")),
            RunReport::Unfetched { failure, .. } => (Reason::FetchFailed, failure.message.clone()),
            RunReport::Invalid(planned) => unread(planned).unwrap_or_else(|| {
                let by_others = |revision: u64| {
                    format!(": route tests fail because of a change by others after revision {revision}")
                };
                let by_others = planned.tests.passed_until.map(by_others).unwrap_or_default();
                (Reason::Invalid, format!("{}{by_others}", errors(planned)))
            }),
            RunReport::Partly(planned) => {
                // Without the surrounding manifests, a part of the source was applied nevertheless.
                let is_unread = |(reason, _): &(Reason, String)| *reason != Reason::Failed || planned.own_files() == 0;
                let partly = || (Reason::PartlyApplied, format!("{}; the rest is applied", errors(planned)));
                unread(planned).filter(is_unread).unwrap_or_else(partly)
            }
            RunReport::Suspended(planned) => {
                let summary = planned.plan.as_ref().map(|plan| plan.summary()).unwrap_or_default();
                (Reason::Suspended, format!("not applied: {}", summary.changes()))
            }
            RunReport::RolledBack { commit } => {
                // Another commit may have declared the same when the rollback undid it.
                let manifests = match commit {
                    Some(commit) => format!("the manifests of commit {commit}"),
                    None => "the manifests".to_owned(),
                };
                (
                    Reason::RolledBack,
                    format!("held: a rollback undid what {manifests} declare; applied again when they change"),
                )
            }
            RunReport::Drifted { drifted, fight_until, .. } => {
                let left = format!("{} left as is", number_of(*drifted, "drifted resource"));
                match fight_until {
                    Some(until) => {
                        (Reason::Fight, format!("{left} until {until}: other writers keep changing what is reverted"))
                    }
                    None => (Reason::Drifted, left),
                }
            }
            RunReport::Failed(diagnostics) => {
                let message = diagnostics.first().map(|it| it.message.clone()).unwrap_or_default();
                let reason = match diagnostics.first().map(|it| it.code) {
                    Some(Name::Code(Code::PreventDestroy | Code::TooManyDeletions) | Name::Lint(_)) => Reason::Refused,
                    Some(Name::Code(Code::Internal)) => Reason::Panicked,
                    _ => Reason::Failed,
                };
                (reason, message)
            }
        }
    }
}

/// The reason and message if the manifests were not read (D82, D88, D89).
fn unread(planned: &PlanResult) -> Option<(Reason, String)> {
    planned.unread.as_ref().map(|unread| (reason(unread), unread.message.clone()))
}

/// The reason of a source whose manifests were not read: it failed, or they must not be read.
fn reason(unread: &Diagnostic) -> Reason {
    match unread.cause {
        Some(Cause::NotFetched) => Reason::FetchFailed,
        Some(Cause::RefusedCommit) => Reason::Refused,
        _ => Reason::Failed,
    }
}

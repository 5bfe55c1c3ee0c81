//! The report of a command, independent of its format.

use super::behaviour::BehaviourDiff;
use super::proof_report::ProofReport;
use super::redacted_plan::RedactedPlan;
use super::test_report::TestReport;
use crate::model::{Code, Diagnostic, Severity};

/// The result of `validate`, `test`, `prove`, `reconcile` or `diff`.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The command's name.
    pub command: &'static str,
    /// The source, unless it is the default one: a comment on a pull request replaces only comments of the same source.
    pub source: Option<String>,
    /// Errors and warnings, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan, if planning succeeded.
    pub plan: Option<RedactedPlan>,
    /// The plan that only invariants refuse, without its calls, if its effect on requests was asked for.
    pub refused: Option<RedactedPlan>,
    /// Errors that forbid running the plan.
    pub refusals: Vec<Diagnostic>,
    /// The number of files read.
    pub files: usize,
    /// The first file read: where a format that requires a place shows a diagnostic without one.
    pub first_file: Option<String>,
    /// The applied revision, if the plan was applied.
    pub applied: Option<u64>,
    /// The path of the store, if the run found none there: it may be mistyped.
    pub new_store: Option<String>,
    /// The results of the route tests, if they were asked for.
    pub tests: Option<TestReport>,
    /// The answers about invariants, if they were asked for.
    pub proofs: Option<ProofReport>,
    /// The address of the plan in the dashboard, if a server keeps it.
    pub page: Option<String>,
}

/// Says that there is no store at a path, so that a plan creates everything.
pub(crate) fn no_store_found(path: &str) -> String {
    format!("No store found in `{path}`: this plan is for a new one.")
}

impl Report {
    /// The number of diagnostics with a severity, including those omitted because their file has too many.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|it| it.counts_as(severity)).map(|it| 1 + it.omitted as usize).sum()
    }

    /// Whether the manifests have errors.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How requests are treated differently, if that was asked for, with the plan: also with one that invariants refuse.
    pub(crate) fn behaviour(&self) -> Option<(&RedactedPlan, &BehaviourDiff)> {
        let plan = self.plan.as_ref().or(self.refused.as_ref())?;
        Some((plan, plan.behaviour.as_ref()?))
    }

    /// Whether a finding is part of an answer about an invariant. The warning of routes that break one only without those of other
    /// sources is in none.
    pub(crate) fn has_in_answers(&self, it: &Diagnostic) -> bool {
        let is_answered = self.proofs.as_ref().is_some_and(|proofs| !proofs.invariants.is_empty());
        let is_broken = it.is_one_of(&[Code::InvariantBroken]) && it.is_error();
        is_answered && (is_broken || it.is_one_of(&[Code::InvariantUnproven]))
    }

    /// Whether the plan was made without secrets that its reader does not see: it may change more than it shows.
    pub(crate) fn hides_secrets(&self) -> bool {
        self.diagnostics.iter().any(|it| it.is_one_of(&[Code::UncomparedSecrets]))
    }
}

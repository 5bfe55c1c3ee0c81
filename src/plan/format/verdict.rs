//! The lines about a report as a whole, as several formats show them.

use crate::model::Severity;
use crate::model::diagnostics::diagnostic::counted;
use crate::plan::proof_report::ProofReport;
use crate::plan::report::{Report, no_store_found};
use crate::plan::test_report::{TestOutcome, TestReport};
use crate::routing::invariant::ProofAnswer;
use crate::syntax::text::number_of;

/// The result of the run.
pub(super) fn verdict(report: &Report) -> String {
    let invalid = report.has_errors();
    match (&report.plan, report.applied) {
        (None, _) if invalid => "the manifests are invalid".into(),
        (Some(_), _) if invalid => "failed".into(),
        (Some(_), _) if !report.refusals.is_empty() => "refused".into(),
        (_, Some(revision)) => format!("applied as revision {revision}"),
        (Some(plan), None) if plan.is_empty() => "no changes".into(),
        (Some(_), None) => "changes are pending".into(),
        (None, None) => report.proofs.as_ref().map_or_else(|| "the manifests are valid".into(), answers),
    }
}

/// The counts of files, findings and changes, in one line.
pub(super) fn summary(report: &Report) -> String {
    let mut line = format!("{}, {}", number_of(report.files, "file"), counted(&report.diagnostics, Severity::Error));
    if report.count(Severity::Warning) > 0 {
        line += &format!(", {}", counted(&report.diagnostics, Severity::Warning));
    }
    if !report.refusals.is_empty() {
        line += &format!(", {}", number_of(report.refusals.len(), "refusal"));
    }
    if let Some(tests) = &report.tests {
        line += &format!("; {}", tested(tests));
    }
    if let Some(proofs) = &report.proofs {
        line += &format!("; {}", answers(proofs));
    }
    match &report.plan {
        Some(plan) => format!("{line}; {}", plan.summary()),
        None => line,
    }
}

/// The counts of tested requests by their results.
pub(crate) fn tested(tests: &TestReport) -> String {
    let other =
        [TestOutcome::Failed, TestOutcome::Warned, TestOutcome::Skipped].map(|result| (result, tests.count(result)));
    let other = other.into_iter().filter(|(_, count)| *count > 0);
    let other: String = other.map(|(result, count)| format!(", {count} {}", result.as_str())).collect();
    format!("{} tested: {} passed{other}", number_of(tests.results.len(), "request"), tests.count(TestOutcome::Passed))
}

/// The lines about what a result or an answer depends on that was not seen.
pub(crate) fn unseen_lines(unseen: &[String]) -> impl Iterator<Item = String> {
    unseen.iter().map(|unseen| format!("depends on {unseen}"))
}

/// The counts of invariants by their answers.
pub(crate) fn answers(proofs: &ProofReport) -> String {
    let counts = ProofAnswer::ALL.map(|answer| (answer, proofs.count(answer)));
    let counts = counts.into_iter().filter(|(answer, count)| *count > 0 || *answer == ProofAnswer::Proven);
    let counts: Vec<String> = counts.map(|(answer, count)| format!("{count} {}", answer.as_str())).collect();
    format!("{}: {}", number_of(proofs.invariants.len(), "invariant"), counts.join(", "))
}

/// Returns the notice to reviewers about a plan for a store that does not exist.
pub(super) fn store_note(report: &Report) -> Option<String> {
    let is_pending = report.plan.is_some() && report.applied.is_none();
    report.new_store.as_deref().filter(|_| is_pending).map(no_store_found)
}

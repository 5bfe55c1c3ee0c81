//! The lines about a report as a whole, as several formats show them.

use crate::model::Severity;
use crate::model::diagnostics::diagnostic::counted;
use crate::plan::report::{Report, no_store_found};
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
        (None, None) => "the manifests are valid".into(),
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
    match &report.plan {
        Some(plan) => format!("{line}; {}", plan.summary()),
        None => line,
    }
}

/// Returns the notice to reviewers about a plan for a store that does not exist.
pub(super) fn store_note(report: &Report) -> Option<String> {
    let is_pending = report.plan.is_some() && report.applied.is_none();
    report.new_store.as_deref().filter(|_| is_pending).map(no_store_found)
}

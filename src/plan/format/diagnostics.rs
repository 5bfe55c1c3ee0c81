//! The diagnostics of a report and their places, as several formats show them.

use crate::model::{Diagnostic, Place};
use crate::plan::report::Report;

/// The diagnostics of the manifests, then the refusals of the plan.
pub(super) fn everything(report: &Report) -> impl Iterator<Item = &Diagnostic> {
    report.diagnostics.iter().chain(&report.refusals)
}

/// The first `most` of everything, and the number of the others. Errors and refusals come before warnings only in the
/// choice, not in the order.
pub(super) fn limited(report: &Report, most: usize) -> (Vec<&Diagnostic>, usize) {
    let all: Vec<&Diagnostic> = everything(report).collect();
    let errors = all.iter().filter(|it| it.is_error()).count();
    let (mut errors, mut warnings) = (errors.min(most), most.saturating_sub(errors));
    let total = all.len();
    let chosen = all.into_iter().filter(|it| {
        let left = if it.is_error() { &mut errors } else { &mut warnings };
        let has_room = *left > 0;
        *left = left.saturating_sub(1);
        has_room
    });
    let chosen: Vec<&Diagnostic> = chosen.collect();
    let omitted = total - chosen.len();
    (chosen, omitted)
}

/// `file:line:column`, as editors and terminals expect it.
pub(super) fn position(place: &Place) -> String {
    let (line, column) = place.line_column();
    format!("{}:{line}:{column}", place.file.name)
}

/// A file's path without a leading `./`.
pub(super) fn path_of(place: &Place) -> &str {
    plain_path(&place.file.name)
}

pub(super) fn plain_path(name: &str) -> &str {
    name.trim_start_matches("./")
}

//! Report formats, one file each (D30). All are pure, and none shows a secret. See docs/reference/formats.md.

pub(crate) mod github;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod sarif;

use super::{
    render as text,
    report::{Report, no_store_found},
};
use crate::model::{
    Diagnostic, JsonError, Severity,
    diagnostics::{Place, diagnostic::counted},
    names::names,
};

/// A report format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal: only the plan, because diagnostics go to stderr.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For a comment on a pull request.
    Markdown,
    /// For the log of a GitHub workflow.
    Github,
    /// For code scanning.
    Sarif,
    /// For test reports.
    Junit,
}

names! {
    Format: Text "text", Json "json", Markdown "markdown", Github "github", Sarif "sarif", Junit "junit"
}

/// Renders the report. Text has colour codes; the caller strips them if needed.
pub fn render(format: Format, report: &Report) -> Result<String, JsonError> {
    Ok(match format {
        Format::Text => report.plan.as_ref().map(text::text).unwrap_or_default(),
        Format::Json => json::render(report)?,
        Format::Markdown => markdown::render(report),
        Format::Github => github::render(report),
        Format::Sarif => sarif::render(report),
        Format::Junit => junit::render(report)?,
    })
}

/// The diagnostics of the manifests, then the refusals of the plan.
fn everything(report: &Report) -> impl Iterator<Item = &Diagnostic> {
    report.diagnostics.iter().chain(&report.refusals)
}

/// The first `most` of everything, and the number of the others. Errors and refusals come before warnings only in the
/// choice, not in the order.
fn limited(report: &Report, most: usize) -> (Vec<&Diagnostic>, usize) {
    let all: Vec<&Diagnostic> = everything(report).collect();
    let errors = all.iter().filter(|it| it.severity == Severity::Error).count();
    let (mut errors, mut warnings) = (errors.min(most), most.saturating_sub(errors));
    let total = all.len();
    let chosen = all.into_iter().filter(|it| {
        let left = if it.severity == Severity::Error { &mut errors } else { &mut warnings };
        let has_room = *left > 0;
        *left = left.saturating_sub(1);
        has_room
    });
    let chosen: Vec<&Diagnostic> = chosen.collect();
    let omitted = total - chosen.len();
    (chosen, omitted)
}

/// The result of the run.
fn verdict(report: &Report) -> String {
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
fn summary(report: &Report) -> String {
    let mut line = format!("{}, {}", plural(report.files, "file"), counted(&report.diagnostics, Severity::Error));
    if report.count(Severity::Warning) > 0 {
        line += &format!(", {}", counted(&report.diagnostics, Severity::Warning));
    }
    if !report.refusals.is_empty() {
        line += &format!(", {}", plural(report.refusals.len(), "refusal"));
    }
    match &report.plan {
        Some(plan) => format!("{line}; {}", plan.summary()),
        None => line,
    }
}

/// Returns the notice to reviewers about a plan for a store that does not exist.
fn store_note(report: &Report) -> Option<String> {
    let is_pending = report.plan.is_some() && report.applied.is_none();
    report.new_store.as_deref().filter(|_| is_pending).map(no_store_found)
}

/// A number of things, such as `2 routes`.
pub(crate) fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// `file:line:column`, as editors and terminals expect it.
fn position(place: &Place) -> String {
    let (line, column) = place.line_column();
    format!("{}:{line}:{column}", place.file.name)
}

/// A file's path without a leading `./`.
fn path_of(place: &Place) -> &str {
    plain_path(&place.file.name)
}

fn plain_path(name: &str) -> &str {
    name.trim_start_matches("./")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{
        Effect,
        outline::{Outline, OutlinedChange},
    };

    #[test]
    fn text_is_the_plan_and_nothing_else() {
        let change = OutlinedChange {
            effect: Effect::Create,
            kind: "HttpsEdge".into(),
            name: "shop".into(),
            id: "edghts_1".into(),
            notes: Vec::new(),
            calls: Vec::new(),
            drift: None,
        };
        let plan = Some(Outline { base: 1, unchanged: 2, changes: vec![change], untold: 0 });
        let report = Report { plan, ..Report::default() };
        assert_eq!(render(Format::Text, &report).ok(), report.plan.as_ref().map(text::text));
    }
}

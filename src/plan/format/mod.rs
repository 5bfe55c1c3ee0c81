//! Formats of a report: one file each (D30). All are pure, and none shows a secret. docs/formats.md describes them.

pub mod github;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod sarif;

use super::{render as text, report::Report};
use crate::model::{
    diagnostic::{Diagnostic, Place, Severity},
    operation::Operation,
};

/// How a report is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal: the plan alone, for diagnostics go to stderr.
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

impl Format {
    /// Every format.
    pub const ALL: [Format; 6] =
        [Format::Text, Format::Json, Format::Markdown, Format::Github, Format::Sarif, Format::Junit];

    /// The format with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Markdown => "markdown",
            Format::Github => "github",
            Format::Sarif => "sarif",
            Format::Junit => "junit",
        }
    }
}

/// The report in a format. Text has colour; whoever prints it strips the colour where it has no place.
pub fn render(format: Format, report: &Report<'_>) -> String {
    match format {
        Format::Text => report.plan.map(text::text).unwrap_or_default(),
        Format::Json => json::render(report),
        Format::Markdown => markdown::render(report),
        Format::Github => github::render(report),
        Format::Sarif => sarif::render(report),
        Format::Junit => junit::render(report),
    }
}

/// Why the plan must not run.
fn refusals<'a>(report: &Report<'a>) -> &'a [Diagnostic] {
    match report.plan {
        Some(plan) => &plan.refusals,
        None => &[],
    }
}

/// Faults and findings of the manifests, then the refusals of the plan.
fn everything<'a>(report: &Report<'a>) -> impl Iterator<Item = &'a Diagnostic> + use<'a> {
    report.diagnostics.iter().chain(refusals(report))
}

/// The calls of a list of operations, as method and path. What only changes ownership has none.
fn calls(operations: &[Operation]) -> impl Iterator<Item = (&Operation, &'static str, String)> {
    operations.iter().filter_map(|operation| operation.call().map(|(method, path)| (operation, method, path)))
}

/// How the run ended, in a few words.
fn verdict(report: &Report<'_>) -> String {
    let invalid = report.count(Severity::Error) > 0;
    match (report.plan, report.applied) {
        (None, _) if invalid => "the manifests are invalid".into(),
        (Some(_), _) if invalid => "failed".into(),
        (Some(plan), _) if !plan.refusals.is_empty() => "refused".into(),
        (_, Some(revision)) => format!("applied as revision {revision}"),
        (Some(plan), None) if plan.is_empty() => "no changes".into(),
        (Some(_), None) => "changes are pending".into(),
        (None, None) => "the manifests are valid".into(),
    }
}

/// What was read and found, and what the plan comes to, in one line.
fn summary(report: &Report<'_>) -> String {
    let mut line = format!("{}, {}", plural(report.files, "file"), plural(report.count(Severity::Error), "error"));
    for (count, word) in [(report.count(Severity::Warning), "warning"), (refusals(report).len(), "refusal")] {
        if count > 0 {
            line += &format!(", {}", plural(count, word));
        }
    }
    match report.plan {
        Some(plan) => format!("{line}; {}", plan.summary()),
        None => line,
    }
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// `file:line:column`, as editors and terminals take it.
fn position(place: &Place) -> String {
    let (line, column) = place.line_column();
    format!("{}:{line}:{column}", place.file.name)
}

/// A file's path without the `./` that shells and people put in front.
fn path_of(place: &Place) -> &str {
    place.file.name.trim_start_matches("./")
}

/// The word for a severity, in every format.
fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

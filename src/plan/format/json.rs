//! JSON for programs: documented, versioned (docs/reference/formats.md), and readable back into a report.

use std::{collections::HashMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lint;
use crate::model::diagnostics::invariant_finding::InvariantFinding;
use crate::model::{Code, Diagnostic, JsonError, Name, Place, Secrets, Severity, SourceFile, json};
use crate::plan::proof_report::ProofReport;
use crate::plan::redacted_plan::RedactedPlan;
use crate::plan::report::Report;
use crate::plan::summary::Summary;
use crate::plan::test_report::TestReport;

/// The name and version of the format. New fields keep the version; any other change needs a new one.
pub(crate) const VERSION: &str = "edgewright/report/v1";

/// A report as a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReportDocument {
    /// `edgewright/report/v1`.
    pub format: String,
    /// The command.
    pub command: String,
    /// Counts of changes, diagnostics and files.
    pub summary: Counts,
    /// Errors and warnings.
    pub diagnostics: Vec<Item>,
    /// Errors that forbid running the plan.
    pub refusals: Vec<Item>,
    /// The plan; null if planning failed.
    pub plan: Option<RedactedPlan>,
    /// The plan that only invariants refuse, without its calls, if `behaviour` was asked for; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_plan: Option<RedactedPlan>,
    /// The applied revision, or null.
    pub applied: Option<u64>,
    /// The path of the store, if there was none before the run; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_store: Option<String>,
    /// The results of the route tests, if they were asked for; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// The answers about invariants, if they were asked for; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proofs: Option<ProofReport>,
    /// The address of the plan in the dashboard, if it was asked for and the server keeps it; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// Counts of changes, diagnostics and files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub(crate) struct Counts {
    #[serde(flatten)]
    pub changes: Summary,
    pub errors: usize,
    pub warnings: usize,
    pub files: usize,
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Diagnostic")]
pub(crate) struct Item {
    /// A registered code or a lint name.
    pub code: String,
    /// The severity.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// The fix, or null.
    pub help: Option<String>,
    /// The place.
    #[serde(flatten)]
    pub spot: Spot,
    /// Related places.
    pub related: Vec<RelatedPlace>,
    /// The invariant that the diagnostic is about, with a request; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invariant: Option<InvariantFinding>,
}

/// A place related to a diagnostic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct RelatedPlace {
    /// The place.
    #[serde(flatten)]
    pub spot: Spot,
    /// How the place is related.
    pub message: String,
}

/// A place in a file; all null if the diagnostic has no place. Lines and columns count from 1, columns in characters;
/// the end is exclusive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub(crate) struct Spot {
    pub file: Option<String>,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub end_line: Option<usize>,
    pub end_column: Option<usize>,
}

/// The report as one JSON object.
pub(crate) fn render(report: &Report) -> Result<String, JsonError> {
    json::text(&ReportDocument::from_report(report), Secrets::Masked)
}

impl ReportDocument {
    /// The document of a report.
    pub(crate) fn from_report(report: &Report) -> Self {
        let items = |diagnostics: &[Diagnostic]| diagnostics.iter().map(Item::from_diagnostic).collect();
        Self {
            format: VERSION.to_owned(),
            command: report.command.to_owned(),
            summary: Counts {
                changes: report.plan.as_ref().map(RedactedPlan::summary).unwrap_or_default(),
                errors: report.count(Severity::Error),
                warnings: report.count(Severity::Warning),
                files: report.files,
            },
            diagnostics: items(&report.diagnostics),
            refusals: items(&report.refusals),
            plan: report.plan.clone(),
            refused_plan: report.refused.clone(),
            applied: report.applied,
            new_store: report.new_store.clone(),
            tests: report.tests.clone(),
            proofs: report.proofs.clone(),
            page: report.page.clone(),
        }
    }
}

impl Item {
    /// The item of a diagnostic.
    pub(crate) fn from_diagnostic(it: &Diagnostic) -> Self {
        let related =
            it.related.iter().map(|(place, message)| RelatedPlace { spot: Spot::new(place), message: message.clone() });
        Self {
            code: it.code.to_string(),
            severity: it.severity,
            message: it.message.clone(),
            help: it.help.clone(),
            spot: it.place.as_ref().map(Spot::new).unwrap_or_default(),
            related: related.collect(),
            invariant: it.invariant.as_deref().cloned(),
        }
    }

    /// Converts the item back into a diagnostic, with places in `files`.
    pub(crate) fn diagnostic(&self, files: &HashMap<&str, Arc<SourceFile>>) -> Diagnostic {
        let known = Code::from_name(&self.code).map(Name::Code);
        let known = known.or_else(|| lint::find(&self.code).map(|lint| Name::Lint(lint.name)));
        let related = self.related.iter().filter_map(|it| Some((it.spot.place(files)?, it.message.clone())));
        Diagnostic {
            // A newer version may have sent a code unknown to this one.
            code: known.unwrap_or(Name::Code(Code::Internal)),
            severity: self.severity,
            cause: None,
            is_surrounding: false,
            message: if known.is_some() { self.message.clone() } else { format!("{}: {}", self.code, self.message) },
            help: self.help.clone(),
            place: self.spot.place(files),
            related: related.collect(),
            invariant: self.invariant.clone().map(Box::new),
            // Only the message states it.
            omitted: 0,
        }
    }
}

impl Spot {
    fn new(place: &Place) -> Self {
        let ((line, column), (end_line, end_column)) = (place.line_column(), place.end_line_column());
        Self {
            file: Some(place.file.name.clone()),
            line: Some(line),
            column: Some(column),
            end_line: Some(end_line),
            end_column: Some(end_column),
        }
    }

    /// The place as `file:line:column`, if there is one.
    pub(crate) fn position(&self) -> Option<String> {
        let (file, line, column) = (self.file.as_ref()?, self.line?, self.column?);
        Some(format!("{file}:{line}:{column}"))
    }

    fn place(&self, files: &HashMap<&str, Arc<SourceFile>>) -> Option<Place> {
        let file = files.get(self.file.as_deref()?)?;
        Some(Place::at(Arc::clone(file), (self.line?, self.column?), (self.end_line?, self.end_column?)))
    }
}

//! JSON for programs: documented and versioned (docs/formats.md). A report can be read back from it.

use std::{collections::HashMap, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    lint,
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name, Place, Severity, SourceFile},
        json::{self, JsonError},
        secret::Secrets,
    },
    plan::{outline::Outline, report::Report},
};

/// The name and version of the format. Fields are added under the same version; anything else is a new one.
pub const VERSION: &str = "edgewright/report/v1";

/// A report as a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    /// `edgewright/report/v1`.
    pub format: String,
    /// The command that was run.
    pub command: String,
    /// How much there is of everything.
    pub summary: Counts,
    /// Faults and findings.
    pub diagnostics: Vec<Item>,
    /// Why the plan must not run.
    pub refusals: Vec<Item>,
    /// What would run, or ran; null when no plan could be made.
    pub plan: Option<Outline>,
    /// The revision as which the plan was applied, or null.
    pub applied: Option<u64>,
}

/// How much there is of everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Counts {
    pub create: usize,
    pub change: usize,
    pub replace: usize,
    pub adopt: usize,
    pub delete: usize,
    pub unchanged: usize,
    pub errors: usize,
    pub warnings: usize,
    pub files: usize,
}

/// A diagnostic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Item {
    /// A registered code, or the name of a lint.
    pub code: String,
    /// How serious it is.
    pub severity: Severity,
    /// One sentence.
    pub message: String,
    /// The cure, or null.
    pub help: Option<String>,
    /// The place.
    #[serde(flatten)]
    pub spot: Spot,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
}

/// Another place that has to do with a diagnostic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Related {
    /// The place.
    #[serde(flatten)]
    pub spot: Spot,
    /// What it has to do with it.
    pub message: String,
}

/// A place in a file; all null for what is not about one. Lines and columns count from 1, columns in characters; the end
/// is behind the last character.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Spot {
    pub file: Option<String>,
    pub line: Option<usize>,
    pub column: Option<usize>,
    pub end_line: Option<usize>,
    pub end_column: Option<usize>,
}

/// The report as one JSON object.
pub fn render(report: &Report) -> Result<String, JsonError> {
    json::text(&Document::of(report), Secrets::Masked)
}

impl Document {
    /// The document of a report.
    pub fn of(report: &Report) -> Self {
        let summary = report.plan.as_ref().map(Outline::summary).unwrap_or_default();
        let items = |diagnostics: &[Diagnostic]| diagnostics.iter().map(Item::of).collect();
        Self {
            format: VERSION.to_owned(),
            command: report.command.to_owned(),
            summary: Counts {
                create: summary.create,
                change: summary.change,
                replace: summary.replace,
                adopt: summary.adopt,
                delete: summary.delete,
                unchanged: summary.unchanged,
                errors: report.count(Severity::Error),
                warnings: report.count(Severity::Warning),
                files: report.files,
            },
            diagnostics: items(&report.diagnostics),
            refusals: items(&report.refusals),
            plan: report.plan.clone(),
            applied: report.applied,
        }
    }
}

impl Item {
    fn of(it: &Diagnostic) -> Self {
        let related =
            it.related.iter().map(|(place, message)| Related { spot: Spot::of(place), message: message.clone() });
        Self {
            code: it.code.to_string(),
            severity: it.severity,
            message: it.message.clone(),
            help: it.help.clone(),
            spot: it.place.as_ref().map(Spot::of).unwrap_or_default(),
            related: related.collect(),
        }
    }

    /// The diagnostic, with its places in the files that are known by name.
    pub fn diagnostic(&self, files: &HashMap<&str, Arc<SourceFile>>) -> Diagnostic {
        let known = Code::from_name(&self.code).map(Name::Code);
        let known = known.or_else(|| lint::find(&self.code).map(|lint| Name::Lint(lint.name)));
        let related = self.related.iter().filter_map(|it| Some((it.spot.place(files)?, it.message.clone())));
        Diagnostic {
            // Another version may know more codes than this one.
            code: known.unwrap_or(Name::Code(Code::Internal)),
            severity: self.severity,
            message: if known.is_some() { self.message.clone() } else { format!("{}: {}", self.code, self.message) },
            help: self.help.clone(),
            place: self.spot.place(files),
            related: related.collect(),
        }
    }
}

impl Spot {
    fn of(place: &Place) -> Self {
        let ((line, column), (end_line, end_column)) = (place.line_column(), place.end_line_column());
        Self {
            file: Some(place.file.name.clone()),
            line: Some(line),
            column: Some(column),
            end_line: Some(end_line),
            end_column: Some(end_column),
        }
    }

    fn place(&self, files: &HashMap<&str, Arc<SourceFile>>) -> Option<Place> {
        let file = files.get(self.file.as_deref()?)?;
        Some(Place::at(Arc::clone(file), (self.line?, self.column?), (self.end_line?, self.end_column?)))
    }
}

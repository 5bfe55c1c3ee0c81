//! JSON for programs: documented and versioned (docs/formats.md).

use serde_json::{Value, json};

use super::{calls, level, refusals};
use crate::{
    model::diagnostic::{Diagnostic, Place, Severity},
    plan::{Change, Effect, Plan, report::Report},
};

/// The name and version of the format. Fields are added under the same version; anything else is a new one.
pub const VERSION: &str = "edgewright/report/v1";

/// The report as one JSON object.
pub fn render(report: &Report<'_>) -> String {
    let summary = report.plan.map(Plan::summary).unwrap_or_default();
    let list = |diagnostics: &[Diagnostic]| diagnostics.iter().map(diagnostic).collect::<Vec<_>>();
    let value = json!({
        "format": VERSION,
        "command": report.command,
        "summary": {
            "create": summary.create,
            "change": summary.change,
            "replace": summary.replace,
            "adopt": summary.adopt,
            "delete": summary.delete,
            "unchanged": summary.unchanged,
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "files": report.files,
        },
        "diagnostics": list(report.diagnostics),
        "refusals": list(refusals(report)),
        "plan": report.plan.map(|plan| json!({
            "base": plan.base,
            "changes": plan.changes.iter().map(change).collect::<Vec<_>>(),
        })),
        "applied": report.applied,
    });
    format!("{value:#}\n")
}

fn diagnostic(it: &Diagnostic) -> Value {
    let place = it.place.as_ref();
    let (line, column) = place.map(Place::line_column).unzip();
    let (end_line, end_column) = place.map(Place::end_line_column).unzip();
    let related = it.related.iter().map(|(place, message)| {
        let (line, column) = place.line_column();
        json!({"file": place.file.name, "line": line, "column": column, "message": message})
    });
    json!({
        "code": it.code.to_string(),
        "severity": level(it.severity),
        "message": it.message,
        "help": it.help,
        "file": place.map(|place| place.file.name.as_str()),
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "related": related.collect::<Vec<_>>(),
    })
}

fn change(change: &Change) -> Value {
    let calls = calls(&change.operations)
        .map(|(operation, method, path)| json!({"method": method, "path": path, "body": operation.body()}));
    json!({
        "effect": effect(change.effect),
        "kind": change.key.kind.to_string(),
        "name": change.name,
        "id": change.key.id.as_str(),
        "calls": calls.collect::<Vec<_>>(),
    })
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Create => "create",
        Effect::Replace => "replace",
        Effect::Change => "change",
        Effect::Adopt => "adopt",
        Effect::Rename => "rename",
        Effect::Protect => "protect",
        Effect::Delete => "delete",
        Effect::Replaced => "replaced",
    }
}

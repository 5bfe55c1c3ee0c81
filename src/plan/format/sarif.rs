//! SARIF 2.1.0, for code scanning. Diagnostics and refusals are results; the changes of a plan are not.

use std::collections::{BTreeMap, HashMap};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::diagnostics::{limited, path_of, plain_path};
use crate::lint::{self, Level};
use crate::model::{Diagnostic, Name, Place, Severity};
use crate::plan::report::Report;
use crate::syntax::text::{escaped, escaped_lines};

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The most results of a run that GitHub accepts.
const MOST_RESULTS: usize = 25_000;
/// The most related locations of a result that GitHub accepts.
const MOST_RELATED: usize = 1_000;
/// The place of a diagnostic without one, if no file was read either: GitHub rejects results without a location.
const NO_FILE: &str = "edgewright.config.yaml";

/// The report as a SARIF log of one run.
pub(crate) fn render(report: &Report) -> String {
    let (shown, omitted) = limited(report, MOST_RESULTS);
    // Each used code with its worst severity: errors sort before warnings.
    let mut used: BTreeMap<Name, Severity> = BTreeMap::new();
    for it in &shown {
        let severity = used.entry(it.code).or_insert(it.severity);
        *severity = (*severity).min(it.severity);
    }
    let mut seen = HashMap::new();
    let elsewhere = json!({
        "artifactLocation": {"uri": uri(plain_path(report.first_file.as_deref().unwrap_or(NO_FILE)))},
        "region": {"startLine": 1},
    });
    let results = shown.into_iter().map(|it| {
        let place = it.place.as_ref().map_or_else(|| elsewhere.clone(), location);
        result(it, place, used.range(..it.code).count(), &mut seen)
    });
    let results: Vec<Value> = results.collect();
    let mut value = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "edgewright",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": used.into_iter().map(|(code, severity)| rule(code, severity)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    if let (true, Some(run)) = (omitted > 0, value.pointer_mut("/runs/0").and_then(Value::as_object_mut)) {
        let text = format!("{omitted} more results are not included: use --format json to list more");
        let notification = json!({"level": "warning", "message": {"text": text}});
        let invocation = json!({"executionSuccessful": true, "toolExecutionNotifications": [notification]});
        run.insert("invocations".to_owned(), json!([invocation]));
    }
    format!("{value:#}\n")
}

fn rule(name: Name, severity: Severity) -> Value {
    let (short, full, help, level) = match name {
        Name::Code(code) => {
            let info = code.info();
            let first = info.cause.split_once(". ").map_or(info.cause.to_owned(), |(first, _)| format!("{first}."));
            (first, info.cause, info.cure, severity.as_str())
        }
        Name::Lint(name) => match lint::find(name) {
            Some(lint) => (lint.summary.to_owned(), lint.why, lint.cure, lint_level(lint.default)),
            None => (name.to_owned(), name, name, severity.as_str()),
        },
    };
    json!({
        "id": name.to_string(),
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": help},
        "defaultConfiguration": {"level": level},
    })
}

fn lint_level(level: Level) -> &'static str {
    match level {
        Level::Allow => "none",
        Level::Warn => "warning",
        Level::Deny => "error",
    }
}

/// The result of a diagnostic, whose rule has an `index`. `seen` counts results with the same code, file and message, so that
/// each gets its own fingerprint.
fn result(it: &Diagnostic, place: Value, index: usize, seen: &mut HashMap<blake3::Hash, usize>) -> Value {
    let code = it.code.to_string();
    let text = match &it.help {
        Some(help) => format!("{}\nhelp: {}", escaped(&it.message), escaped_lines(help)),
        None => escaped(&it.message).into_owned(),
    };
    let related = it.related.iter().take(MOST_RELATED).enumerate().map(
        |(at, (place, label))| {
            json!({"id": at + 1, "physicalLocation": location(place), "message": {"text": escaped(label)}})
        },
    );
    let mut value = json!({
        "ruleId": code,
        "level": it.severity.as_str(),
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"edgewrightFault/v1": fingerprint(it, &code, seen)},
        "ruleIndex": index,
    });
    if let (Value::Object(map), false) = (&mut value, it.related.is_empty()) {
        map.insert("relatedLocations".to_owned(), related.collect());
    }
    if let (Value::Object(map), Some(invariant)) = (&mut value, &it.invariant) {
        map.insert("properties".to_owned(), json!({"invariant": invariant}));
    }
    value
}

fn location(place: &Place) -> Value {
    let (line, column) = place.line_column();
    let (end_line, end_column) = place.end_line_column();
    json!({
        "artifactLocation": {"uri": uri(path_of(place))},
        "region": {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column},
    })
}

/// A path as a relative reference, or as a `file:` URL if it is absolute.
fn uri(path: &str) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    format!("{scheme}{}", utf8_percent_encode(path, KEPT))
}

/// A fingerprint that stays the same when lines above the fault change.
fn fingerprint(it: &Diagnostic, code: &str, seen: &mut HashMap<blake3::Hash, usize>) -> String {
    let file = it.place.as_ref().map(path_of).unwrap_or_default();
    let hash = blake3::hash(format!("{code}\0{file}\0{}", it.message).as_bytes());
    let count = seen.entry(hash).or_default();
    *count += 1;
    format!("{:.32}:{count}", hash.to_hex())
}

//! GitHub workflow commands, shown as annotations on the lines of a pull request.

use std::fmt::Write;

use super::diagnostics::{limited, path_of, position};
use super::verdict::{store_note, summary, verdict};
use crate::model::Diagnostic;
use crate::plan::behaviour;
use crate::plan::report::Report;
use crate::syntax::text::{escaped, escaped_lines};

/// The most annotations. GitHub shows ten errors and ten warnings of a step; the others are for readers of the log.
const MOST: usize = 1_000;

/// A workflow command for each diagnostic, and a notice with the summary.
pub(crate) fn render(report: &Report) -> String {
    let mut out = String::new();
    let (shown, omitted) = limited(report, MOST);
    for diagnostic in shown {
        let _ = writeln!(out, "{}", annotation(diagnostic));
    }
    if omitted > 0 {
        let _ = writeln!(out, "… and {omitted} more: use --format json to list more");
    }
    let title = property(&format!("edgewright {}", report.command));
    if let Some(note) = store_note(report) {
        let _ = writeln!(out, "::notice title={title}::{}", data(&note));
    }
    if let Some((plan, diff)) = report.behaviour() {
        let _ = writeln!(
            out,
            "::notice title={title}::{}",
            data(&behaviour::summary(diff, plan.is_empty(), &plan.uncompared()))
        );
    }
    let _ = writeln!(out, "::notice title={title}::{}", data(&format!("{}: {}", verdict(report), summary(report))));
    out
}

fn annotation(it: &Diagnostic) -> String {
    let mut properties = Vec::new();
    if let Some(place) = &it.place {
        let (line, column) = place.line_column();
        let (end_line, end_column) = place.end_line_column();
        properties.push(format!("file={}", property(&escaped(path_of(place)))));
        properties.push(format!("line={line}"));
        // GitHub accepts columns only for a single line, and its end column is inclusive.
        if line == end_line {
            properties.push(format!("col={column}"));
            properties.push(format!("endLine={end_line}"));
            properties.push(format!("endColumn={}", column.max(end_column.saturating_sub(1))));
        } else {
            properties.push(format!("endLine={end_line}"));
        }
    }
    properties.push(format!("title={}", property(&it.code.to_string())));
    let mut text = escaped(&it.message).into_owned();
    if let Some(help) = &it.help {
        text += &format!("\n{}", escaped_lines(help));
    }
    for (place, label) in &it.related {
        text += &format!("\n{}: {}", escaped(&position(place)), escaped(label));
    }
    format!("::{} {}::{}", it.severity.as_str(), properties.join(","), data(&text))
}

/// Escapes the text after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property value.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

//! JUnit XML for test reports: one case per file with findings, one for all other files, and one for the plan.

use std::{collections::BTreeMap, fmt::Write};

use super::{level, plural, position, summary};
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name, Severity},
    },
    plan::report::Report,
    text::escaped,
};

/// A test case. It has at most one failure, because not every reader of the format accepts more.
struct Case<'a> {
    /// The kind of check.
    class: &'static str,
    name: String,
    failures: Vec<&'a Diagnostic>,
    /// The text shown besides the failure.
    output: String,
}

/// Renders the report as one suite.
pub(crate) fn render(report: &Report) -> String {
    let cases = cases(report);
    let failed = cases.iter().filter(|case| !case.failures.is_empty()).count();
    let counts = format!(
        "name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"0\"",
        attribute(&format!("edgewright.{}", report.command)),
        cases.len(),
    );
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let _ = writeln!(out, "  <testsuite {counts}>");
    for case in &cases {
        let _ = write_case(&mut out, case);
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn cases(report: &Report) -> Vec<Case<'_>> {
    let mut files: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for it in &report.diagnostics {
        match &it.place {
            Some(place) => files.entry(&place.file.name).or_default().push(it),
            None => elsewhere.push(it),
        }
    }
    // Files with these errors do not count as read.
    let unread = |it: &&Diagnostic| [Name::Code(Code::EmptyFile), Name::Code(Code::NotUtf8)].contains(&it.code);
    let read = files.values().filter(|found| !found.iter().any(unread)).count();
    let others = report.files.saturating_sub(read);
    let mut cases: Vec<Case<'_>> = files.into_iter().map(|(name, found)| case(name.to_owned(), found)).collect();
    if !elsewhere.is_empty() {
        cases.push(case("source".to_owned(), elsewhere));
    }
    if others > 0 {
        cases.push(case(format!("{} without findings", plural(others, "file")), Vec::new()));
    }
    if report.plan.is_some() {
        let failures = report.refusals.iter().collect();
        cases.push(Case { class: "plan", name: "plan".to_owned(), failures, output: summary(report) });
    }
    cases
}

fn case(name: String, found: Vec<&Diagnostic>) -> Case<'_> {
    let (failures, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| it.severity == Severity::Error);
    Case { class: "manifest", name, failures, output: lines(&warnings) }
}

fn write_case(out: &mut String, case: &Case<'_>) -> std::fmt::Result {
    write!(out, "    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", case.class, attribute(&escaped(&case.name)))?;
    if case.failures.is_empty() && case.output.is_empty() {
        return writeln!(out, "/>");
    }
    writeln!(out, ">")?;
    if let Some(first) = case.failures.first() {
        let message = match case.failures.len() {
            1 => escaped(&first.message).into_owned(),
            count => plural(count, "error"),
        };
        let (message, code) = (attribute(&message), attribute(&first.code.to_string()));
        let text = text(&lines(&case.failures));
        writeln!(out, "      <failure type=\"{code}\" message=\"{message}\">{text}</failure>")?;
    }
    if !case.output.is_empty() {
        writeln!(out, "      <system-out>{}</system-out>", text(&case.output))?;
    }
    writeln!(out, "    </testcase>")
}

/// Diagnostics in the style of compilers, each help on its own line.
fn lines(diagnostics: &[&Diagnostic]) -> String {
    let lines = diagnostics.iter().map(|it| {
        let place = it.place.as_ref().map(|place| format!("{}: ", position(place))).unwrap_or_default();
        let mut line = format!("{}{} {}: {}", escaped(&place), level(it.severity), it.code, escaped(&it.message));
        for (place, label) in &it.related {
            line += &format!("\n  {}: {}", escaped(&position(place)), escaped(label));
        }
        if let Some(help) = &it.help {
            line += &format!("\n  help: {}", escaped(help));
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes text between tags and drops characters that XML cannot represent.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Escapes an attribute value, where a line break would become a space.
fn attribute(value: &str) -> String {
    text(value).replace('\n', "&#10;").replace('\t', "&#9;")
}

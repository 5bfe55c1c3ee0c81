//! JUnit XML for test reports: one case per file with findings, one for all other files, and one for the plan.

use std::{collections::BTreeMap, time::Duration};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::diagnostics::position;
use super::verdict::{store_note, summary};
use crate::model::{Code, Diagnostic, JsonError, Name, Severity};
use crate::plan::report::Report;
use crate::syntax::text::{escaped, number_of};

/// The most diagnostics in the text of a case.
const MOST_LINES: usize = 1000;

/// Renders the report as one suite.
pub(crate) fn render(report: &Report) -> Result<String, JsonError> {
    let mut suite = TestSuite::new(format!("edgewright.{}", report.command));
    suite.add_test_cases(cases(report)).set_time(Duration::ZERO);
    let mut suites = quick_junit::Report::new("edgewright");
    suites.add_test_suite(suite);
    suites.to_string().map_err(JsonError::new)
}

fn cases(report: &Report) -> Vec<TestCase> {
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
    let mut cases: Vec<TestCase> = files.into_iter().map(|(name, found)| manifests(name, found)).collect();
    if !elsewhere.is_empty() {
        cases.push(manifests("source", elsewhere));
    }
    if others > 0 {
        cases.push(manifests(&format!("{} without findings", number_of(others, "file")), Vec::new()));
    }
    if report.plan.is_some() {
        let failures: Vec<&Diagnostic> = report.refusals.iter().collect();
        let note = store_note(report).map(|note| legal(&note));
        let output = [summary(report)].into_iter().chain(note).collect::<Vec<_>>().join("\n");
        cases.push(case("plan", "plan", &failures, &output));
    }
    cases
}

fn manifests(name: &str, found: Vec<&Diagnostic>) -> TestCase {
    let (failures, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| it.severity == Severity::Error);
    case("manifest", name, &failures, &lines(&warnings))
}

/// A test case. It has at most one failure, because not every reader of the format accepts more. `output` is shown with it.
fn case(class: &str, name: &str, failures: &[&Diagnostic], output: &str) -> TestCase {
    let status = match failures {
        [] => TestCaseStatus::success(),
        [first, ..] => {
            let mut failure = TestCaseStatus::non_success(NonSuccessKind::Failure);
            failure.set_type(first.code.to_string()).set_description(lines(failures));
            match failures.len() {
                1 => failure.set_message(legal(&first.message)),
                count => failure.set_message(number_of(count, "error")),
            };
            failure
        }
    };
    let mut test = TestCase::new(legal(name), status);
    // Some readers of the format require a time.
    test.set_classname(class).set_time(Duration::ZERO);
    if !output.is_empty() {
        test.set_system_out(output);
    }
    test
}

/// Diagnostics in the style of compilers, each help on its own line.
fn lines(diagnostics: &[&Diagnostic]) -> String {
    let lines = diagnostics.iter().take(MOST_LINES).map(|it| {
        let place = it.place.as_ref().map(|place| format!("{}: ", position(place))).unwrap_or_default();
        let mut line = format!("{}{} {}: {}", legal(&place), it.severity.as_str(), it.code, legal(&it.message));
        for (place, label) in &it.related {
            line += &format!("\n  {}: {}", legal(&position(place)), legal(label));
        }
        if let Some(help) = &it.help {
            line += &format!("\n  help: {}", legal(help));
        }
        line
    });
    let omitted = diagnostics.len().saturating_sub(MOST_LINES);
    let more = (omitted > 0).then(|| format!("… and {omitted} more"));
    lines.chain(more).collect::<Vec<_>>().join("\n")
}

/// Escapes text, and drops the two characters that XML cannot represent and the writer lets through.
fn legal(text: &str) -> String {
    escaped(text).replace(['\u{fffe}', '\u{ffff}'], "")
}

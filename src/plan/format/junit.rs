//! JUnit XML for test reports: one case per file with findings, one for all other files, one per invariant if these were to be
//! proven, one for the plan, and one for each request that was tested.

use std::collections::BTreeMap;
use std::iter;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::diagnostics::position;
use super::verdict::{store_note, summary, unseen_lines};
use crate::model::{Cause, Code, Diagnostic, JsonError};
use crate::plan::behaviour;
use crate::plan::proof_report::InvariantProof;
use crate::plan::report::Report;
use crate::plan::test_report::{TestOutcome, TestResult};
use crate::routing::invariant::ProofAnswer;
use crate::syntax::text::{escaped, number_of};

/// The most diagnostics in the text of a case.
const MOST_LINES: usize = 1000;

/// Some readers of the format require a time.
const TIME: (&str, &str) = ("time", "0.000");

/// A test case. It has at most one failure, because not every reader of the format accepts more.
struct TestCase {
    class: &'static str,
    name: String,
    failure: Option<TestFailure>,
    /// Shown with the case.
    output: String,
}

/// Why a test case has failed.
struct TestFailure {
    message: String,
    code: String,
    text: String,
}

/// Renders the report as one suite.
pub(crate) fn render(report: &Report) -> Result<String, JsonError> {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 4);
    write(&mut writer, &format!("edgewright.{}", report.command), &cases(report)).map_err(JsonError::new)?;
    String::from_utf8(writer.into_inner()).map(|text| text + "\n").map_err(JsonError::new)
}

fn write(writer: &mut Writer<Vec<u8>>, name: &str, cases: &[TestCase]) -> std::io::Result<()> {
    let tests = cases.len().to_string();
    let failures = cases.iter().filter(|case| case.failure.is_some()).count().to_string();
    let numbers = [("tests", tests.as_str()), ("skipped", "0"), ("failures", failures.as_str()), ("errors", "0")];
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = writer.create_element("testsuites").with_attribute(("name", "edgewright")).with_attributes(numbers);
    suites.write_inner_content(|writer| {
        let suite = writer.create_element("testsuite").with_attribute(("name", name)).with_attributes(numbers);
        suite
            .with_attribute(TIME)
            .write_inner_content(|writer| cases.iter().try_for_each(|case| case.write(writer)))?;
        Ok(())
    })?;
    Ok(())
}

impl TestCase {
    fn write(&self, writer: &mut Writer<Vec<u8>>) -> std::io::Result<()> {
        let attributes = [("name", self.name.as_str()), ("classname", self.class), TIME];
        let element = writer.create_element("testcase").with_attributes(attributes);
        if self.failure.is_none() && self.output.is_empty() {
            element.write_empty()?;
            return Ok(());
        }
        element.write_inner_content(|writer| {
            if let Some(TestFailure { message, code, text }) = &self.failure {
                let attributes = [("message", message.as_str()), ("type", code.as_str())];
                let failure = writer.create_element("failure").with_attributes(attributes);
                failure.write_text_content(BytesText::new(text))?;
            }
            if !self.output.is_empty() {
                writer.create_element("system-out").write_text_content(BytesText::new(&self.output))?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

fn cases(report: &Report) -> Vec<TestCase> {
    let mut files: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    // A request that was tested has a case of its own, and so has an invariant.
    let is_of_test = |it: &Diagnostic| report.tests.is_some() && it.is_one_of(&[Code::RouteTestFailed]);
    for it in report.diagnostics.iter().filter(|it| !is_of_test(it) && !report.has_in_answers(it)) {
        match &it.place {
            Some(place) => files.entry(&place.file.name).or_default().push(it),
            None => elsewhere.push(it),
        }
    }
    // Such a file does not count as read.
    let has_no_content = |it: &&Diagnostic| it.cause == Some(Cause::NoContent);
    let read = files.values().filter(|found| !found.iter().any(has_no_content)).count();
    let others = report.files.saturating_sub(read);
    let mut cases: Vec<TestCase> = files.into_iter().map(|(name, found)| manifests(name, found)).collect();
    if !elsewhere.is_empty() {
        cases.push(manifests("source", elsewhere));
    }
    if others > 0 {
        cases.push(manifests(&format!("{} without findings", number_of(others, "file")), Vec::new()));
    }
    cases.extend(report.proofs.iter().flat_map(|proofs| &proofs.invariants).map(invariant));
    if let Some(plan) = &report.plan {
        let failures: Vec<&Diagnostic> = report.refusals.iter().collect();
        let note = store_note(report).map(|note| legal(&note));
        let diff = plan.behaviour.iter().flat_map(|diff| {
            let lines = behaviour::lines(diff).into_iter().map(|(_, line)| line);
            iter::once(behaviour::summary(diff, plan.is_empty(), &plan.uncompared()))
                .chain(lines)
                .map(|line| legal(&line))
        });
        let output = iter::once(summary(report)).chain(note).chain(diff).collect::<Vec<_>>().join("\n");
        cases.push(case("plan", "plan", &failures, output));
    }
    cases.extend(report.tests.iter().flat_map(|tests| &tests.results).map(tested_request));
    cases
}

/// The case of a request that was tested.
fn tested_request(it: &TestResult) -> TestCase {
    let lines = |lines: &[String]| legal_lines(lines.iter().map(String::as_str).chain([it.trace.as_str()]));
    let skipped = || unseen_lines(&it.unseen).map(|line| legal(&line)).collect::<Vec<_>>().join("\n");
    let failure = (it.result == TestOutcome::Failed).then(|| TestFailure {
        message: it.problems.first().map(|problem| legal(problem)).unwrap_or_default(),
        code: Code::RouteTestFailed.to_string(),
        text: format!("{}:{}\n{}", legal(&it.file), it.line, lines(&it.problems)),
    });
    let output = match it.result {
        TestOutcome::Warned => lines(&it.problems),
        TestOutcome::Skipped => skipped(),
        TestOutcome::Passed | TestOutcome::Failed => String::new(),
    };
    TestCase { class: "route", name: legal(&format!("{}: {}", it.test, it.request)), failure, output }
}

fn legal_lines<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    lines.map(legal).collect::<Vec<_>>().join("\n")
}

fn manifests(name: &str, found: Vec<&Diagnostic>) -> TestCase {
    let (failures, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| it.is_error());
    case("manifest", name, &failures, lines(&warnings))
}

/// The case of an invariant.
fn invariant(proof: &InvariantProof) -> TestCase {
    let requests = proof.requests.iter().map(|it| {
        let cure = it.place.iter().zip(&it.help).map(|(place, help)| format!("\n  {}: {}", legal(place), legal(help)));
        format!("{}\n  way: {}{}", legal(&it.line()), legal(&it.way), cure.collect::<String>())
    });
    let unused = (proof.answer == ProofAnswer::Unused).then(|| legal(&proof.coverage()));
    let unseen = unseen_lines(&proof.unseen).map(|line| legal(&line));
    let text = unseen.chain(requests).chain(unused).collect::<Vec<_>>().join("\n");
    let (class, name) = ("invariant", legal(&proof.full_name()));
    if !proof.refuses {
        return TestCase { class, name, failure: None, output: text };
    }
    let code = if proof.answer == ProofAnswer::Refuted { Code::InvariantBroken } else { Code::InvariantUnproven };
    let failure = TestFailure { message: legal(&proof.description), code: code.to_string(), text };
    TestCase { class, name, failure: Some(failure), output: String::new() }
}

/// The case of what may have failed.
fn case(class: &'static str, name: &str, failures: &[&Diagnostic], output: String) -> TestCase {
    let failure = failures.first().map(|first| TestFailure {
        message: match failures.len() {
            1 => legal(&first.message),
            count => number_of(count, "error"),
        },
        code: first.code.to_string(),
        text: lines(failures),
    });
    TestCase { class, name: legal(name), failure, output }
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
            let help: Vec<String> = help.split('\n').map(legal).collect();
            line += &format!("\n  help: {}", help.join("\n  "));
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

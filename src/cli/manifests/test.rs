//! `edgewright test`: what becomes of requests, compared with what the route tests in manifests expect.
//!
//! The tests themselves run where manifests are validated: here, or on a server among everything that it has. This file
//! adds what no other command has: the coverage, with a limit below which the command fails, and the same requests to a
//! running gateway (`live`). A difference that can be seen from outside, such as another status, counts like a failed
//! test.
//!
//! For example, `edgewright test --live https://staging.example.com --fail-under 80 manifests/` fails if the gateway
//! denies a request that a test expects to reach the backend, or if the tests touch fewer than four fifths of the
//! routes or modules.

mod live;

use super::review::ReviewArgs;
use super::source_args::{Manifests, ReportedSource};
use super::validate::judged;
use crate::cli::command_prelude::*;
use crate::manifest::{Loaded, load};
use crate::plan::format::verdict::{tested, unseen_lines};
use crate::plan::test_report::{CoveredItems, TestOutcome, TestReport, TestResult};
use crate::server::operations::reconciliation::wire::ReconciliationRequest;
use live::LiveGateway;

/// Run the route tests in manifests.
///
/// A `RouteTest` states how requests must be handled. Shows each request with its result and, if the result is not the
/// expected one, the edge, the route and the modules that handle it. `validate`, `plan` and `reconcile` run the same tests.
/// With --server, the tests run against all resources of the server, as if it had applied the manifests.
#[derive(Debug, clap::Args)]
// `test` shows no plan.
#[command(mut_arg("full", |argument| argument.hide(true)), mut_args(ServerArgs::by_flag_only))]
pub(crate) struct Args {
    /// Show the routes and modules that no test covers.
    #[arg(long, env = "EDGEWRIGHT_COVERAGE")]
    coverage: bool,
    /// Fail if the tests cover a smaller share of the routes or of the modules.
    #[arg(long, value_name = "PERCENT", env = "EDGEWRIGHT_FAIL_UNDER", value_parser = percent)]
    fail_under: Option<f64>,
    /// Also send the requests to the gateway at this URL, and compare what is visible from outside.
    ///
    /// Connects to the address in the URL with the host of each request. Sends only GET, HEAD and OPTIONS.
    #[arg(long, value_name = "URL")]
    live: Option<String>,
    #[command(flatten)]
    reported: ReportedSource,
    #[command(flatten)]
    review: ReviewArgs,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    manifests: Manifests,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').parse::<f64>().ok();
    number.filter(|number| (0.0..=100.0).contains(number)).ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

impl Args {
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let tree = self.review.tree(&self.manifests.paths, &self.manifests.loading);
        // The requests for a gateway come from the files.
        let gateway = self.live.as_deref().map(LiveGateway::new).transpose()?;
        let options = self.reported.options(Arc::clone(&tree), lints);
        let asked = ReconciliationRequest { tests: true, ..ReconciliationRequest::default() };
        let mut report = judged(&self.server, options, ("test", "Testing"), asked)?;
        if let Some(gateway) = gateway {
            during("Asking the gateway", || compare(&gateway, &load(tree.as_ref()), &mut report));
        }
        self.check_coverage(&mut report);
        self.conclude(&report)
    }

    /// Reports a coverage below the limit. Tests that were not run touch nothing, and have an error that says why.
    fn check_coverage(&self, report: &mut Report) {
        let (Some(limit), Some(tests)) = (self.fail_under, &report.tests) else { return };
        if report.has_errors() && tests.results.is_empty() {
            return;
        }
        for (what, items) in [("routes", &tests.coverage.routes), ("modules", &tests.coverage.modules)] {
            if items.percent() < limit {
                let message = format!("the tests touch {} of the {what}, less than {limit} %", share(items));
                let help = "test more requests; --coverage lists what no test covers";
                report.diagnostics.push(Diagnostic::error(Code::RouteTestFailed, message).help(help));
            }
        }
    }

    fn conclude(&self, report: &Report) -> CommandResult {
        let tests = report.tests.as_ref().filter(|_| self.output.shows_text());
        // The result of a request has its differences.
        let is_result = |it: &&Diagnostic| it.code == Name::Code(Code::RouteTestFailed) && it.place.is_some();
        let others = report.diagnostics.iter().filter(|it| tests.is_none() || !is_result(it));
        diagnostics::diagnostics(&others.cloned().collect::<Vec<_>>());
        diagnostics::count(&report.diagnostics, report.files);
        if let Some(tests) = tests {
            print(self.text(tests))?;
        }
        self.output.conclude(report)?;
        Ok(if report.has_errors() { Exit::Invalid } else { Exit::Done })
    }

    /// The results for a terminal.
    fn text(&self, tests: &TestReport) -> String {
        let mut out: String = tests.results.iter().map(lines).collect();
        out += &format!("{}\n", tested(tests));
        if self.coverage || self.fail_under.is_some() {
            for (what, items) in [("routes", &tests.coverage.routes), ("modules", &tests.coverage.modules)] {
                out += &format!("{what}: {} of {} tested ({})\n", items.tested, items.total, share(items));
                let untested = items.untested.iter().filter(|_| self.coverage);
                untested.for_each(|name| out += &format!("  {}\n", escaped(name)));
            }
        }
        out
    }
}

fn share(items: &CoveredItems) -> String {
    format!("{:.1} %", items.percent())
}

/// A result, with the way of the request if something is otherwise than expected.
fn lines(it: &TestResult) -> String {
    let line = format!("{:8}{}:{}  {}: {}", it.result.as_str(), it.file, it.line, it.test, it.request);
    let mut out = format!("{}\n", escaped(&line));
    let mut add = |text: &str| out += &format!("        {}\n", escaped(text));
    unseen_lines(&it.unseen).for_each(|line| add(&line));
    it.problems.iter().for_each(|problem| add(problem));
    if !it.problems.is_empty() {
        add(&it.trace);
    }
    if let Some(live) = &it.live {
        let status = live.status.map_or("no response".to_owned(), |status| format!("status {status}"));
        let unseen = if live.not_compared.is_empty() { "nothing".to_owned() } else { live.not_compared.join(", ") };
        add(&format!("the gateway: {status}; not compared: {unseen}"));
    }
    out
}

/// Sends the requests of the tests to a gateway, and adds to their results how it answers.
fn compare(gateway: &LiveGateway, loaded: &Loaded, report: &mut Report) {
    let Some(tests) = &mut report.tests else { return };
    for declared in &loaded.tests {
        for (index, request) in declared.test.requests.iter().enumerate() {
            let is_its =
                |it: &&mut TestResult| it.live.is_none() && it.test == declared.name && it.request == request.label();
            let Some(result) = tests.results.iter_mut().find(is_its) else { continue };
            let compared = gateway.compare(request, result.verdict);
            for difference in &compared.differences {
                let message = format!("{}: {difference}", printable(&result.request));
                let fault = Fault::new(Code::RouteTestFailed, message).at(FieldPath::from(("requests", index)));
                let fault = fault.help("check that the gateway has applied the manifests");
                report.diagnostics.push(match declared.test.informing_only {
                    true => declared.origin.warning(fault),
                    false => declared.origin.diagnostic(fault),
                });
            }
            if !compared.differences.is_empty() {
                let is_informing = declared.test.informing_only;
                result.result = if is_informing { TestOutcome::Warned } else { TestOutcome::Failed };
                result.problems.extend(compared.differences.iter().cloned());
            }
            result.live = Some(compared);
        }
    }
}

//! Runs the route tests of a source, and places what is not as expected (D118).

use crate::background::yield_to_requests;
use crate::manifest::{DeclaredTest, Loaded};
use crate::model::route_test::means_module;
use crate::model::traffic::RequestVerdict;
use crate::model::{Desired, FaultTarget, Kind, Path, Segment};
use crate::plan::test_report::{CoveredItems, TestCoverage, TestOutcome, TestReport, TestResult};
use crate::reconcile::prelude::*;
use crate::routing::invariant::Unseen;
use crate::routing::order::in_traffic_order;
use crate::routing::route_test::RouteTester;
use crate::routing::routed_state::RoutedState;
use crate::syntax::text::printable;

/// The results of the route tests of a source.
#[derive(Debug, Default)]
pub(crate) struct TestRun {
    results: Vec<TestedRequestResult>,
    /// The modules that requests have met, by the edge or route that took them.
    touched: BTreeMap<Key, BTreeSet<&'static str>>,
    /// Known without the results if the run is a remembered one.
    pub(crate) counts: TestCounts,
    /// The revision after which a change by others has made the tests of unchanged manifests fail. None if these fail for another
    /// reason, or nobody knows.
    pub(crate) passed_until: Option<u64>,
}

/// The numbers of tested requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestCounts {
    /// All of them.
    pub(crate) requests: usize,
    /// Requests with another outcome than expected, also in tests that are informing only.
    pub(crate) failures: usize,
}

/// The result of a tested request.
#[derive(Debug)]
struct TestedRequestResult {
    declared: Arc<DeclaredTest>,
    /// The index of the request in the test.
    index: usize,
    verdict: Option<RequestVerdict>,
    unseen: Vec<String>,
    problems: Vec<String>,
    trace: String,
}

/// Runs the tests on a state, until the run stops. Also returns what is not as expected. `unseen` is what the state does not show.
pub(super) fn run_tests(
    loaded: &Loaded,
    state: RoutedState<'_>,
    unseen: &[Unseen],
    stops: impl Fn() -> bool,
) -> (TestRun, Vec<Diagnostic>) {
    let (mut run, mut found) = (TestRun::default(), Vec::new());
    if loaded.tests.is_empty() {
        return (run, found);
    }
    let mut tester = RouteTester::new(state, unseen);
    for declared in &loaded.tests {
        for (index, tested) in declared.test.requests.iter().enumerate() {
            yield_to_requests();
            // The patterns of a filter take long to compile.
            if stops() {
                return (run, found);
            }
            // The document was checked.
            let Ok(request) = tested.traced() else { continue };
            let way = tester.run(tested, &request);
            let at = Path::from(("requests", index)).join("expect");
            // Whatever a request lacks that nothing takes follows from that.
            let is_lost = way.verdict == Some(RequestVerdict::Unserved)
                && way.mismatches.first().is_some_and(|it| ["edge", "route"].map(Path::from).contains(&it.path));
            let told = if is_lost { 1 } else { way.mismatches.len() };
            for mismatch in way.mismatches.iter().take(told) {
                let message = format!("{}: {}", printable(&tested.label()), mismatch.message);
                let path = mismatch.path.under(&at);
                let field = match mismatch.path.0.first() {
                    Some(Segment::Key(field)) => field.as_str(),
                    _ => "expect",
                };
                let cure = format!("correct the routes, or `{field}` in the test\nway: {}", way.trace);
                let fault = Fault::new(Code::RouteTestFailed, message).at(path).help(cure);
                found.push(match declared.test.informing_only {
                    true => declared.origin.warning(fault),
                    false => declared.origin.diagnostic(fault),
                });
            }
            for key in way.taken_by {
                run.touched.entry(key.clone()).or_default().extend(&way.modules);
            }
            run.counts.requests += 1;
            run.counts.failures += usize::from(!way.mismatches.is_empty());
            let problems = way.mismatches.into_iter().map(|mismatch| mismatch.message).collect();
            let (declared, verdict, unseen, trace) = (Arc::clone(declared), way.verdict, way.unseen, way.trace);
            run.results.push(TestedRequestResult { declared, index, verdict, unseen, problems, trace });
        }
    }
    (run, found)
}

impl TestRun {
    /// The tests of a remembered run, of which only the numbers are known.
    pub(crate) fn counted(counts: TestCounts) -> Self {
        Self { counts, ..Self::default() }
    }

    /// The results for a report. `desired` has the resources of the source.
    pub(super) fn report(&self, desired: &BTreeMap<Key, Desired>) -> TestReport {
        TestReport {
            results: self.results.iter().map(TestedRequestResult::report).collect(),
            coverage: self.coverage(desired),
        }
    }

    /// The coverage of the source by its tests.
    fn coverage(&self, desired: &BTreeMap<Key, Desired>) -> TestCoverage {
        let mut coverage = TestCoverage::default();
        let of_traffic = |key: &Key| matches!(key.kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute);
        for (key, wanted) in desired.iter().filter(|(key, _)| of_traffic(key)) {
            let touched = self.touched.get(key);
            let name =
                || key.full_name(&wanted.claim.name, |edge| desired.get(edge).map(|edge| edge.claim.name.as_str()));
            if key.kind == Kind::HttpsEdgeRoute {
                count(&mut coverage.routes, touched.is_some(), || Some(name()));
            }
            for module in in_traffic_order(wanted.spec.as_ref()) {
                let slot = module.slot.name;
                let is_met = touched.is_some_and(|met| met.iter().any(|met| means_module(slot, met)));
                let listed = || touched.map(|_| format!("{} {slot}", name()));
                count(&mut coverage.modules, is_met, listed);
            }
        }
        coverage
    }
}

/// Counts one of some things, and lists it if no test touches it.
fn count(items: &mut CoveredItems, is_tested: bool, name: impl FnOnce() -> Option<String>) {
    items.total += 1;
    match is_tested {
        true => items.tested += 1,
        false => items.untested.extend(name()),
    }
}

impl TestedRequestResult {
    fn report(&self) -> TestResult {
        let DeclaredTest { name, test, origin } = self.declared.as_ref();
        let place = origin.place(&Path::from(("requests", self.index)), FaultTarget::Value);
        let result = match (self.verdict, self.problems.is_empty()) {
            (None, _) => TestOutcome::Skipped,
            (Some(_), true) => TestOutcome::Passed,
            (Some(_), false) if test.informing_only => TestOutcome::Warned,
            (Some(_), false) => TestOutcome::Failed,
        };
        TestResult {
            test: name.clone(),
            request: test.requests.get(self.index).map(|request| request.label()).unwrap_or_default(),
            file: place.file.name.clone(),
            line: place.line_column().0,
            result,
            verdict: self.verdict,
            unseen: self.unseen.clone(),
            problems: self.problems.clone(),
            trace: self.trace.clone(),
            live: None,
        }
    }
}

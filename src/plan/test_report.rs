//! The results of route tests in a report: what became of each request, and what no test touches (D118).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::names::names;
use crate::model::traffic::RequestVerdict;

/// The results of route tests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestReport {
    /// The requests, in the order of files and lines.
    pub results: Vec<TestResult>,
    /// The coverage of the source.
    pub coverage: TestCoverage,
}

/// The result of a tested request and its details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResult {
    /// The name of the `RouteTest`.
    pub test: String,
    /// The name of the request, or its method and URL.
    pub request: String,
    /// The file.
    pub file: String,
    /// The line of the request, from 1.
    pub line: usize,
    /// The result.
    pub result: TestOutcome,
    /// The fate of the request; null if it was not judged.
    pub verdict: Option<RequestVerdict>,
    /// What the result depends on that was not seen, as clauses: at most ten. Such a request is not judged.
    #[serde(default)]
    pub unseen: Vec<String>,
    /// The differences from the expectation.
    pub problems: Vec<String>,
    /// The way of the request.
    pub trace: String,
    /// The response of a gateway, if one was asked; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveComparison>,
}

/// The response of a gateway to a tested request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LiveComparison {
    /// The status; null if there was no answer.
    pub status: Option<u16>,
    /// The differences from the expectation.
    pub differences: Vec<String>,
    /// Expectations that cannot be seen from outside, or were not checked.
    pub not_compared: Vec<String>,
}

/// The result of a tested request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// Everything is as expected.
    Passed,
    /// Something is not, so that the source is invalid.
    Failed,
    /// Something is not, and the test is informing only.
    Warned,
    /// Nobody can tell from manifests alone.
    Skipped,
}

names!(TestOutcome: Passed "passed", Failed "failed", Warned "warned", Skipped "skipped");

/// The coverage of a source by its route tests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestCoverage {
    /// The routes of the source.
    pub routes: CoveredItems,
    /// The enabled modules of its edges and routes. Those of untested routes count, and are not listed.
    pub modules: CoveredItems,
}

/// How many things tests touch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoveredItems {
    /// How many there are.
    pub total: usize,
    /// How many of them a test touches.
    pub tested: usize,
    /// The names of the others.
    pub untested: Vec<String>,
}

impl TestReport {
    /// The number of requests with a result.
    pub fn count(&self, result: TestOutcome) -> usize {
        self.results.iter().filter(|it| it.result == result).count()
    }
}

impl CoveredItems {
    /// The share of what is touched, in percent; all of nothing.
    pub fn percent(&self) -> f64 {
        if self.total == 0 { 100.0 } else { 100.0 * self.tested as f64 / self.total as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_nothing_is_covered() {
        let items = |total, tested| CoveredItems { total, tested, untested: Vec::new() };
        assert_eq!([items(0, 0), items(4, 1), items(3, 3)].map(|it| it.percent()), [100.0, 25.0, 100.0]);
    }
}

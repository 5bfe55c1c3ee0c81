//! Runs route tests: what becomes of each request, and where that differs from what the test expects (D118).
//!
//! A verdict is certain or it is `depends` (`treatment.rs`): a test cannot pass on a guess. A test names in `assumed_to_pass`
//! what lets the request pass by something that the manifests do not have, such as a session or a policy. A request is not judged
//! if it depends on what the state does not show ([`Unseen`]).
//!
//! For example, `GET /admin` with a session is `forwarded` on a route with `oidc` if that is assumed to pass.

use super::edge_table::EdgeTable;
use super::enforced_restrictions::OF_ENDPOINTS;
use super::invariant::{RequestTaken, Unseen};
use super::module_pipeline::pipeline;
use super::routed_state::RoutedState;
use super::table::KnownRoute;
use super::treatment::{RequestKnowledge, RequestTreatment};
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::route_test::{ExpectedHeaders, TestExpectation, TestedRequest, means_module};
use crate::model::traffic::{RequestVerdict, Stage, TracedRequest, host_name};
use crate::model::{Claim, FieldPath, Key, MatchType, host_port};
use crate::syntax::text::printable;

/// Why a test with the source of a surrounding resource does not pass: nobody can tell whether it is that source.
const UNNAMED_SOURCE: &str =
    ": surrounding manifests do not tell their source, so write the name alone, or test with --server";

/// Runs tests on a state.
pub(crate) struct RouteTester<'s> {
    edges: EdgeTable<'s>,
    /// The compiled patterns of the filters that requests have met.
    patterns: CompiledPatterns,
    /// What the state does not show.
    unseen: &'s [Unseen],
}

/// The way of a tested request.
#[derive(Debug)]
pub(crate) struct TestedWay<'s> {
    /// The verdict; none if the request is not judged.
    pub(crate) verdict: Option<RequestVerdict>,
    /// What it depends on that the state does not show, as clauses. Such a request is not judged.
    pub(crate) unseen: Vec<String>,
    /// The differences from the expectation.
    pub(crate) mismatches: Vec<TestMismatch>,
    /// The edge and the route that take it.
    pub(crate) taken_by: Vec<&'s Key>,
    /// The modules that it meets.
    pub(crate) modules: Vec<&'static str>,
    /// The way of the request in one line.
    pub(crate) trace: String,
}

/// An expectation that is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TestMismatch {
    /// The field, inside the expectation.
    pub(crate) path: FieldPath,
    /// The actual behavior of the request, as a clause.
    pub(crate) message: String,
}

/// The way of a request.
struct RequestWay<'s> {
    edge: Option<&'s Key>,
    route: Option<KnownRoute<'s>>,
    treatment: RequestTreatment,
}

impl<'s> RouteTester<'s> {
    /// Prepares for the tests of a source.
    pub(crate) fn new(state: RoutedState<'s>, unseen: &'s [Unseen]) -> Self {
        Self { edges: EdgeTable::new(state), patterns: CompiledPatterns::default(), unseen }
    }

    /// Runs the test of a request.
    pub(crate) fn run(&mut self, tested: &TestedRequest, request: &TracedRequest) -> TestedWay<'s> {
        let way = self.way(tested, request);
        let taken_by: Vec<&'s Key> = way.edge.into_iter().chain(way.route.map(|route| route.0)).collect();
        let hostport = self.edges.hostport(&host_name(&request.host), request.port);
        let served_as = hostport.and_then(host_port).map(|(host, _)| host);
        let taken = RequestTaken::new(request, taken_by.clone(), served_as);
        let unseen = Unseen::clauses(self.unseen.iter().filter(|it| it.may_decide(&taken)));
        let is_judged = unseen.is_empty();
        let mismatches = if is_judged { self.mismatches(&tested.expect, &way) } else { Vec::new() };
        TestedWay {
            verdict: is_judged.then(|| way.treatment.outcome.verdict()),
            unseen,
            mismatches,
            taken_by: if is_judged { taken_by } else { Vec::new() },
            // Of the edge and the route only.
            modules: way.treatment.steps.iter().map(|step| step.module).filter(|name| *name != OF_ENDPOINTS).collect(),
            trace: self.describe(request, &way),
        }
    }

    /// The way of a request, which is that of a trace.
    fn way(&mut self, tested: &TestedRequest, request: &TracedRequest) -> RequestWay<'s> {
        let to = self.edges.route(&host_name(&request.host), request.port, &request.path);
        let of_endpoints = self.edges.endpoints().step();
        let steps = self.edges.hosts_of_modules(to);
        let steps = steps.map(|hosts| pipeline(request, hosts, of_endpoints, &mut self.patterns));
        let knowledge = RequestKnowledge::Test { assumed_to_pass: &tested.assumed_to_pass };
        RequestWay {
            edge: self.edges.edge(to).map(|edge| edge.key),
            route: self.edges.edge_and_route(to).map(|(_, route)| route),
            treatment: steps.map_or_else(RequestTreatment::unserved, |steps| RequestTreatment::new(steps, knowledge)),
        }
    }

    fn mismatches(&self, expect: &TestExpectation, way: &RequestWay<'s>) -> Vec<TestMismatch> {
        let mut found = Vec::new();
        let mut report = |path: FieldPath, message: String| found.push(TestMismatch { path, message });
        for (field, expected, key) in
            [("edge", &expect.edge, way.edge), ("route", &expect.route, way.route.map(|route| route.0))]
        {
            let Some(expected) = expected.as_deref().filter(|name| !key.is_some_and(|key| self.is_named(key, name)))
            else {
                continue;
            };
            let taken = key.map_or_else(|| format!("no {field}"), |key| format!("the {field} {}", self.name(key)));
            let unknown = if key.is_some_and(|key| self.may_mean(key, expected)) { UNNAMED_SOURCE } else { "" };
            report(field.into(), format!("{taken} takes it, not `{}`{unknown}", printable(expected)));
        }
        let outcome = &way.treatment.outcome;
        let verdict = outcome.verdict();
        if let Some(expected) = expect.verdict.filter(|expected| *expected != verdict) {
            let unknown = &outcome.depends_on;
            let on = if unknown.is_empty() { String::new() } else { format!(" (on {})", quoted(unknown)) };
            let message = format!("the verdict is `{}`{on}, not `{}`", verdict.as_str(), expected.as_str());
            report("verdict".into(), message);
        }
        if let Some(expected) = &expect.backend {
            let reached = outcome.backend_id.as_deref();
            if reached != Some(expected.as_str()) {
                let reached = reached.map_or("no backend".to_owned(), |id| format!("the backend `{}`", printable(id)));
                report("backend".into(), format!("it reaches {reached}, not `{}`", printable(expected)));
            }
        }
        // A restriction of all endpoints is not the module of an edge or route.
        let means = |name: &str, met: &str| name == met || (met != OF_ENDPOINTS && means_module(name, met));
        let met: Vec<&str> = way.treatment.steps.iter().map(|step| step.module).collect();
        if let Some(expected) = &expect.modules
            && !(expected.len() == met.len() && expected.iter().zip(&met).all(|(name, met)| means(name, met)))
        {
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            let met = if met.is_empty() { "no modules".into() } else { format!("the modules {}", quoted(&met)) };
            let message = format!("it meets {met}, not {}", quoted(&expected));
            report("modules".into(), message);
        }
        for (index, name) in expect.modules_include.iter().enumerate() {
            if !met.iter().any(|met| means(name, met)) {
                let message = format!("it does not meet the module `{}`", printable(name));
                report(("modules_include", index).into(), message);
            }
        }
        for (field, what, expected) in [
            ("request_headers", "request", &expect.request_headers),
            ("response_headers", "response", &expect.response_headers),
        ] {
            for (path, message) in way.unchanged_headers(what, expected) {
                report(path.under(&field.into()), message);
            }
        }
        found
    }

    /// Whether a name in a test means a resource: its ID, its name with the source before it, or its name alone. A name
    /// alone means the resource of the own source, if that has one of this name.
    fn is_named(&self, key: &Key, expected: &str) -> bool {
        if key.id.as_str() == expected {
            return true;
        }
        let Some(claim) = self.edges.state().claim(key) else { return false };
        if claim.name == expected {
            return claim.source == self.edges.state().source || !self.declares(key, expected);
        }
        source_before(expected, &claim.name) == Some(claim.source.as_str())
    }

    /// Whether a name with a source may mean a surrounding resource: its manifests do not tell of which source they are.
    fn may_mean(&self, key: &Key, expected: &str) -> bool {
        let claim = self.edges.state().claim(key).filter(|claim| claim.source == SURROUNDING_OWNER);
        claim.and_then(|claim| source_before(expected, &claim.name)).is_some()
    }

    /// Whether the own source has another resource of a name beside one of another source.
    fn declares(&self, beside: &Key, name: &str) -> bool {
        let is_own = |key: &Key| {
            let claim: Option<&Claim> = self.edges.state().claim(key);
            claim.is_some_and(|claim| claim.source == self.edges.state().source && claim.name == name)
        };
        match beside.parent_key() {
            Some(edge) => self.edges.state().routes(&edge).into_iter().any(|(key, _)| is_own(key)),
            None => self.edges.edges().iter().any(|edge| is_own(edge.key)),
        }
    }

    /// The name of a resource, with its source if that is another one: its team has to change it. The ID if no source owns it.
    fn name(&self, key: &'s Key) -> String {
        let state = self.edges.state();
        let name = format!("`{}`", printable(state.name(key)));
        match state.claim(key).map(|claim| claim.source.as_str()) {
            Some(SURROUNDING_OWNER) => format!("{name} of the surrounding manifests"),
            Some(source) if source != state.source => format!("{name} of source `{}`", printable(source)),
            _ => name,
        }
    }

    /// The way of a request in one line.
    fn describe(&self, request: &TracedRequest, way: &RequestWay<'s>) -> String {
        let hostport = self.edges.hostport(&host_name(&request.host), request.port);
        let (Some(edge), Some(hostport)) = (way.edge, hostport) else {
            return format!("no edge serves {}:{}", printable(&request.host), request.port);
        };
        let edge = format!("edge {} by {}", self.name(edge), printable(hostport));
        let Some((route, spec)) = way.route else {
            return format!("{edge}, no route matches {}", printable(&request.path));
        };
        let match_type = spec.match_type.map(MatchType::as_str).unwrap_or_default();
        let steps =
            way.treatment.steps.iter().map(|step| format!("{} {} ({})", step.module, step.effect.as_str(), step.note));
        let steps: Vec<String> = steps.collect();
        let by_match = format!("{match_type} {}", printable(&spec.r#match));
        format!("{edge}, route {} by {by_match}: {}", self.name(route), steps.join(", "))
    }
}

impl RequestWay<'_> {
    /// The expected changes of the headers of a request or its response that no module makes.
    fn unchanged_headers(&self, what: &str, expected: &ExpectedHeaders) -> Vec<(FieldPath, String)> {
        let is_of = |stage: Stage| if what == "request" { stage < Stage::Backend } else { stage > Stage::Backend };
        let changes =
            || self.treatment.steps.iter().filter(|step| is_of(step.stage)).flat_map(|step| &step.header_changes);
        let mut found = Vec::new();
        for (field, names, is_added, verb) in
            [("added", &expected.added, true, "add"), ("removed", &expected.removed, false, "remove")]
        {
            for (index, name) in names.iter().enumerate() {
                if !changes().any(|change| change.is_added == is_added && change.name.eq_ignore_ascii_case(name)) {
                    let message = format!("no module {verb}s the {what} header `{}`", printable(name));
                    found.push(((field, index).into(), message));
                }
            }
        }
        found
    }
}

/// The source in a name that means a resource with its source. Both can contain slashes.
fn source_before<'n>(expected: &'n str, name: &str) -> Option<&'n str> {
    expected.strip_suffix(name)?.strip_suffix('/')
}

/// Names in quotes, in their order.
fn quoted(names: &[&str]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("`{}`", printable(name))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;

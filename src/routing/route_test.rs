//! Runs route tests: what becomes of each request, and where that differs from what the test expects (D118).
//!
//! A verdict is certain or it is `depends` (`treatment.rs`): a test cannot pass on a guess. A test names in `assumed_to_pass`
//! what lets the request pass by something that the manifests do not have, such as a session or a policy.
//!
//! For example, `GET /admin` with a session is `forwarded` on a route with `oidc` if that is assumed to pass.

use std::cell::OnceCell;

use super::edge_table::EdgeTable;
use super::enforced_restrictions::OF_ENDPOINTS;
use super::module_pipeline::pipeline;
use super::routed_state::RoutedState;
use super::table::KnownRoute;
use super::treatment::{RequestKnowledge, RequestTreatment};
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::route_test::{ExpectedHeaders, TestExpectation, TestedRequest, means_module};
use crate::model::traffic::{RequestVerdict, Stage, TracedRequest, host_name};
use crate::model::{Claim, FieldPath, Key, MatchType};
use crate::syntax::text::printable;

/// Why a test with the source of a surrounding resource does not pass: nobody can tell whether it is that source.
const UNNAMED_SOURCE: &str =
    ": surrounding manifests do not tell their source, so write the name alone, or test with --server";

/// Runs tests on a state.
pub(crate) struct RouteTester<'s> {
    edges: EdgeTable<'s>,
    /// The compiled patterns of the filters that requests have met.
    patterns: CompiledPatterns,
    /// Whether the state lacks edges that may serve a request.
    lacks_edges: OnceCell<bool>,
}

/// The way of a tested request.
#[derive(Debug)]
pub(crate) struct TestedWay<'s> {
    /// The verdict; none if an edge that this state lacks may take the request.
    pub(crate) verdict: Option<RequestVerdict>,
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
    pub(crate) fn new(state: RoutedState<'s>) -> Self {
        Self { edges: EdgeTable::new(state), patterns: CompiledPatterns::default(), lacks_edges: OnceCell::new() }
    }

    /// Runs the test of a request.
    pub(crate) fn run(&mut self, tested: &TestedRequest, request: &TracedRequest) -> TestedWay<'s> {
        let way = self.way(tested, request);
        // An edge that has the host itself wins over all with a wildcard.
        let hostport = self.edges.hostport(&host_name(&request.host), request.port);
        let is_closest = hostport.is_some_and(|hostport| !hostport.starts_with('*'));
        let is_unknown = !is_closest && *self.lacks_edges.get_or_init(|| self.edges.state().lacks_edges());
        let taken_by = way.edge.into_iter().chain(way.route.map(|route| route.0)).filter(|_| !is_unknown);
        let mismatches = if is_unknown { Vec::new() } else { self.mismatches(&tested.expect, &way) };
        TestedWay {
            verdict: (!is_unknown).then(|| way.treatment.outcome.verdict()),
            mismatches,
            taken_by: taken_by.collect(),
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
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{AnyResource, Desired, HttpsEdgeRoute, Id, Kind, Snapshot};
    use crate::routing::tests::{edge_key, route, route_key, spec_of, with};

    /// Declared resources: no rule checks their Specs.
    type State = BTreeMap<Key, Desired>;

    fn declare(state: &mut State, key: Key, spec: Arc<dyn AnyResource>, source: &str, name: &str) {
        let claim = Arc::new(Claim::new(source, name));
        state.insert(key.clone(), Desired::new(key, spec, claim));
    }

    /// An edge of the source `shop`, with routes: their names, sources and Specs.
    fn state(edge: Value, routes: &[(&str, &str, Value)]) -> State {
        let mut state = State::new();
        declare(&mut state, edge_key("edghts_1"), spec_of(Kind::HttpsEdge, &edge), "shop", "storefront");
        for (index, (name, source, spec)) in routes.iter().enumerate() {
            let key = route_key("edghts_1", &format!("edghtsrt_{index}"));
            declare(&mut state, key, spec_of(Kind::HttpsEdgeRoute, spec), source, name);
        }
        state
    }

    fn storefront(modules: &Value) -> State {
        let modules = with(json!({"backend": {"backend_id": "bkd_cart"}}), modules.clone());
        state(json!({"hostports": ["shop.example.com:443"]}), &[("cart", "shop", route("/cart", modules))])
    }

    fn tested(request: Value) -> TestedRequest {
        serde_json::from_value(request).unwrap_or_default()
    }

    /// The verdict on a request, and what is otherwise than expected.
    fn told(state: &State, request: Value) -> (Option<RequestVerdict>, Vec<(String, String)>) {
        let (tested, stored) = (tested(request), Snapshot::default());
        let state = RoutedState { desired: Some(state), ..RoutedState::stored(&stored, "shop") };
        let mut tester = RouteTester::new(state);
        let way = tester.run(&tested, &tested.traced().unwrap_or_default());
        (way.verdict, way.mismatches.into_iter().map(|it| (it.path.to_string(), it.message)).collect())
    }

    fn verdict(modules: &Value, more: &Value) -> Option<RequestVerdict> {
        let request = with(json!({"url": "https://shop.example.com/cart/1"}), more.clone());
        told(&storefront(modules), request).0
    }

    #[test]
    fn a_verdict_is_certain_or_depends() {
        use RequestVerdict::{Blocked, Denied, Depends, Forwarded, Login, Redirected, Unserved};
        let (oidc, none) = (json!({"issuer": "https://id.example.com", "client_id": "a"}), json!({}));
        let policies = |actions: Value| json!({"policies": {"inbound": [{"name": "all", "actions": actions}]}});
        let limited = json!({"ip_restriction": {"ip_policy_ids": ["ipp_1"]}, "oidc": oidc});
        let tokens = json!([{"type": "jwt", "method": "header", "name": "Authorization", "prefix": "Bearer "}]);
        let jwt = json!({"jwt_validation": {"http": {"tokens": tokens}}});
        let token = json!({"headers": {"Authorization": "Bearer x"}});
        for (modules, more, expected) in [
            (json!({}), none.clone(), Forwarded),
            (json!({"circuit_breaker": {}, "compression": {}}), none.clone(), Forwarded),
            (json!({"backend": {"backend_id": "bkd_1", "enabled": false}}), none.clone(), Unserved),
            (json!({}), json!({"url": "https://shop.example.com/other"}), Unserved),
            (json!({}), json!({"url": "https://other.example.com/cart"}), Unserved),
            (json!({"oidc": oidc}), none.clone(), Login),
            (json!({"oidc": oidc}), json!({"assumed_to_pass": ["oidc"]}), Forwarded),
            (limited.clone(), none.clone(), Depends),
            (limited.clone(), json!({"assumed_to_pass": ["ip_restriction"]}), Login),
            (limited, json!({"assumed_to_pass": ["ip_restriction", "oidc"]}), Forwarded),
            (jwt.clone(), none.clone(), Denied),
            (jwt.clone(), json!({"assumed_to_pass": ["jwt_validation"]}), Denied),
            (jwt, token, Depends),
            (json!({"user_agent_filter": {"deny": ["bot"]}}), json!({"user_agent": "bot/1"}), Blocked),
            (json!({"user_agent_filter": {"deny": ["bot"]}}), json!({"headers": {"User-Agent": "app"}}), Forwarded),
            (json!({"user_agent_filter": {"deny": ["bot"]}}), none.clone(), Depends),
            (policies(json!([{"type": "deny"}])), none.clone(), Blocked),
            (policies(json!([{"type": "redirect"}])), none.clone(), Redirected),
            (policies(json!([{"type": "rate-limit"}])), none.clone(), Depends),
            (policies(json!([{"type": "rate-limit"}])), json!({"assumed_to_pass": ["policies"]}), Forwarded),
        ] {
            assert_eq!(verdict(&modules, &more), Some(expected), "{modules} {more}");
        }
    }

    #[test]
    fn a_client_certificate_is_presented_or_not() {
        let edge = json!({"hostports": ["shop.example.com:443"], "mutual_tls": {}});
        let snapshot = state(edge, &[("all", "shop", route("/", Value::Null))]);
        let of = |more: Value| told(&snapshot, json!({"url": "shop.example.com", "client_certificate": more})).0;
        assert_eq!(of(json!(true)), Some(RequestVerdict::Forwarded));
        assert_eq!(of(json!(false)), Some(RequestVerdict::Denied));
        assert_eq!(of(Value::Null), Some(RequestVerdict::Depends));
    }

    #[test]
    fn nobody_can_tell_what_an_edge_checks_without_tls() {
        let verdict = |edge: Value, modules: Value, more: Value| {
            let edge = with(json!({"hostports": ["shop.example.com:443", "shop.example.com:80"]}), edge);
            told(&state(edge, &[("all", "shop", route("/", modules))]), with(json!({"url": "shop.example.com"}), more))
                .0
        };
        let mutual = || json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}});
        for presents in [true, false] {
            let plain = json!({"url": "http://shop.example.com", "client_certificate": presents});
            assert_eq!(verdict(mutual(), Value::Null, plain), Some(RequestVerdict::Depends));
            let disabled = with(mutual(), json!({"tls_termination": {"enabled": false}}));
            let presented = json!({"client_certificate": presents});
            assert_eq!(verdict(disabled, Value::Null, presented), Some(RequestVerdict::Depends));
        }
        let plain = json!({"url": "http://shop.example.com", "assumed_to_pass": ["mutual_tls"]});
        assert_eq!(verdict(mutual(), Value::Null, plain), Some(RequestVerdict::Forwarded));
        let disabled = || json!({"tls_termination": {"enabled": false}});
        assert_eq!(verdict(disabled(), json!({"oidc": {}}), json!({})), Some(RequestVerdict::Login));
        assert_eq!(verdict(disabled(), json!({"compression": {}}), json!({})), Some(RequestVerdict::Forwarded));
    }

    #[test]
    fn each_expectation_that_is_not_met_is_reported_at_its_field() {
        let headers = json!({"add": {"X-Edge": "shop"}, "remove": ["Cookie"]});
        let snapshot = storefront(&json!({"request_headers": headers, "response_headers": {"remove": ["Server"]}}));
        let expecting = |expect: Value| told(&snapshot, json!({"url": "shop.example.com/cart", "expect": expect})).1;
        let met = json!({
            "edge": "storefront", "route": "shop/cart", "backend": "bkd_cart", "verdict": "forwarded",
            "modules": ["request_headers", "backend", "response_headers"], "modules_include": ["backend"],
            "request_headers": {"added": ["x-edge"], "removed": ["Cookie"]},
            "response_headers": {"removed": ["Server"]}
        });
        assert!(expecting(met).is_empty());
        let found = expecting(json!({
            "edge": "docs", "route": "checkout", "backend": "bkd_1", "verdict": "login",
            "modules": ["backend"], "modules_include": ["backend", "oidc"],
            "request_headers": {"added": ["Cookie"]},
            "response_headers": {"removed": ["Cookie"]}
        }));
        let found: Vec<(&str, &str)> = found.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let expected = [
            ("/edge", "the edge `storefront` takes it, not `docs`"),
            ("/route", "the route `cart` takes it, not `checkout`"),
            ("/verdict", "the verdict is `forwarded`, not `login`"),
            ("/backend", "it reaches the backend `bkd_cart`, not `bkd_1`"),
            ("/modules", "it meets the modules `request_headers`, `backend`, `response_headers`, not `backend`"),
            ("/modules_include/1", "it does not meet the module `oidc`"),
            ("/request_headers/added/0", "no module adds the request header `Cookie`"),
            ("/response_headers/removed/0", "no module removes the response header `Cookie`"),
        ];
        assert_eq!(found, expected);
        let nowhere = told(&snapshot, json!({"url": "a.example", "expect": {"edge": "storefront", "route": "cart"}}));
        let messages: Vec<&str> = nowhere.1.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(messages, ["no edge takes it, not `storefront`", "no route takes it, not `cart`"]);
    }

    #[test]
    fn a_policy_that_certainly_refuses_is_the_last_module_that_a_request_meets() {
        for (action, verdict) in [("deny", "blocked"), ("redirect", "redirected")] {
            let inbound = json!([{"name": "p", "actions": [{"type": action}]}]);
            let snapshot = storefront(&json!({"policies": {"inbound": inbound}, "compression": {}}));
            let found = |expect: Value| told(&snapshot, json!({"url": "shop.example.com/cart", "expect": expect})).1;
            assert!(found(json!({"verdict": verdict, "modules": ["policies inbound"]})).is_empty(), "{action}");
            assert_eq!(found(json!({"modules_include": ["backend"]})).len(), 1, "{action}");
        }
    }

    #[test]
    fn a_name_alone_is_that_of_the_own_source() {
        let route = |matched: &str| route(matched, Value::Null);
        let edge = json!({"hostports": ["shop.example.com:443"]});
        let routes = [
            ("cart", "shop", route("/cart")),
            ("cart", "team", route("/cart/new")),
            ("pay", "team", route("/pay")),
            ("exact_path /eu", "team/eu", route("/eu")),
        ];
        let snapshot = state(edge, &routes);
        let passes = |path: &str, name: &str| {
            let request = json!({"url": format!("shop.example.com{path}"), "expect": {"route": name}});
            told(&snapshot, request).1.is_empty()
        };
        assert!(passes("/cart", "cart") && passes("/cart/new", "team/cart") && passes("/cart/new", "edghtsrt_1"));
        assert!(!passes("/cart/new", "cart"), "the route of another source has the name, too");
        assert!(passes("/pay", "pay") && passes("/pay", "team/pay") && !passes("/pay", "shop/pay"));
        assert!(passes("/eu", "team/eu/exact_path /eu") && !passes("/eu", "team/exact_path /eu"));
        let request = json!({"url": "shop.example.com/pay", "expect": {"route": "cart"}});
        let found = told(&snapshot, request).1;
        let messages: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(messages, ["the route `pay` of source `team` takes it, not `cart`"]);
    }

    #[test]
    fn a_request_to_an_edge_that_only_a_server_has_is_not_judged() {
        let mut state = State::new();
        let key = route_key("edghts_9", "edghtsrt_1");
        declare(&mut state, key, Arc::new(HttpsEdgeRoute::default()), "shop", "cart");
        let request = json!({"url": "shop.example.com", "expect": {"verdict": "forwarded"}});
        assert_eq!(told(&state, request), (None, Vec::new()));
    }

    #[test]
    fn a_request_to_a_wildcard_is_not_judged_if_an_edge_that_is_missing_may_have_its_host() {
        let edge = json!({"hostports": ["*.example.com:443", "docs.example.com:443"]});
        let mut state = state(edge, &[("all", "shop", route("/", Value::Null))]);
        let of = |state: &State, host: &str| told(state, json!({"url": host})).0;
        assert_eq!(of(&state, "shop.example.com"), Some(RequestVerdict::Forwarded));
        let key = route_key("edghts_9", "edghtsrt_1");
        declare(&mut state, key, Arc::new(HttpsEdgeRoute::default()), "shop", "cart");
        assert_eq!(of(&state, "shop.example.com"), None);
        assert_eq!(of(&state, "docs.example.com"), Some(RequestVerdict::Forwarded), "the edge has the host itself");
    }

    #[test]
    fn a_verdict_depends_on_an_enforced_restriction_of_all_endpoints() {
        let mut state = storefront(&json!({}));
        let restriction = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": ["ipp_1"]});
        let spec = spec_of(Kind::IpRestriction, &restriction);
        declare(&mut state, Key::new(Kind::IpRestriction, Id::new("ipx_1")), spec, "shop", "offices");
        let of = |more: Value| told(&state, with(json!({"url": "https://shop.example.com/cart"}), more));
        let (verdict, found) = of(json!({"expect": {"verdict": "forwarded"}}));
        assert_eq!(verdict, Some(RequestVerdict::Depends));
        let messages: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(messages, ["the verdict is `depends` (on `ip_restriction endpoints`), not `forwarded`"]);
        assert_eq!(of(json!({"assumed_to_pass": ["ip_restriction"]})).0, Some(RequestVerdict::Forwarded));
        let module = json!({"expect": {"modules_include": ["ip_restriction"]}});
        assert!(!of(module).1.is_empty(), "it is no module of the route");
        let both = json!({"expect": {"modules": ["ip_restriction endpoints", "backend"]}});
        assert!(of(both).1.is_empty());
    }
}

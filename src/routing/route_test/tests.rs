//! Route tests on states from JSON, which no rule checks.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::*;
use crate::model::{AnyResource, Desired, Id, Kind, Snapshot};
use crate::routing::tests::{edge_key, route, route_key, spec_of, with};

/// Declared resources: no rule checks their Specs.
type DesiredState = BTreeMap<Key, Desired>;

fn declare(state: &mut DesiredState, key: Key, spec: Arc<dyn AnyResource>, source: &str, name: &str) {
    let claim = Arc::new(Claim::new(source, name));
    state.insert(key.clone(), Desired::new(key, spec, claim));
}

/// An edge of the source `shop`, with routes: their names, sources and Specs.
fn state(edge: Value, routes: &[(&str, &str, Value)]) -> DesiredState {
    let mut state = DesiredState::new();
    declare(&mut state, edge_key("edghts_1"), spec_of(Kind::HttpsEdge, &edge), "shop", "storefront");
    for (index, (name, source, spec)) in routes.iter().enumerate() {
        let key = route_key("edghts_1", &format!("edghtsrt_{index}"));
        declare(&mut state, key, spec_of(Kind::HttpsEdgeRoute, spec), source, name);
    }
    state
}

fn storefront(modules: &Value) -> DesiredState {
    let modules = with(json!({"backend": {"backend_id": "bkd_cart"}}), modules.clone());
    state(json!({"hostports": ["shop.example.com:443"]}), &[("cart", "shop", route("/cart", modules))])
}

fn tested(request: Value) -> TestedRequest {
    serde_json::from_value(request).unwrap_or_default()
}

/// The verdict on a request, and what is otherwise than expected.
fn told(state: &DesiredState, request: Value) -> (Option<RequestVerdict>, Vec<(String, String)>) {
    told_without(&[], state, request)
}

/// Like [`told`], with something that the state does not show.
fn told_without(
    unseen: &[Unseen],
    state: &DesiredState,
    request: Value,
) -> (Option<RequestVerdict>, Vec<(String, String)>) {
    let (tested, stored) = (tested(request), Snapshot::default());
    let state = RoutedState { desired: Some(state), ..RoutedState::stored(&stored, "shop") };
    let mut tester = RouteTester::new(state, unseen);
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
        told(&state(edge, &[("all", "shop", route("/", modules))]), with(json!({"url": "shop.example.com"}), more)).0
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
fn a_request_that_depends_on_something_unseen_is_not_judged() {
    let edge = json!({"hostports": ["*.example.com:443", "docs.example.com:443"]});
    let snapshot = state(edge, &[("all", "shop", route("/", Value::Null))]);
    // An edge that is missing may have the host, unless this one has it itself.
    let missing = spec_of(Kind::HttpsEdgeRoute, &route("/cart", Value::Null));
    let missing = [Unseen::new("an edge".to_owned()).about(missing.as_ref())];
    let guessed = [Unseen::new("the edge of a route".to_owned()).guessing([route_key("edghts_1", "edghtsrt_0")])];
    let expecting = |unseen: &[Unseen], host: &str| {
        told_without(unseen, &snapshot, json!({"url": host, "expect": {"verdict": "forwarded", "route": "b"}}))
    };
    let judged = |found: (Option<RequestVerdict>, Vec<(String, String)>)| (found.0, found.1.len());
    let is_judged = (Some(RequestVerdict::Forwarded), 1);
    assert_eq!(judged(expecting(&[], "shop.example.com")), is_judged);
    assert_eq!(judged(expecting(&missing, "shop.example.com")), (None, 0));
    assert_eq!(judged(expecting(&missing, "docs.example.com")), is_judged);
    assert_eq!(judged(expecting(&guessed, "docs.example.com")), (None, 0));
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

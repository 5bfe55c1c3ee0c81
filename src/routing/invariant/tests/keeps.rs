//! Modules that no change may take or weaken, and those that an edge must have.

use serde_json::{Value, json};

use super::{Given, change, edge, invariant, now, route, state, told};
use crate::routing::invariant::{ProofAnswer, prove_change};
use crate::routing::tests::with;

#[test]
fn a_module_that_must_be_kept_is_not_lost() {
    let keeps = invariant(json!({"keeps": ["webhook_verification"]}));
    let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
    let verified = json!({"webhook_verification": {"provider": "sns"}});
    let with = |more: Value| vec![keeps.clone(), hooks.clone(), route("hooks", "docs", "/", more)];
    assert!(change(&[], &with(json!({}))).is_empty(), "there was nothing to lose");
    assert_eq!(change(&with(verified.clone()), &with(json!({}))), ["hooks/"]);
    assert!(change(&with(verified.clone()), &[keeps.clone(), hooks.clone()]).is_empty(), "nothing is forwarded");
    let disabled = json!({"webhook_verification": {"provider": "sns", "enabled": false}});
    assert_eq!(change(&with(verified.clone()), &with(disabled)), ["hooks//webhook_verification/enabled"]);
    // A route without a backend could get one by the next change.
    let closed = json!({"enabled": false, "backend_id": "bkd_1"});
    assert_eq!(change(&with(verified.clone()), &with(json!({"backend": closed.clone()}))), ["hooks/"]);
    let verified_and_closed = json!({"backend": closed.clone(), "webhook_verification": {"provider": "sns"}});
    assert!(change(&with(verified.clone()), &with(verified_and_closed.clone())).is_empty());
    assert_eq!(change(&with(verified_and_closed), &with(json!({}))), ["hooks/"]);
    // A new invariant counts for the change that comes with it.
    let before = [hooks.clone(), route("hooks", "docs", "/", verified)];
    assert_eq!(change(&before, &with(json!({}))), ["hooks/"]);
    // An edge can lose a module before it has a route.
    let locked = |more: Value| [invariant(json!({"keeps": ["mutual_tls"]})), edge("h", "docs", "h.example:443", more)];
    let mutual = || json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}});
    assert_eq!(change(&locked(mutual()), &locked(json!({}))), ["h"]);
    // Nor together with its first route.
    let routed = |more: Value| [locked(more).to_vec(), vec![route("h", "docs", "/", json!({}))]].concat();
    assert_eq!(change(&locked(mutual()), &routed(json!({}))), ["h/"]);
    assert!(change(&locked(mutual()), &routed(mutual())).is_empty());
}

#[test]
fn a_module_that_checks_the_connection_is_lost_with_its_tls() {
    let given = |more: Value| {
        let mutual = json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}});
        let locked = edge("h", "docs", "h.example:443", with(mutual, more));
        vec![invariant(json!({"keeps": ["mutual_tls"]})), locked, route("h", "docs", "/", json!({}))]
    };
    let off = || json!({"tls_termination": {"enabled": false}});
    assert_eq!(change(&given(json!({})), &given(off())), ["h/tls_termination"]);
    assert!(change(&given(off()), &given(json!({}))).is_empty());
    let without = [invariant(json!({"keeps": ["mutual_tls"]})), edge("h", "docs", "h.example:443", json!({}))];
    assert!(change(&given(off()), &without).is_empty(), "there was nothing to lose");
}

#[test]
fn the_proof_of_a_change_has_the_requests_that_lose_a_module() {
    let of_change = |before: &[Given], after: &[Given]| {
        let (before, after) = (state(before), state(after));
        let proofs = prove_change(&before, &after, now());
        let found = proofs.iter().flat_map(|proof| proof.breaches.iter().map(told)).collect::<Vec<_>>();
        (proofs.iter().map(|proof| proof.answer()).collect::<Vec<_>>(), found)
    };
    let keeps = invariant(json!({"keeps": ["webhook_verification"]}));
    let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
    let with = |more: Value| [keeps.clone(), hooks.clone(), route("hooks", "docs", "/", more)];
    let verified = || json!({"webhook_verification": {"provider": "sns"}});
    let lost =
        "`GET https://hooks.example.com/` loses `webhook_verification` on its way to the backend `bkd_1`".to_owned();
    assert_eq!(of_change(&with(verified()), &with(json!({}))), (vec![ProofAnswer::Refuted], vec![lost]));
    for (before, after) in [(verified(), verified()), (json!({}), verified()), (json!({}), json!({}))] {
        assert_eq!(of_change(&with(before), &with(after)), (vec![ProofAnswer::Proven], Vec::new()));
    }
}

#[test]
fn the_first_route_of_requests_on_another_edge_loses_nothing() {
    let keeps = invariant(json!({"scope": {"path_prefixes": ["/public"]}, "keeps": ["mutual_tls"]}));
    let mutual = json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}});
    let with = |prefix: &str| {
        let wide = edge("wide", "docs", "*.example.com:443", mutual.clone());
        vec![keeps.clone(), wide, route("wide", "docs", prefix, json!({}))]
    };
    let new = [edge("new", "docs", "www.example.com:443", json!({})), route("new", "docs", "/public", json!({}))];
    let added = |prefix: &str| change(&with(prefix), &[with(prefix), new.to_vec()].concat());
    assert!(added("/api/").is_empty(), "no route handled these requests");
    assert_eq!(added("/"), ["new/public"], "a route handled them, with the module");
}

#[test]
fn a_module_that_an_edge_must_have_is_missing_although_its_defaults_have_the_same_effect() {
    let terminated = || json!({"tls_termination": {"min_version": "1.2"}});
    for requires in [json!({"requires_any": ["tls_termination"]}), json!({"keeps": ["tls_termination"]})] {
        let with = |more: Value| {
            let wiki = edge("wiki", "docs", "wiki.example.com:443", more);
            vec![invariant(requires.clone()), wiki, route("wiki", "docs", "/", json!({}))]
        };
        assert_eq!(change(&with(terminated()), &with(json!({}))), ["wiki"], "{requires}");
        let disabled = json!({"tls_termination": {"enabled": false, "min_version": "1.2"}});
        assert_eq!(change(&with(terminated()), &with(disabled)), ["wiki"], "{requires}");
        assert!(change(&with(terminated()), &with(json!({"tls_termination": {}}))).is_empty(), "{requires}");
    }
}

/// What a change of the modules of a route does to an invariant that keeps one of them.
fn kept(name: &str, before: Value, after: Value) -> Vec<String> {
    let with = |modules: Value| {
        let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
        vec![invariant(json!({"keeps": [name]})), hooks, route("hooks", "docs", "/", json!({name: modules}))]
    };
    change(&with(before), &with(after))
}

#[test]
fn a_module_that_must_be_kept_does_not_restrict_less() {
    let deny = json!({"expressions": ["true"], "actions": [{"type": "deny"}]});
    let client = |id: &str| json!({"issuer": "https://login.example.com", "client_id": id});
    for (name, strict, weak) in [
        ("user_agent_filter", json!({"deny": ["bot"]}), json!({})),
        ("user_agent_filter", json!({"allow": ["^app/"]}), json!({"allow": ["^app/", "^web/"]})),
        ("ip_restriction", json!({"ip_policy_ids": ["a"]}), json!({"ip_policy_ids": ["a", "b"]})),
        ("policies", json!({"inbound": [deny]}), json!({"inbound": []})),
        (
            "policies",
            json!({"inbound": [deny, {"actions": [{"type": "log"}]}]}),
            json!({"inbound": [{"actions": [{"type": "log"}]}]}),
        ),
        ("oidc", client("a"), with(client("a"), json!({"options_passthrough": true}))),
        ("saml", json!({"authorized_groups": ["staff"]}), json!({})),
    ] {
        assert_eq!(kept(name, strict.clone(), weak.clone()), [format!("hooks//{name}")], "{weak}");
        assert!(kept(name, weak.clone(), strict.clone()).is_empty(), "{strict}");
        assert!(kept(name, strict.clone(), strict.clone()).is_empty(), "{strict}");
    }
    // Nobody can tell whom these admit, compared with before.
    for (name, then, now) in [
        ("user_agent_filter", json!({"deny": ["bot"]}), json!({"deny": ["spider"]})),
        ("ip_restriction", json!({"ip_policy_ids": ["a"]}), json!({"ip_policy_ids": ["b"]})),
        ("ip_restriction", json!({"ip_policy_ids": ["a"]}), json!({})),
        ("oidc", client("a"), client("b")),
    ] {
        assert_eq!(kept(name, then, now.clone()), ["hooks/? INVARIANT_UNPROVEN"], "{now}");
    }
    // What decides nothing about who is admitted can change.
    for (name, then, now) in [
        ("oidc", client("a"), with(client("a"), json!({"maximum_duration": 60}))),
        ("circuit_breaker", json!({"rolling_window": 60}), json!({"rolling_window": 1})),
        ("backend", json!({"backend_id": "bkd_1"}), json!({"backend_id": "bkd_2"})),
    ] {
        assert!(kept(name, then, now.clone()).is_empty(), "{now}");
    }
}

#[test]
fn a_login_that_lets_options_pass_restricts_no_other_method_less() {
    let with = |methods: &Value, more: Value| {
        let keeps = invariant(json!({"keeps": ["oidc"], "scope": {"methods": methods}}));
        let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
        state(&[keeps, hooks, route("hooks", "docs", "/", json!({"oidc": more}))])
    };
    let told_of = |methods: Value, then: Value, now_is: Value| {
        let (before, after) = (with(&methods, then), with(&methods, now_is));
        let proofs = prove_change(&before, &after, now());
        proofs.iter().flat_map(|proof| proof.breaches.iter().map(told)).collect::<Vec<String>>()
    };
    let login = |client: &str, passes: bool| json!({"client_id": client, "options_passthrough": passes});
    let (strict, lenient) = (|| login("a", false), || login("a", true));
    let less = "is restricted less by `oidc` on its way to the backend `bkd_1`";
    let preflight = format!("`OPTIONS https://hooks.example.com/` {less}");
    for methods in [json!([]), json!(["GET", "options"]), json!(["OPTIONS"])] {
        assert_eq!(told_of(methods.clone(), strict(), lenient()), [preflight.as_str()], "{methods}");
        assert!(told_of(methods.clone(), lenient(), strict()).is_empty(), "{methods}");
    }
    assert!(told_of(json!(["GET"]), strict(), lenient()).is_empty());
    // Another client may admit others, but not with the requests that it lets pass as before.
    let other = |method: &str| format!("`{method} https://hooks.example.com/` whom the changed `oidc` would admit");
    assert_eq!(told_of(json!(["OPTIONS", "PUT"]), lenient(), login("b", true)), [other("PUT")]);
    assert!(told_of(json!(["OPTIONS"]), lenient(), login("b", true)).is_empty());
    assert_eq!(told_of(json!(["GET"]), strict(), login("b", true)), [other("GET")]);
}

#[test]
fn requests_that_another_route_takes_are_restricted_as_much() {
    let keeps = invariant(json!({"keeps": ["user_agent_filter"]}));
    let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
    let filtered =
        |prefix: &str, deny: Value| route("hooks", "docs", prefix, json!({"user_agent_filter": {"deny": deny}}));
    let before = [keeps, hooks, filtered("/", json!(["bot"]))];
    let with = |deny: Value| [before.to_vec(), vec![filtered("/new", deny)]].concat();
    assert_eq!(change(&before, &with(json!([]))), ["hooks/new/user_agent_filter"]);
    assert!(change(&before, &with(json!(["bot", "spider"]))).is_empty());
}

#[test]
fn the_proof_of_a_change_says_which_module_restricts_less() {
    let with = |filter: Value| {
        let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
        let keeps = invariant(json!({"keeps": ["user_agent_filter"]}));
        state(&[keeps, hooks, route("hooks", "docs", "/", json!({"user_agent_filter": filter}))])
    };
    let of_change = |after: Value| {
        let (before, after) = (with(json!({"deny": ["bot"]})), with(after));
        let proofs = prove_change(&before, &after, now());
        let found = proofs.iter().flat_map(|proof| proof.breaches.iter().map(told)).collect::<Vec<_>>();
        (proofs.iter().map(|proof| proof.answer()).collect::<Vec<_>>(), found)
    };
    let request = "`GET https://hooks.example.com/`";
    let weakened = format!("{request} is restricted less by `user_agent_filter` on its way to the backend `bkd_1`");
    assert_eq!(of_change(json!({})), (vec![ProofAnswer::Refuted], vec![weakened]));
    let other = format!("{request} whom the changed `user_agent_filter` would admit");
    assert_eq!(of_change(json!({"deny": ["spider"]})), (vec![ProofAnswer::Depends], vec![other]));
}

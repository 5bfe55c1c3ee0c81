//! Modules that no change may take, and those that an edge must have.

use serde_json::{Value, json};

use super::{Given, change, edge, invariant, now, route, state, told};
use crate::routing::invariant::{ProofAnswer, prove_change};

#[test]
fn a_module_that_must_be_kept_is_not_lost() {
    let keeps = invariant(json!({"keeps": ["webhook_verification"]}));
    let hooks = edge("hooks", "docs", "hooks.example.com:443", json!({}));
    let verified = json!({"webhook_verification": {"provider": "sns"}});
    let with = |more: Value| vec![keeps.clone(), hooks.clone(), route("hooks", "docs", "/", more)];
    assert!(change(&[], &with(json!({}))).is_empty(), "there was nothing to lose");
    assert_eq!(change(&with(verified.clone()), &with(json!({}))), ["hooks/"]);
    assert!(change(&with(verified.clone()), &[keeps.clone(), hooks.clone()]).is_empty(), "nothing is forwarded");
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

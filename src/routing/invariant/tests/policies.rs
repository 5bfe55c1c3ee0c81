//! Modules that refuse every request, behind which nothing breaks an invariant, and those that refuse none.

use serde_json::{Value, json};

use super::{answer, change, denying, edge, invariant, proven, refuted, route};
use crate::routing::invariant::ProofAnswer;
use crate::routing::tests::with;

#[test]
fn behind_a_policy_that_refuses_everybody_nothing_is_open() {
    let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
    let (always, some) = (denying(json!([])), denying(json!(["a"])));
    for required in [
        json!({"requires_any": ["oidc"]}),
        json!({"requires_any": ["policies"]}),
        json!({"only_from": ["ipp_office"]}),
        json!({"backends": ["bkd_2"]}),
    ] {
        let strict = invariant(with(required.clone(), json!({"unproven": "deny"})));
        let behind = |policy: &Value| vec![strict.clone(), wiki.clone(), route("wiki", "shop", "/", policy.clone())];
        assert_eq!(answer(&behind(&always)), proven(), "{required}");
        assert_eq!(answer(&behind(&some)).0, ProofAnswer::Depends, "{required}");
        assert_eq!(change(&behind(&always), &behind(&some)), ["wiki//policies"], "{required}");
        assert!(change(&behind(&some), &behind(&always)).is_empty(), "{required}");
    }
    // What is no rule about a backend can be broken all the same.
    let oldest = invariant(json!({"min_tls_version": "1.3"}));
    assert_eq!(answer(&[oldest, wiki.clone(), route("wiki", "shop", "/", always.clone())]).0, ProofAnswer::Refuted);
    let keeps = |policy: &Value, more: Value| {
        vec![
            invariant(json!({"keeps": ["oidc"]})),
            wiki.clone(),
            route("wiki", "shop", "/", with(policy.clone(), more)),
        ]
    };
    assert_eq!(change(&keeps(&always, super::login()), &keeps(&always, json!({}))).len(), 1);
}

#[test]
fn a_filter_without_patterns_is_no_filter() {
    let required = |any: Value| invariant(json!({"requires_any": any}));
    let wiki = || edge("wiki", "shop", "wiki.example.com:443", json!({}));
    let filtered = |any: Value, filter: Value| {
        let more = json!({"user_agent_filter": filter});
        answer(&[required(any), wiki(), route("wiki", "shop", "/", more)])
    };
    let alone = || json!(["user_agent_filter"]);
    for patterns in [json!({"deny": ["bot"]}), json!({"allow": ["^shop-app/"]})] {
        assert_eq!(filtered(alone(), patterns.clone()), proven(), "{patterns}");
    }
    let open = "`GET https://wiki.example.com/` reaches the backend `bkd_1` without `user_agent_filter`; \
                `user_agent_filter` admits everybody";
    assert_eq!(filtered(alone(), json!({})), refuted(open));
    // Another module of the list is enough.
    assert_eq!(filtered(json!(["user_agent_filter", "backend"]), json!({})), proven());
}

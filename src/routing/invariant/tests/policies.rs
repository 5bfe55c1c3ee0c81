//! Policies that refuse every request: nothing behind them breaks an invariant.

use serde_json::{Value, json};

use super::{answer, change, denying, edge, invariant, proven, route};
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

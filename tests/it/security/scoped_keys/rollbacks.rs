//! Rollbacks by API keys with a scope, and what belongs to other teams by now (D101, D103).

use serde_json::json;

use super::{key, manifest, reconciliation, refused, start};

#[test]
fn a_rollback_of_a_team_does_not_take_a_hostport_that_another_team_serves_by_now() {
    // Consent is for other hosts.
    for consent in ["", "\n  delegates_to: [{source: shop, path_prefix: /}]"] {
        let server = start();
        let before = server.store().snapshot().revision;
        let given_up = manifest("shop", "shop-secret-1", "first").replace("shop.example.com", "store.example.com");
        let hosts = format!("['identity.example.com:443', 'shop.example.com:443']{consent}");
        let taken = manifest("identity", "identity-secret-1", "first").replace("['identity.example.com:443']", &hosts);
        for (source, text) in [("shop", given_up), ("identity", taken)] {
            let made = server.call("POST", "/reconciliations", reconciliation(source, &text, false));
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let (_, team) = key(&server, json!({"apply": ["shop"]}));
        let body = json!({"to": before, "source": "shop"});
        let answer = server.call_as(&team, "POST", "/rollbacks", Some(body.clone()));
        refused(&answer, 409, &["NOT_DELEGATED", "belongs to HttpsEdge `identity` of source `identity`"]);
        // Whoever may change everything decides.
        assert_eq!(server.call("POST", "/rollbacks", Some(body)).status, 201);
    }
}

#[test]
fn a_rollback_of_a_team_moves_its_hosts_back_between_its_edges() {
    let server = start();
    let applied = |source: &str, text: &str| {
        let answer = server.call("POST", "/reconciliations", reconciliation(source, text, false));
        assert_eq!(answer.status, 201, "{}", answer.text);
        server.store().snapshot().revision
    };
    let wildcard = manifest("identity", "identity-secret-1", "first").replace("['identity", "['*.identity");
    applied("identity", &wildcard.replace("spec:\n", "spec:\n  delegates_to: [{source: shop, path_prefix: /}]\n"));
    let edges = |one: &str, two: &str| {
        let edge = |name: &str, host: &str| {
            format!(
                "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{hostports: ['{host}:443']}}\n"
            )
        };
        format!("{}---\n{}", edge("one", one), edge("two", two))
    };
    let before = applied("shop", &edges("shop.identity.example.com", "one.example.com"));
    applied("shop", &edges("two.example.com", "shop.identity.example.com"));
    // Without consent, which the move needed as little.
    applied("identity", &wildcard);
    let (_, team) = key(&server, json!({"apply": ["shop"]}));
    let back = || Some(json!({"to": before, "source": "shop"}));
    let answer = server.call_as(&team, "POST", "/rollbacks", back());
    assert_eq!(answer.status, 201, "{}", answer.text);
    // What it has given up is not its own any more.
    applied("shop", &edges("two.example.com", "one.example.com"));
    let answer = server.call_as(&team, "POST", "/rollbacks", back());
    refused(&answer, 409, &["NOT_DELEGATED", "`*.identity.example.com:443` of HttpsEdge `identity`"]);
}

#[test]
fn a_key_for_all_sources_rolls_back_routes_on_their_own_edges() {
    let server = start();
    let before = server.store().snapshot().revision;
    let text = manifest("shop", "shop-secret-1", "second");
    assert_eq!(server.call("POST", "/reconciliations", reconciliation("shop", &text, false)).status, 201);
    let (_, team) = key(&server, json!({"apply": ["*"], "kinds": ["*"]}));
    let answer = server.call_as(&team, "POST", "/rollbacks", Some(json!({"to": before})));
    assert_eq!(answer.status, 201, "{}", answer.text);
}

//! Secrets that an edge requires of the routes of another team (D103): what that team can find out about them.

use std::sync::Arc;

use edgewright::resources::{Author, Claim, Kind, MASK, Operation, now};
use edgewright::storage::Commit;
use serde_json::{Value, json};

use super::limits::{DOCS, SHOP, secrets_of};
use super::{key, reconciliation, refused, route_of};
use crate::support::server::{Answer, Server};

/// The secret of the edge, which the team guesses, and another one.
const GUESSES: [&str; 2] = ["shop-secret-1", "docs-secret-2"];

fn apply(server: &Server, source: &str, text: &str) {
    let made = server.call("POST", "/reconciliations", reconciliation(source, text, false));
    assert_eq!(made.status, 201, "{}", made.text);
}

/// The edge without the requirement.
fn without_requirement() -> String {
    SHOP.replace("  required_modules: [guard]\n", "")
}

/// The route with a module of its own instead of the one that the edge has required.
fn own(secret: &str) -> String {
    format!("{DOCS}  webhook_verification: {{provider: github, secret: {secret}}}\n")
}

/// A server whose route has a secret that the edge has required and requires no longer, the revision at which it did, and the
/// token of the team that has the route.
fn start() -> (Server, u64, String) {
    let server = Server::start();
    apply(&server, "shop", SHOP);
    apply(&server, "docs", DOCS);
    let required = server.store().snapshot().revision;
    apply(&server, "shop", &without_requirement());
    let (_, team) = key(&server, json!({"apply": ["docs"]}));
    (server, required, team)
}

/// What an answer and the history tell of a change, but for revisions and times.
fn told(server: &Server, token: &str, answer: &Answer) -> Value {
    assert_eq!(answer.status, 201, "{}", answer.text);
    let changes = answer.json["plan"]["changes"].as_array().unwrap().iter();
    let changes = changes.map(|it| json!([it["effect"], it["notes"], it["calls"]])).collect::<Vec<Value>>();
    let revision = server.store().snapshot().revision;
    let history = server.call_as(token, "GET", &format!("/history/{revision}"), None);
    assert_eq!(history.status, 200, "{}", history.text);
    let resources = history.json["resources"].as_array().unwrap().iter();
    let resources = resources.map(|it| json!([it["before"], it["after"]])).collect::<Vec<Value>>();
    assert!(!resources.is_empty(), "{}", history.text);
    json!({"changes": changes, "behaviour": answer.json["plan"]["behaviour"], "history": resources})
}

fn team_applies(server: &Server, team: &str, text: &str) -> Value {
    let mut body = reconciliation("docs", text, false);
    body.as_mut().unwrap()["behaviour"] = json!(true);
    told(server, team, &server.call_as(team, "POST", "/reconciliations", body))
}

/// Makes the route one that an earlier version has synced.
fn forget_record(server: &Server) {
    let state = server.store().snapshot();
    let route = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let claim = Claim { required_secrets: None, ..Claim::clone(route.claim.as_ref().unwrap()) };
    let operations = vec![Operation::Claim { key: route.key.clone(), claim: Some(Arc::new(claim)) }];
    server.store().commit(Commit { base: None, operations, author: Author::Local, at: now() }).unwrap();
}

#[test]
fn neither_a_sync_nor_a_rollback_tells_whether_a_guess_is_right() {
    let (server, required, team) = start();
    let all = GUESSES.map(|guess| {
        let applied = team_applies(&server, &team, &own(guess));
        let back = json!({"to": required, "source": "docs", "behaviour": true});
        let back = told(&server, &team, &server.call_as(&team, "POST", "/rollbacks", Some(back)));
        [applied, back]
    });
    assert_eq!(all[0], all[1]);
    for told in all.iter().flatten() {
        let text = told.to_string();
        assert!(text.contains("is set in any case") && text.contains("(secret, changed)"), "{text}");
    }
}

#[test]
fn a_sync_that_brings_a_required_secret_does_not_compare_it_with_the_one_before() {
    let (server, _, team) = start();
    let all = GUESSES.map(|guess| {
        apply(&server, "docs", &own(guess));
        apply(&server, "shop", SHOP);
        let told = team_applies(&server, &team, DOCS);
        apply(&server, "shop", &without_requirement());
        told
    });
    assert_eq!(all[0], all[1]);
}

#[test]
fn a_request_cannot_replace_a_secret_of_the_edge_that_its_caller_does_not_see() {
    let (server, _, team) = start();
    let route = route_of(&server, "shop");
    let revision = server.store().snapshot().revision;
    for guess in GUESSES {
        let module = json!({"provider": "github", "secret": guess});
        let put = server.call_as(&team, "PUT", &format!("{route}/webhook_verification"), Some(module.clone()));
        let patch = server.call_as(&team, "PATCH", &route, Some(json!({"webhook_verification": module})));
        for answer in [put, patch] {
            refused(&answer, 409, &["REQUIRED_MODULE", "has or may have a secret of its edge"]);
        }
    }
    assert_eq!(server.store().snapshot().revision, revision);
    let own = json!({"issuer": "https://login.example.com", "client_id": "docs", "client_secret": "docs-secret-3"});
    let put = server.call_as(&team, "PUT", &format!("{route}/oidc"), Some(own));
    assert_eq!(put.status, 200, "{}", put.text);
}

#[test]
fn a_secret_without_a_record_counts_as_one_of_the_edge_until_the_next_sync() {
    let (server, required, team) = start();
    let route = route_of(&server, "shop");
    let secrets = |sources: &[&str]| secrets_of(&server, &route, json!({"apply": sources}));
    let all = GUESSES.map(|guess| {
        forget_record(&server);
        assert_eq!(secrets(&["docs"]), [MASK; 3]);
        assert_eq!(secrets(&["shop", "docs"]), ["shop-secret-1", "shop-secret-1", "docs-secret-1"]);
        let told = team_applies(&server, &team, &own(guess));
        assert_eq!(secrets(&["docs"]), [guess, guess, "docs-secret-1"]);
        let back = json!({"to": required, "source": "docs"});
        assert_eq!(server.call("POST", "/rollbacks", Some(back)).status, 201);
        told
    });
    assert_eq!(all[0], all[1]);
}

#[test]
fn a_transfer_from_the_owner_of_the_edge_leaves_the_required_secrets_its_own() {
    let server = Server::start();
    apply(&server, "shop", &format!("{SHOP}---\n{DOCS}"));
    let moved = json!({"from": "shop", "to": "docs", "resources": ["HttpsEdgeRoute/shop/help"]});
    let answer = server.call("POST", "/transfers", Some(moved));
    assert_eq!(answer.status, 201, "{}", answer.text);
    apply(&server, "shop", &without_requirement());
    let route = route_of(&server, "shop");
    let secrets = |source: &str| secrets_of(&server, &route, json!({"apply": [source]}));
    assert_eq!(secrets("docs"), [MASK, MASK, "docs-secret-1"]);
    assert_eq!(secrets("*"), ["shop-secret-1", "shop-secret-1", "docs-secret-1"]);
}

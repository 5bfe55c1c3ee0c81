//! Secrets that an edge requires of the routes of another team (D103): what that team can find out about them.

use std::sync::Arc;

use edgewright::resources::{Author, Claim, Kind, MASK, Operation};
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
    server.store().commit(Author::Local, operations).unwrap();
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
fn a_plan_compares_no_secret_without_a_record() {
    let (server, _, team) = start();
    forget_record(&server);
    let planned = GUESSES.map(|guess| {
        let planned = server.call_as(&team, "POST", "/reconciliations", reconciliation("docs", &own(guess), true));
        assert!(planned.text.contains("UNCOMPARED_SECRETS"), "{}", planned.text);
        planned
    });
    assert_eq!(planned[0].json["plan"], planned[1].json["plan"]);
    // What was planned is applied.
    let mut body = reconciliation("docs", &own(GUESSES[1]), false);
    body.as_mut().unwrap()["expect"] = planned[1].json["outcome"].clone();
    let applied = server.call_as(&team, "POST", "/reconciliations", body);
    assert_eq!(applied.status, 201, "{}", applied.text);
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

#[test]
fn an_edge_that_waits_for_its_transfer_requires_what_it_did() {
    let server = Server::start();
    apply(&server, "shop", SHOP);
    apply(&server, "docs", DOCS);
    let (_, team) = key(&server, json!({"apply": ["docs"]}));
    let route = route_of(&server, "shop");
    let edge = |marker: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop, {marker}}}\nspec:\n  \
             hostports: ['shop.example.com:443']\n"
        )
    };
    let beside = |marker: &str, secret: &str| format!("{}---\n{}", edge(marker), own(secret));
    let inside = |secret: &str| {
        let module = format!("webhook_verification: {{provider: github, secret: {secret}}}");
        let route = format!("match_type: path_prefix, match: /docs/, backend: {{backend_id: bkd_1}}, {module}");
        format!("{}  routes:\n    - {{name: help, {route}}}\n", edge("transfer_from: shop"))
    };
    let declared = [
        GUESSES.map(|guess| beside("transfer_from: shop", guess)),
        GUESSES.map(|guess| beside("transfer_to: shop", guess)),
        GUESSES.map(inside),
    ];
    for texts in declared {
        let [right, wrong] = texts.each_ref().map(|text| {
            let shown = server.call_as(&team, "POST", "/reconciliations", reconciliation("docs", text, true));
            assert_eq!(shown.status, 200, "{}", shown.text);
            assert!(shown.text.contains("TRANSFER_PENDING"), "{}", shown.text);
            shown.json["plan"].clone()
        });
        assert_eq!(right, wrong);
        let made = server.call_as(&team, "POST", "/reconciliations", reconciliation("docs", &texts[1], false));
        assert!(made.status < 300, "{}", made.text);
        assert_eq!(secrets_of(&server, &route, json!({"apply": ["*"]}))[0], "shop-secret-1");
        assert_eq!(secrets_of(&server, &route, json!({"apply": ["docs"]}))[0], MASK);
    }
}

#[test]
fn a_rollback_brings_back_the_secret_that_the_edge_requires_now() {
    let server = Server::start();
    let revision = || server.store().snapshot().revision;
    apply(&server, "shop", &without_requirement());
    apply(&server, "docs", &own("docs-secret-2"));
    let with_own = revision();
    let (_, team) = key(&server, json!({"apply": ["docs"]}));
    let route = route_of(&server, "shop");
    let secrets = |source: &str| secrets_of(&server, &route, json!({"apply": [source]}));
    apply(&server, "shop", SHOP);
    let required = revision();
    apply(&server, "docs", DOCS);
    let with_former = revision();
    // Of everything, to when the route still had its own secret.
    let back = server.call_as(&team, "POST", "/rollbacks", Some(json!({"to": required})));
    assert!(back.status < 300, "{}", back.text);
    assert_eq!(secrets("*")[0], "shop-secret-1");
    apply(&server, "shop", &SHOP.replace("shop-secret-1", "shop-secret-2"));
    let (without_login, _) = DOCS.split_once("  oidc").unwrap();
    for to in [with_own, with_former] {
        for token in [&team, &server.admin] {
            apply(&server, "docs", without_login);
            let back = json!({"to": to, "source": "docs"});
            let answer = server.call_as(token, "POST", "/rollbacks", Some(back));
            assert_eq!(answer.status, 201, "{}", answer.text);
            assert_eq!(secrets("*"), ["shop-secret-2", "shop-secret-2", "docs-secret-1"]);
            assert_eq!(secrets("docs"), [MASK, MASK, "docs-secret-1"]);
        }
    }
}

#[test]
fn the_owner_of_an_edge_is_told_which_routes_do_not_have_its_secret_yet() {
    let server = Server::start();
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    // A guess that a planner sends makes no difference.
    let is_told = |token: &str, text: &str| {
        let shown = server.call_as(token, "POST", "/reconciliations", reconciliation("shop", text, true));
        assert_eq!(shown.status, 200, "{}", shown.text);
        shown.text.contains("do not have its required modules yet: `help` of source `docs`")
    };
    let rotated = SHOP.replace("shop-secret-1", "shop-secret-2");
    let told = |text: &str| {
        let all = ["shop-secret-1", "shop-secret-2", "shop-secret-3"];
        let all = all.map(|guess| is_told(&planner, &SHOP.replace("shop-secret-1", guess)));
        assert_eq!(all, [is_told(&server.admin, text); 3]);
        all[0]
    };
    apply(&server, "shop", &without_requirement());
    apply(&server, "docs", &own("docs-secret-2"));
    apply(&server, "shop", SHOP);
    assert!(told(SHOP), "the route has a secret of its own");
    apply(&server, "docs", DOCS);
    assert!(!told(SHOP));
    apply(&server, "shop", &rotated);
    assert!(told(&rotated), "the route has the former secret");
    apply(&server, "docs", DOCS);
    assert!(!told(&rotated));
}

#[test]
fn a_secret_that_no_source_owns_is_not_replaced_by_a_key_that_does_not_see_it() {
    let server = Server::start();
    let edge = server.call("POST", "/edges/https", Some(json!({"hostports": ["free.example.com:443"]})));
    assert_eq!(edge.status, 201, "{}", edge.text);
    let module = |secret: &str| json!({"provider": "github", "secret": secret});
    let body = json!({"match_type": "path_prefix", "match": "/", "webhook_verification": module(GUESSES[0])});
    let routes = format!("/edges/https/{}/routes", edge.str("/id"));
    let made = server.call("POST", &routes, Some(body));
    assert_eq!(made.status, 201, "{}", made.text);
    let route = format!("{routes}/{}", made.str("/id"));
    let path = format!("{route}/webhook_verification");
    let (_, token) = key(&server, json!({"kinds": ["HttpsEdgeRoute"]}));
    let revision = server.store().snapshot().revision;
    for guess in GUESSES {
        let put = server.call_as(&token, "PUT", &path, Some(module(guess)));
        let patch = server.call_as(&token, "PATCH", &route, Some(json!({"webhook_verification": module(guess)})));
        for answer in [put, patch] {
            refused(&answer, 403, &["needs `secrets` to replace `webhook_verification`"]);
        }
    }
    assert_eq!(server.store().snapshot().revision, revision);
    // What compares no secrets is allowed.
    assert_eq!(server.call_as(&token, "PATCH", &route, Some(json!({"description": "x"}))).status, 200);
    assert_eq!(server.call_as(&token, "DELETE", &path, None).status, 204);
    assert_eq!(server.call_as(&token, "PUT", &path, Some(module(GUESSES[1]))).status, 200);
    let (_, seeing) = key(&server, json!({"kinds": ["HttpsEdgeRoute"], "secrets": true}));
    assert_eq!(server.call_as(&seeing, "PUT", &path, Some(module(GUESSES[0]))).status, 200);
}

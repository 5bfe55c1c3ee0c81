//! What a scope limits: sources, kinds, secrets, time and addresses, and what its key may grant.

use std::time::Duration;

use edgewright::resources::MASK;
use serde_json::{Value, json};

use super::{key, manifest, reconciliation, refused, route_of, start};
use crate::support::program::within;
use crate::support::server::{Server, usual_headers};

#[test]
fn nobody_empties_the_source_of_another_team() {
    let server = start();
    let (id, token) = key(&server, json!({"apply": ["shop*"]}));
    let post = |path: &str, body: Option<Value>| server.call_as(&token, "POST", path, body);
    let words = [id.as_str(), "apply source `identity`", "ask an admin: usr_admin"];
    refused(&post("/reconciliations", reconciliation("identity", &manifest("new", "x-1", "x"), false)), 403, &words);
    let edge = route_of(&server, "identity");
    let edge = edge.split("/routes").next().unwrap_or_default().to_owned();
    refused(&server.call_as(&token, "DELETE", &edge, None), 403, &["delete resources of source `identity`"]);
    let body = Some(json!({"description": "mine"}));
    refused(&server.call_as(&token, "PATCH", &edge, body), 403, &["update resources of source `identity`"]);
    refused(&post("/rollbacks", Some(json!({"to": 2}))), 403, &["identity"]);
    refused(&post("/sources/identity/suspend", Some(json!({"reason": "x"}))), 403, &["identity"]);
    refused(&post("/ip_restrictions", Some(json!({"type": "api"}))), 403, &["IpRestriction", "no source owns"]);
    // What is its own works.
    let changed = post("/reconciliations", reconciliation("shop", &manifest("shop", "shop-secret-2", "second"), false));
    assert_eq!(changed.status, 201, "{}", changed.text);
    let own = route_of(&server, "shop");
    assert_eq!(server.call_as(&token, "PATCH", &own, Some(json!({"description": "x"}))).status, 200);
}

#[test]
fn secrets_of_other_sources_are_masked() {
    let server = start();
    let (_, token) = key(&server, json!({"apply": ["shop"]}));
    let (_, seeing) = key(&server, json!({"plan": ["shop"], "secrets": true}));
    for (source, secret) in [("shop", "shop-secret-1"), ("identity", "identity-secret-1")] {
        let route = route_of(&server, source);
        let shown = if source == "shop" { secret } else { MASK };
        let edge = route.split("/routes").next().unwrap_or_default();
        for (path, place) in [
            (route.clone(), "/webhook_verification/secret"),
            (format!("{route}/webhook_verification"), "/secret"),
            (edge.to_owned(), "/routes/0/webhook_verification/secret"),
            (format!("{edge}/routes"), "/routes/0/webhook_verification/secret"),
            (format!("/edges/https?source={source}"), "/https_edges/0/routes/0/webhook_verification/secret"),
        ] {
            assert_eq!(server.call_as(&token, "GET", &path, None).str(place), shown, "{path}");
            assert_eq!(server.call_as(&seeing, "GET", &path, None).str(place), secret, "{path}");
            assert_eq!(server.call_as(&server.viewer, "GET", &path, None).str(place), MASK, "{path}");
        }
        let past = server.call_as(&token, "GET", &format!("{route}?at=3"), None);
        assert_eq!(past.str("/webhook_verification/secret"), MASK, "earlier states: {}", past.text);
    }
    // A route of another owner in an edge of its own.
    let own = route_of(&server, "shop");
    let edge = own.split("/routes").next().unwrap_or_default();
    let foreign = json!({
        "match_type": "path_prefix", "match": "/admin",
        "webhook_verification": {"provider": "github", "secret": "admin-secret"},
    });
    assert_eq!(server.call("POST", &format!("{edge}/routes"), Some(foreign)).status, 201);
    let shown = server.call_as(&token, "GET", edge, None);
    assert_eq!(shown.status, 200);
    assert!(!shown.text.contains("admin-secret"), "{}", shown.text);
}

#[test]
fn a_key_expires_and_is_bound_to_addresses() {
    let server = start();
    let get = |scope: Value| {
        let (_, token) = key(&server, scope);
        server.call_as(&token, "GET", "/edges/https", None)
    };
    assert_eq!(get(json!({"expires_at": "2999-01-01T00:00:00Z"})).status, 200);
    refused(&get(json!({"addresses": ["192.0.2.0/24", "2001:db8::/32"]})), 403, &["127.0.0.1", "addresses"]);
    assert_eq!(get(json!({"addresses": ["127.0.0.0/8", "::1"]})).status, 200);
    let (_, token) = key(&server, json!({"addresses": ["192.0.2.0/24"]}));
    // Who may not use the key learns nothing of the store.
    let mut headers = usual_headers(&token);
    headers.push(("If-Revision-At-Least".into(), "1000000".into()));
    let told = server.send("GET", "/edges/https", &headers, None);
    refused(&told, 403, &["addresses"]);
    // The header is the server's own.
    let mut headers = usual_headers(&token);
    headers.push(("Edgewright-Client-Address".into(), "192.0.2.7".into()));
    assert_eq!(server.send("GET", "/edges/https", &headers, None).status, 403);
}

#[test]
fn only_a_new_expiry_must_be_in_the_future() {
    let server = start();
    let soon = (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2)).to_string();
    let (id, token) = key(&server, json!({"apply": ["shop"], "expires_at": soon}));
    let expired = within(Duration::from_secs(20), "the end of a key", || {
        let answer = server.call_as(&token, "GET", "/edges/https", None);
        (answer.status != 200).then_some(answer)
    });
    refused(&expired, 401, &["expired at ", &soon]);
    let path = format!("/api_keys/{id}");
    let patch = |body: Value| server.call("PATCH", &path, Some(body));
    // What expired since can be changed otherwise.
    assert_eq!(patch(json!({"description": "old"})).status, 200);
    assert_eq!(patch(json!({"scope": {"apply": ["docs"], "expires_at": soon}})).status, 200);
    let past = json!({"owner_id": "bot_team", "scope": {"expires_at": "2020-01-01T00:00:00Z"}});
    for answer in [patch(json!({"scope": past["scope"]})), server.call("POST", "/api_keys", Some(past.clone()))] {
        refused(&answer, 400, &["OUT_OF_RANGE", "/scope/expires_at", "is in the past (found `2020-01-01T00:00:00Z`)"]);
    }
    let manifest = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: ci}\nspec:\n  \
                    scope: {apply: [shop], expires_at: '2020-01-01T00:00:00Z'}\n  token_file: ../ci.token\n";
    let planned = server.call("POST", "/reconciliations", reconciliation("keys", manifest, true));
    assert_eq!(planned.status, 200, "a sync goes on after the end of a key: {}", planned.text);
}

#[test]
fn the_scope_of_a_gateway_lets_it_read() {
    let server = start();
    let create = |scope: Value| {
        let body = json!({"owner_id": "bot_gateway", "scope": scope});
        server.call("POST", "/api_keys?owner_role=gateway", Some(body))
    };
    refused(&create(json!({"apply": ["shop"]})), 400, &["NOT_ALLOWED", "/scope", "of all sources", "set `secrets`"]);
    assert_eq!(create(json!({"secrets": true})).status, 201);
    let body = json!({"owner_id": "bot_gateway", "scope": {"apply": ["shop"]}});
    refused(&server.call("POST", "/api_keys", Some(body)), 400, &["NOT_ALLOWED", "/scope"]);
}

#[test]
fn a_key_grants_no_more_than_it_has() {
    let server = start();
    let (id, token) =
        key(&server, json!({"apply": ["shop"], "kinds": ["ApiKey"], "expires_at": "2999-01-01T00:00:00Z"}));
    let own = format!("/api_keys/{id}");
    let scope = |changes: Value| {
        let mut scope = json!({"apply": ["shop"], "kinds": ["ApiKey"], "expires_at": "2999-01-01T00:00:00Z"});
        for (field, value) in changes.as_object().into_iter().flatten() {
            scope[field] = value.clone();
        }
        json!({"scope": scope})
    };
    for (changes, field) in [
        (json!({"apply": ["*"]}), "apply"),
        (json!({"plan": ["identity"]}), "plan"),
        (json!({"kinds": ["*"]}), "kinds"),
        (json!({"secrets": true}), "secrets"),
        (json!({"expires_at": ""}), "expires_at"),
    ] {
        let body = Some(scope(changes));
        refused(&server.call_as(&token, "PATCH", &own, body.clone()), 403, &["/scope", field]);
        refused(&server.call_as(&token, "POST", "/api_keys", body), 403, &["/scope", field]);
    }
    refused(&server.call_as(&token, "POST", "/api_keys", Some(json!({}))), 403, &["no scope"]);
    refused(&server.call_as(&token, "POST", "/api_keys", Some(json!({"owner_id": "usr_new"}))), 403, &["admin"]);
    let admins = format!("/api_keys/{}", server.key_ids[0]);
    refused(&server.call_as(&token, "DELETE", &admins, None), 403, &["another owner"]);
    // A narrower key is fine, and so is limiting itself.
    let made = server.call_as(&token, "POST", "/api_keys", Some(scope(json!({"kinds": []}))));
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(server.call_as(&token, "PATCH", &own, Some(scope(json!({"plan": ["shop"]})))).status, 200);
    // An admin's key is limited as well, and the last admin key without a scope stays one.
    let body = json!({"scope": {"apply": ["*"], "kinds": ["*"], "secrets": true}});
    let limited = server.call("POST", "/api_keys", Some(body.clone()));
    let limited = limited.str("/token");
    refused(&server.call_as(limited, "GET", "/owners", None), 403, &["only admins", "no scope"]);
    refused(&server.call("PATCH", &admins, Some(body)), 409, &["LAST_ADMIN"]);
}

#[test]
fn a_scope_is_validated_shown_and_absent_without_one() {
    let server = start();
    let bad = json!({"scope": {
        "role": "gateway", "plan": ["a*b"], "apply": [""], "kinds": ["TlsCertificat"], "expires_at": "soon",
        "addresses": ["10.0.0.1/8"], "hosts": ["docs.example.com:443"],
    }});
    let answer = server.call("POST", "/api_keys", Some(bad));
    let fields = ["/scope/role", "/scope/plan/0", "/scope/apply/0", "/scope/kinds/0", "/scope/expires_at"];
    refused(&answer, 400, &fields);
    refused(&answer, 400, &["/scope/addresses/0", "/scope/hosts/0", "did you mean `TlsCertificate`?"]);
    refused(&server.call("POST", "/api_keys", Some(json!({"scope": {"sources": []}}))), 400, &["/scope/sources"]);
    let (id, _) = key(&server, json!({"apply": ["shop"]}));
    let shown = server.call("GET", &format!("/api_keys/{id}"), None);
    assert_eq!(shown.str("/scope/apply/0"), "shop");
    let plain = server.call("GET", &format!("/api_keys/{}", server.key_ids[0]), None);
    assert!(!plain.text.contains("scope"), "{}", plain.text);
}

/// An edge that requires a module with a secret, and delegates a path.
pub(super) const SHOP: &str = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: guard}\nspec:\n  \
            webhook_verification: {provider: github, secret: shop-secret-1}\n---\n\
            apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  \
            hostports: ['shop.example.com:443']\n  delegates_to: [{source: docs, path_prefix: /docs/}]\n  \
            required_modules: [guard]\n";
/// A route on it, with a secret of its own.
pub(super) const DOCS: &str = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: help}\nspec:\n  edge: shop\n  \
            match_type: path_prefix\n  match: /docs/\n  backend: {backend_id: bkd_1}\n  \
            oidc: {issuer: 'https://login.example.com', client_id: docs, client_secret: docs-secret-1}\n";

/// The secrets of the route that a key with a scope sees: those of the required module, twice, and its own one.
pub(super) fn secrets_of(server: &Server, route: &str, scope: Value) -> [String; 3] {
    let (_, token) = key(server, scope);
    let get = |path: &str, place: &str| server.call_as(&token, "GET", path, None).str(place).to_owned();
    [
        get(route, "/webhook_verification/secret"),
        get(&format!("{route}/webhook_verification"), "/secret"),
        get(&format!("{route}/oidc"), "/client_secret"),
    ]
}

#[test]
fn the_secrets_of_required_modules_are_those_of_the_edge() {
    let server = Server::start();
    for (source, text) in [("shop", SHOP), ("docs", DOCS)] {
        let made = server.call("POST", "/reconciliations", reconciliation(source, text, false));
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let route = route_of(&server, "shop");
    let secrets = |scope: Value| secrets_of(&server, &route, scope);
    assert_eq!(secrets(json!({"apply": ["docs"]})), [MASK, MASK, "docs-secret-1"]);
    assert_eq!(secrets(json!({"apply": ["shop"]})), [MASK; 3]);
    assert_eq!(secrets(json!({"apply": ["shop", "docs"]})), ["shop-secret-1", "shop-secret-1", "docs-secret-1"]);
    // A write does not confirm a guess, either.
    let (_, token) = key(&server, json!({"apply": ["docs"]}));
    for secret in ["shop-secret-1", "shop-secret-2"] {
        let body = Some(json!({"provider": "github", "secret": secret}));
        let put = server.call_as(&token, "PUT", &format!("{route}/webhook_verification"), body);
        refused(&put, 409, &["REQUIRED_MODULE", "omit the module"]);
    }
}

#[test]
fn the_secrets_of_an_edge_stay_its_own_when_it_requires_them_no_longer() {
    let server = Server::start();
    let apply = |source: &str, text: &str| {
        let made = server.call("POST", "/reconciliations", reconciliation(source, text, false));
        assert_eq!(made.status, 201, "{}", made.text);
    };
    apply("shop", SHOP);
    apply("docs", DOCS);
    let required = server.store().snapshot().revision;
    let route = route_of(&server, "shop");
    apply("shop", &SHOP.replace("  required_modules: [guard]\n", ""));
    let secrets = |source: &str| secrets_of(&server, &route, json!({"apply": [source]}));
    // The team's route still has the module, as long as the team syncs nothing.
    assert_eq!(secrets("docs"), [MASK, MASK, "docs-secret-1"]);
    assert_eq!(secrets("*"), ["shop-secret-1", "shop-secret-1", "docs-secret-1"]);
    let (_, team) = key(&server, json!({"apply": ["docs"]}));
    let edge = route.split("/routes").next().unwrap_or_default();
    for path in [edge.to_owned(), format!("{edge}/routes"), "/edges/https".to_owned()] {
        let shown = server.call_as(&team, "GET", &path, None);
        assert!(shown.status == 200 && !shown.text.contains("shop-secret-1"), "{}", shown.text);
    }
    // No plan confirms a guess of it, and what was planned is applied.
    let own = |secret: &str| format!("{DOCS}  webhook_verification: {{provider: github, secret: {secret}}}\n");
    let planned = |secret: &str| {
        let shown = server.call_as(&team, "POST", "/reconciliations", reconciliation("docs", &own(secret), true));
        assert_eq!(shown.status, 200, "{}", shown.text);
        shown
    };
    let [right, wrong] = ["shop-secret-1", "docs-secret-2"].map(planned);
    assert_eq!(right.json["plan"], wrong.json["plan"]);
    // A rollback brings back the module, and not the right to see its secret.
    apply("docs", DOCS);
    assert_eq!(secrets("*")[0], "");
    let back = server.call_as(&team, "POST", "/rollbacks", Some(json!({"to": required, "source": "docs"})));
    assert_eq!(back.status, 201, "{}", back.text);
    assert_eq!(secrets("docs"), [MASK, MASK, "docs-secret-1"]);
    assert_eq!(secrets("*")[0], "shop-secret-1");
    // Nor does another source of the team.
    let moved = json!({"from": "docs", "to": "guides", "all": true});
    assert_eq!(server.call("POST", "/transfers", Some(moved)).status, 201);
    assert_eq!(secrets("guides"), [MASK, MASK, "docs-secret-1"]);
    let moved = json!({"from": "guides", "to": "docs", "all": true});
    assert_eq!(server.call("POST", "/transfers", Some(moved)).status, 201);
    // A secret of its own is seen again.
    let reviewed = planned("docs-secret-2");
    let mut body = reconciliation("docs", &own("docs-secret-2"), false);
    body.as_mut().unwrap()["expect"] = reviewed.json["outcome"].clone();
    let made = server.call_as(&team, "POST", "/reconciliations", body);
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(secrets("docs"), ["docs-secret-2", "docs-secret-2", "docs-secret-1"]);
}

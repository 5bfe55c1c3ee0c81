//! API keys with a scope (D101): what a stolen or careless key can do.

use edgewright::resources::MASK;
use serde_json::{Value, json};

use crate::support::{
    program::{Folder, Run, finish},
    server::{Answer, Server},
};

/// The manifest of an edge with a route that has a secret.
pub(crate) fn manifest(name: &str, secret: &str, description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  \
         hostports: ['{name}.example.com:443']\n  routes:\n    - name: hook\n      match_type: path_prefix\n      \
         match: /\n      description: {description}\n      backend: {{backend_id: bkd_1}}\n      \
         webhook_verification: {{provider: github, secret: {secret}}}\n"
    )
}

pub(crate) fn reconciliation(source: &str, text: &str, dry_run: bool) -> Option<Value> {
    let files = json!([{"name": "edge.yaml", "text": text}]);
    Some(json!({"source": source, "files": files, "dry_run": dry_run, "max_deletes": "100%"}))
}

/// A server with the sources `shop` and `identity`.
pub(crate) fn start() -> Server {
    let server = Server::start();
    for (source, secret) in [("shop", "shop-secret-1"), ("identity", "identity-secret-1")] {
        let body = reconciliation(source, &manifest(source, secret, "first"), false);
        let made = server.call("POST", "/reconciliations", body);
        assert_eq!(made.status, 201, "{}", made.text);
    }
    server
}

/// A new key with a scope, of an owner that becomes an editor: its id and token.
pub(crate) fn key(server: &Server, scope: Value) -> (String, String) {
    let made = server.call("POST", "/api_keys", Some(json!({"owner_id": "bot_team", "scope": scope})));
    assert_eq!(made.status, 201, "{}", made.text);
    (made.str("/id").to_owned(), made.str("/token").to_owned())
}

#[track_caller]
pub(crate) fn refused(answer: &Answer, status: u16, words: &[&str]) {
    assert_eq!(answer.status, status, "{}", answer.text);
    for word in words {
        assert!(answer.text.contains(word), "`{word}` is missing: {}", answer.text);
    }
}

/// The path of the route of a source.
fn route_of(server: &Server, source: &str) -> String {
    let list = server.call("GET", &format!("/edges/https?source={source}"), None);
    let edge = list.str("/https_edges/0/id").to_owned();
    let routes = server.call("GET", &format!("/edges/https/{edge}/routes"), None);
    format!("/edges/https/{edge}/routes/{}", routes.str("/routes/0/id"))
}

#[test]
fn a_stolen_planner_key_changes_nothing_and_learns_no_secret() {
    let server = start();
    let (_, token) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let post = |path: &str, body: Option<Value>| server.call_as(&token, "POST", path, body);
    let plan = |secret: &str, description: &str| {
        post("/reconciliations", reconciliation("shop", &manifest("shop", secret, description), true))
    };
    for description in ["first", "second"] {
        let right = plan("shop-secret-1", description);
        assert_eq!(right.status, 200, "{}", right.text);
        for guess in ["shop-secret-2", "shop-secret-3"] {
            assert_eq!(plan(guess, description).text, right.text, "{description}");
        }
    }
    // What the team's pipeline shows of the same plan does not confirm a guess, either.
    let body = reconciliation("shop", &manifest("shop", "shop-secret-1", "second"), true);
    let shown = server.call("POST", "/reconciliations", body);
    assert_ne!(plan("shop-secret-1", "second").str("/outcome"), shown.str("/outcome"));

    let text = manifest("shop", "shop-secret-2", "second");
    refused(&post("/reconciliations", reconciliation("shop", &text, false)), 403, &["planner", "editor"]);
    refused(&post("/reconciliations", reconciliation("identity", &text, true)), 403, &["`identity`", "usr_admin"]);
    refused(&post("/rollbacks", Some(json!({"to": 2}))), 403, &["planner"]);
    refused(&post("/rollbacks", Some(json!({"to": 2, "dry_run": true}))), 403, &["every source", "with `--source`"]);
    refused(&post("/api_keys", Some(json!({}))), 403, &["planner"]);
    for source in ["shop", "identity"] {
        let route = server.call_as(&token, "GET", &route_of(&server, source), None);
        assert_eq!(route.str("/webhook_verification/secret"), MASK);
    }
}

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
    refused(&get(json!({"expires_at": "2020-01-01T00:00:00Z"})), 401, &["expired at 2020-01-01T00:00:00Z"]);
    assert_eq!(get(json!({"expires_at": "2999-01-01T00:00:00Z"})).status, 200);
    refused(&get(json!({"addresses": ["192.0.2.0/24", "2001:db8::/32"]})), 403, &["127.0.0.1", "addresses"]);
    assert_eq!(get(json!({"addresses": ["127.0.0.0/8", "::1"]})).status, 200);
    // The header is the server's own.
    let (_, token) = key(&server, json!({"addresses": ["192.0.2.0/24"]}));
    let mut headers = crate::support::server::usual_headers(&token);
    headers.push(("Edgewright-Client-Address".into(), "192.0.2.7".into()));
    assert_eq!(server.send("GET", "/edges/https", &headers, None).status, 403);
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

#[test]
fn the_command_line_sets_scopes_and_counts_keys_without_limits() {
    let folder = Folder::new();
    let limited = folder.ok(
        "keys create --owner bot_shop --apply shop --kind TlsCertificate --action update --host *.shop.example.com",
    );
    assert!(!limited.err.contains("every source"), "{}", limited.err);
    let quiet = folder.ok("keys list");
    assert!(
        quiet.out.contains("  apply=shop kinds=TlsCertificate actions=update hosts=*.shop.example.com  "),
        "{}",
        quiet.out
    );
    assert!(!quiet.err.contains("every source"), "{}", quiet.err);
    let wide = folder.ok("keys create --owner bot_shop");
    assert!(wide.err.contains("--apply SOURCE"), "{}", wide.err);
    for command in ["keys list", "owners list"] {
        let run = folder.ok(command);
        assert!(run.err.contains("1 API key may apply every source, 1 without"), "{command}: {}", run.err);
    }
    let serve = folder.serve("");
    for line in ["keys list", "owners list"] {
        let mut command = folder.command(line);
        let server = format!("http://{}", serve.address);
        command.env("EDGEWRIGHT_SERVER", server).env("EDGEWRIGHT_TOKEN", &serve.token).env_remove("EDGEWRIGHT_STORE");
        let run = finish(command, "");
        assert!(run.err.contains("2 API keys may apply every source, 1 without"), "{line}: {}", run.all());
    }
    drop(serve);
    for (options, words) in [
        ("--apply team*shop", "`*` can only end the name of a source"),
        ("--kind TlsCertificat", "did you mean `TlsCertificate`?"),
        ("--expires-at soon", "`expires_at` must be a time"),
        ("--address 10.0.0.1/8", "is not a network"),
        ("--host docs-*", "`docs-*` is not a host"),
        ("--scope-role viewer --secrets", "`secrets` cannot be true"),
    ] {
        let refused = folder.run(&format!("keys create {options}"));
        assert!(refused.code != 0 && refused.err.contains(words), "{options}: {}", refused.all());
    }
}

#[test]
fn the_secrets_of_required_modules_are_those_of_the_edge() {
    let server = Server::start();
    let shop = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: guard}\nspec:\n  \
                webhook_verification: {provider: github, secret: shop-secret-1}\n---\n\
                apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  \
                hostports: ['shop.example.com:443']\n  delegates_to: [{source: docs, path_prefix: /docs/}]\n  \
                required_modules: [guard]\n";
    let docs = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: help}\nspec:\n  edge: shop\n  \
                match_type: path_prefix\n  match: /docs/\n  backend: {backend_id: bkd_1}\n  \
                oidc: {issuer: 'https://login.example.com', client_id: docs, client_secret: docs-secret-1}\n";
    for (source, text) in [("shop", shop), ("docs", docs)] {
        let made = server.call("POST", "/reconciliations", reconciliation(source, text, false));
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let route = route_of(&server, "shop");
    let secrets = |scope: Value| {
        let (_, token) = key(&server, scope);
        let get = |path: String, place: &str| server.call_as(&token, "GET", &path, None).str(place).to_owned();
        [
            get(route.clone(), "/webhook_verification/secret"),
            get(format!("{route}/webhook_verification"), "/secret"),
            get(format!("{route}/oidc"), "/client_secret"),
        ]
    };
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
fn what_a_planner_reviewed_is_applied_with_another_key() {
    let server = start();
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let (_, applier) = key(&server, json!({"apply": ["shop"]}));
    let post = |token: &str, text: &str, dry_run: bool, expect: &str| {
        let mut body = reconciliation("shop", text, dry_run).unwrap_or_default();
        body["expect"] = json!(expect);
        server.call_as(token, "POST", "/reconciliations", Some(body))
    };
    let text = manifest("shop", "shop-secret-2", "second");
    let planned = post(&planner, &text, true, "");
    let uncompared = "values not compared: 1 secret field of HttpsEdgeRoute shop/hook";
    assert!(planned.text.contains("ERR_EDGEWRIGHT_UNCOMPARED_SECRETS"), "{}", planned.text);
    assert!(planned.text.contains(uncompared), "{}", planned.text);
    let reviewed = planned.str("/outcome").to_owned();
    assert!(reviewed.starts_with("masked:"), "{reviewed}");
    let now = post(&applier, &text, true, &reviewed);
    assert_eq!(now.str("/outcome"), reviewed, "{}", now.text);
    assert!(now.text.contains("ERR_EDGEWRIGHT_UNREVIEWED_SECRETS"), "{}", now.text);
    // Anything else that differs from the review is stale.
    let other = post(&applier, &manifest("shop", "shop-secret-2", "third"), false, &reviewed);
    refused(&other, 409, &["STALE", "/expect"]);
    let applied = post(&applier, &text, false, &reviewed);
    assert_eq!(applied.status, 201, "{}", applied.text);
    assert!(applied.text.contains("ERR_EDGEWRIGHT_UNREVIEWED_SECRETS"), "{}", applied.text);
    let route = server.call("GET", &route_of(&server, "shop"), None);
    assert_eq!(route.str("/webhook_verification/secret"), "shop-secret-2");
    assert_eq!(route.str("/description"), "second");
}

#[test]
fn everybody_is_told_of_drift_and_only_that_of_secrets_is_not_compared() {
    let server = start();
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let changed = json!({
        "description": "by hand", "metadata": "by hand",
        "webhook_verification": {"provider": "github", "secret": "by-hand-secret"},
    });
    let patched = server.call("PATCH", &route_of(&server, "shop"), Some(changed));
    assert_eq!(patched.status, 200, "{}", patched.text);
    let plan = |token: &str, secret: &str, description: &str| {
        let body = reconciliation("shop", &manifest("shop", secret, description), true);
        server.call_as(token, "POST", "/reconciliations", body)
    };
    let told = |answer: &Answer| {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let fields = answer.json["plan"]["changes"][0]["drift"]["fields"].as_array().cloned().unwrap_or_default();
        let told = fields.iter().map(|it| format!("{} {}", it["state"], it["field"]).replace('"', ""));
        told.collect::<Vec<_>>().join(", ")
    };
    // The metadata that only others have set is drift, and so is the description unless the manifest changes it, too.
    for (description, state) in [("first", "drift"), ("second", "conflict")] {
        let right = plan(&planner, "by-hand-secret", description);
        assert_eq!(told(&right), format!("{state} /description, drift /metadata"), "{}", right.text);
        // Findings have the length of what was sent.
        for guess in ["by-hand-secre1", "by-hand-secre2"] {
            assert_eq!(plan(&planner, guess, description).text, right.text, "{description}");
        }
    }
    let all = plan(&server.admin, "shop-secret-1", "first");
    let expected = "drift /description, drift /metadata, drift /webhook_verification/secret";
    assert_eq!(told(&all), expected, "{}", all.text);
}

#[test]
fn what_is_not_compared_has_the_name_of_its_manifest_before_it_is_adopted() {
    let server = Server::start();
    let edge = server.call("POST", "/edges/https", Some(json!({"hostports": ["hook.example.com:443"]})));
    let edge = edge.str("/id").to_owned();
    let route = json!({
        "match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"},
        "webhook_verification": {"provider": "github", "secret": "hook-secret-1"},
    });
    let route = server.call("POST", &format!("/edges/https/{edge}/routes"), Some(route)).str("/id").to_owned();
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: hook, id: {edge}}}\n\
         spec: {{hostports: ['hook.example.com:443']}}\n---\n\
         apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: all, id: {route}}}\nspec:\n  \
         edge: hook\n  match_type: path_prefix\n  match: /\n  backend: {{backend_id: bkd_1}}\n  \
         webhook_verification: {{provider: github, secret: hook-secret-1}}\n"
    );
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let planned = server.call_as(&planner, "POST", "/reconciliations", reconciliation("shop", &text, true));
    assert!(planned.text.contains("1 secret field of HttpsEdgeRoute hook/all"), "{}", planned.text);
}

#[test]
fn the_saved_plan_of_a_planner_is_applied_with_another_key() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let token = |scope: Value| {
        let made = serve.call("POST", "/api_keys", &json!({"owner_id": "bot_ci", "scope": scope}).to_string());
        made.json()["token"].as_str().unwrap_or_default().to_owned()
    };
    let planner = token(json!({"role": "planner", "plan": ["shop"]}));
    let applier = token(json!({"apply": ["shop"]}));
    let run = |line: &str, token: &str| {
        let mut command = folder.command(line);
        let server = format!("http://{}", serve.address);
        command.env("EDGEWRIGHT_SERVER", server).env("EDGEWRIGHT_TOKEN", token).env_remove("EDGEWRIGHT_STORE");
        finish(command, "")
    };
    folder.write("shop.yaml", &manifest("shop", "shop-secret-1", "first"));
    let planned = run("plan --source shop --out plan.json shop.yaml", &planner);
    assert_eq!(planned.code, 0, "{}", planned.all());
    folder.write("shop.yaml", &manifest("shop", "shop-secret-1", "second"));
    let stale = run("reconcile --source shop --plan plan.json shop.yaml", &applier);
    assert_eq!(stale.code, 5, "{}", stale.all());
    folder.write("shop.yaml", &manifest("shop", "shop-secret-1", "first"));
    let applied = run("reconcile --source shop --plan plan.json shop.yaml", &applier);
    assert_eq!(applied.code, 0, "{}", applied.all());
    assert!(applied.all().contains("reviewed without the values of secrets"), "{}", applied.all());
    drop(serve);
    let local = folder.run("reconcile --source shop --plan plan.json shop.yaml");
    assert_eq!(local.code, 5, "{}", local.all());
    assert!(local.err.contains("apply it through its server"), "{}", local.all());
}

#[test]
fn a_key_without_an_owner_is_one_plan_for_all_and_belongs_to_who_applies_it() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let token = |owner: &str, scope: Value| {
        let made = serve.call("POST", "/api_keys", &json!({"owner_id": owner, "scope": scope}).to_string());
        made.json()["token"].as_str().unwrap_or_default().to_owned()
    };
    let planner = token("bot_review", json!({"role": "planner", "plan": ["shop"]}));
    let applier = token("bot_deploy", Value::Null);
    let run = |line: &str, token: &str| {
        let mut command = folder.command(line);
        let server = format!("http://{}", serve.address);
        command.env("EDGEWRIGHT_SERVER", server).env("EDGEWRIGHT_TOKEN", token).env_remove("EDGEWRIGHT_STORE");
        finish(command, "")
    };
    let key = "apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {name: ci}\nspec: {token_file: ../ci.token}\n";
    folder.write("m/key.yaml", key);
    let planned = run("plan --source shop --out plan.json m", &planner);
    assert_eq!(planned.code, 0, "{}", planned.all());
    assert!(planned.out.contains("owned by whoever applies the plan"), "{}", planned.out);
    assert!(!planned.out.contains("bot_") && !folder.read("plan.json").contains("bot_"), "{}", planned.out);
    for other in [&serve.token, &applier] {
        assert_eq!(run("plan --source shop m", other).out, planned.out);
    }
    let applied = run("reconcile --source shop --plan plan.json m", &applier);
    assert_eq!(applied.code, 0, "{}", applied.all());
    let keys = serve.get("/api_keys").json();
    assert_eq!(keys["keys"][0]["owner_id"], "bot_deploy", "{keys}");
}

#[test]
fn the_dry_run_of_a_rollback_shows_no_change_of_a_secret() {
    let server = start();
    let before = server.store().snapshot().revision;
    let text = manifest("shop", "shop-secret-2", "first");
    assert_eq!(server.call("POST", "/reconciliations", reconciliation("shop", &text, false)).status, 201);
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let (_, applier) = key(&server, json!({"apply": ["shop"]}));
    let call = |token: &str, body: Value| server.call_as(token, "POST", "/rollbacks", Some(body));
    let body = json!({"to": before, "source": "shop", "dry_run": true});
    let shown = call(&planner, body.clone());
    assert_eq!(shown.status, 200, "{}", shown.text);
    assert!(!shown.text.contains("webhook_verification"), "{}", shown.text);
    assert!(server.call("POST", "/rollbacks", Some(body)).text.contains("webhook_verification"));
    let outcome = shown.str("/outcome");
    let body = json!({"to": before, "source": "shop", "expect": outcome});
    let applied = call(&applier, body);
    assert_eq!(applied.status, 201, "{}", applied.text);
}

#[test]
fn a_misspelt_source_is_told_and_an_impossible_one_refused() {
    let folder = Folder::new();
    folder.write("m/a.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {}\n");
    folder.ok("reconcile --source shop m");
    let serve = folder.serve("--store other");
    let of_store = |options: &str| folder.run(&format!("keys create --role planner {options}"));
    let mut apply = folder.command("reconcile --source shop m");
    let server = format!("http://{}", serve.address);
    apply.env("EDGEWRIGHT_SERVER", &server).env("EDGEWRIGHT_TOKEN", &serve.token).env_remove("EDGEWRIGHT_STORE");
    assert_eq!(finish(apply, "").code, 0);
    let of_server = |options: &str| {
        let mut command = folder.command(&format!("keys create --role planner {options}"));
        command.env("EDGEWRIGHT_SERVER", &server).env("EDGEWRIGHT_TOKEN", &serve.token).env_remove("EDGEWRIGHT_STORE");
        finish(command, "")
    };
    for create in [&of_store as &dyn Fn(&str) -> Run, &of_server] {
        for (options, said) in [
            ("--apply shpo", "No source is called `shpo` yet. Did you mean `shop`?"),
            ("--plan docs-*", "No source begins with `docs-` yet."),
        ] {
            let run = create(options);
            assert!(run.code == 0 && run.err.contains(said), "{options}: {}", run.all());
        }
        for options in ["--apply shop", "--plan sh*", "--apply *"] {
            let run = create(options);
            assert!(run.code == 0 && !run.err.contains("No source"), "{options}: {}", run.all());
        }
    }
    let mut spaced = folder.command("keys create --store new --apply");
    spaced.arg("Team Shop").env_remove("EDGEWRIGHT_STORE");
    let run = finish(spaced, "");
    assert!(run.code == 1 && run.err.contains("a source name cannot contain spaces"), "{}", run.all());
    assert!(!folder.path("new").exists(), "no key and no store");
}

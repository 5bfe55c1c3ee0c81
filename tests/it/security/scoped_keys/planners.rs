//! Keys that only plan: they change nothing and learn no secret, and what they reviewed is applied with another key.

use edgewright::resources::MASK;
use serde_json::{Value, json};

use super::{key, manifest, reconciliation, refused, route_of, start};
use crate::support::{
    manifests::bare_edge,
    program::Folder,
    server::{Answer, Server},
    users::run_with_token,
};

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
fn a_plan_that_writes_no_secret_has_none_that_nobody_reviewed() {
    let server = start();
    let (_, planner) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let (_, applier) = key(&server, json!({"apply": ["shop"]}));
    // The source has a secret, and the plan only adds an edge without one.
    let text = format!("{}---\n{}", manifest("shop", "shop-secret-1", "first"), bare_edge("plain", ""));
    let mut body = reconciliation("shop", &text, true).unwrap_or_default();
    let planned = server.call_as(&planner, "POST", "/reconciliations", Some(body.clone()));
    let reviewed = planned.str("/outcome").to_owned();
    assert!(reviewed.starts_with("masked:"), "{}", planned.text);
    (body["expect"], body["dry_run"]) = (json!(reviewed), json!(false));
    let applied = server.call_as(&applier, "POST", "/reconciliations", Some(body));
    assert_eq!(applied.status, 201, "{}", applied.text);
    assert!(!applied.text.contains("UNREVIEWED_SECRETS"), "{}", applied.text);
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
    let run = |line: &str, token: &str| run_with_token(&folder, &serve, token, line);
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
    let run = |line: &str, token: &str| run_with_token(&folder, &serve, token, line);
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

//! Edges that several sources share: which routes and hostports their owner consents to, and the modules that it requires
//! of all routes (D103).

use serde_json::{Value, json};

use crate::cli::{Folder, Run, Serve};

fn head(kind: &str, name: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
}

/// The edge `storefront` with more fields, and a route for `/cart`.
fn storefront(more: &str) -> String {
    head("HttpsEdge", "storefront")
        + &format!(
            "spec:\n  hostports: [\"shop.example.com:443\"]\n{more}  routes:\n  \
             - {{name: cart, match_type: path_prefix, match: /cart/, backend: {{backend_id: bkd_cart}}}}\n"
        )
}

/// A route of the edge for a path, with more fields.
fn route(path: &str, more: &str) -> String {
    head("HttpsEdgeRoute", "help")
        + &format!(
            "spec: {{edge: storefront, match_type: path_prefix, match: {path}, backend: {{backend_id: bkd_docs}}{more}}}\n"
        )
}

const DELEGATES: &str = "  delegates_to: [{source: docs, path_prefix: /docs/}]\n";

fn assert_refused(run: &Run, texts: &[&str]) {
    assert_eq!(run.code, 3, "{}", run.all());
    for text in texts {
        assert!(run.err.contains(text), "{text} in {}", run.err);
    }
}

#[test]
fn a_route_of_another_source_needs_the_consent_of_the_edges_owner() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(""));
    folder.write("docs/route.yaml", &route("/docs/", ""));
    folder.ok("reconcile --source shop shop");
    let refused = [
        "ERR_EDGEWRIGHT_NOT_DELEGATED",
        "source `shop` does not delegate routes of HttpsEdge `storefront` to source `docs`",
        "`delegates_to: [{source: docs, path_prefix: /docs/}]`",
        "docs/route.yaml:4:14",
    ];
    assert_refused(&folder.run("reconcile --source docs docs"), &refused);

    folder.write("shop/edge.yaml", &storefront(DELEGATES));
    let plan = folder.ok("plan --source shop shop");
    assert!(plan.out.contains("+ delegates_to:") && plan.out.contains("path_prefix: /docs/"), "{}", plan.out);
    folder.ok("reconcile --source shop shop");
    folder.ok("reconcile --source docs docs");
    assert_eq!(folder.ok("plan --source shop shop").out, "No changes: 2 unchanged.\n");

    for path in ["/", "/docs", "/admin", "/docs/../admin"] {
        folder.write("docs/route.yaml", &route(path, ""));
        let run = folder.run("plan --source docs docs");
        assert_refused(&run, &["NOT_DELEGATED", "delegates only paths below `/docs/`", "docs/route.yaml:4:"]);
    }
    folder.write("docs/route.yaml", &route("/docs/", ""));

    // What was exported says the same.
    folder.ok("export --source shop theirs");
    assert_eq!(folder.ok("plan --source shop theirs").out, "No changes: 2 unchanged.\n");

    folder.write("shop/edge.yaml", &storefront(""));
    let withdrawn = folder.ok("reconcile --source shop shop");
    let warning = "`delegates_to` does not admit routes that HttpsEdge `storefront` has: `help` of source `docs`";
    assert!(withdrawn.err.contains(warning), "{}", withdrawn.err);
    assert_refused(&folder.run("reconcile --source docs docs"), &refused);
}

#[test]
fn a_hostport_belongs_to_the_source_that_had_it_first() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(DELEGATES));
    let theirs = head("HttpsEdge", "docs") + "spec: {hostports: [\"Shop.example.com:443\"]}\n";
    folder.write("docs/edge.yaml", &theirs);
    folder.ok("reconcile --source shop shop");
    let refused = ["NOT_DELEGATED", "belongs to HttpsEdge `storefront` of source `shop`", "docs/edge.yaml:4:"];
    assert_refused(&folder.run("reconcile --source docs docs"), &refused);
    folder.write("shop/edge.yaml", &storefront("  delegates_to: [{source: docs, path_prefix: /}]\n"));
    folder.ok("reconcile --source shop shop");
    // What is left is the lint, which sources can set to another level.
    let run = folder.run("reconcile --source docs docs");
    assert!(run.code == 3 && run.err.contains("duplicate-hostport"), "{}", run.all());
    assert!(!run.err.contains("NOT_DELEGATED"), "{}", run.err);
}

#[test]
fn consent_is_given_in_a_manifest_and_nowhere_else() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(DELEGATES));
    folder.ok("reconcile --source shop shop");
    let serve = folder.serve("");
    let edge = serve.get("/edges/https").json()["https_edges"][0].clone();
    assert_eq!((edge.get("delegates_to"), edge.get("required_modules")), (None, None), "{edge:#}");
    let path = format!("/edges/https/{}", edge["id"].as_str().unwrap());
    for body in [json!({"delegates_to": []}), json!({"required_modules": {}})] {
        let answer = serve.call("PATCH", &path, &body.to_string());
        assert_eq!((answer.status, answer.code().as_str()), (400, "ERR_EDGEWRIGHT_UNKNOWN_FIELD"), "{}", answer.body);
    }
    assert_eq!(serve.call("PATCH", &path, &json!({"description": "by hand"}).to_string()).status, 200);
    drop(serve);
    let plan = folder.ok("plan --source shop shop");
    assert!(!plan.out.contains("delegates_to"), "the patch has kept it: {}", plan.out);
    for (entry, said) in [
        ("{source: docs, path_prefix: /docs}", "`/docs` is not a path prefix for a source"),
        ("{source: docs, path_prefix: docs/}", "`docs/` is not a path prefix for a source"),
        ("{source: docs, path_prefix: /a/../}", "`/a/../` is not a path prefix for a source"),
        ("{source: docs}", "`path_prefix` is required"),
        ("{source: '', path_prefix: /}", "`source` is required"),
    ] {
        folder.write("shop/edge.yaml", &storefront(&format!("  delegates_to: [{entry}]\n")));
        assert_refused(&folder.run("validate shop"), &[said, "shop/edge.yaml:6:"]);
    }
}

/// The routes of the one edge, by their matches.
fn routes(serve: &Serve) -> Vec<Value> {
    serve.get("/edges/https").json()["https_edges"][0]["routes"].as_array().unwrap().clone()
}

#[test]
fn a_required_module_is_on_every_route_and_nobody_leaves_it_out() {
    let folder = Folder::new();
    let guard = |policy: &str| {
        head("ModuleSet", "guard") + &format!("spec: {{ip_restriction: {{ip_policy_ids: [{policy}]}}}}\n---\n")
    };
    let required = format!("{DELEGATES}  required_modules: [guard]\n");
    folder.write("shop/edge.yaml", &(guard("ipp_office") + &storefront(&required)));
    folder.write("docs/route.yaml", &route("/docs/", ""));
    folder.ok("reconcile --source shop shop");
    folder.ok("reconcile --source docs docs");
    assert_eq!(folder.ok("plan --source docs docs").out, "No changes: 1 unchanged.\n");

    let own = ", ip_restriction: {ip_policy_ids: [ipp_all]}";
    folder.write("docs/route.yaml", &route("/docs/", own));
    let refused =
        ["ERR_EDGEWRIGHT_REQUIRED_MODULE", "HttpsEdge `storefront` requires of every route", "docs/route.yaml:4:"];
    assert_refused(&folder.run("plan --source docs docs"), &refused);
    folder.write("docs/route.yaml", &route("/docs/", &own.replace("ipp_all", "ipp_office")));
    assert_eq!(folder.ok("plan --source docs docs").out, "No changes: 1 unchanged.\n");
    folder.write("docs/route.yaml", &route("/docs/", ""));
    folder.ok("export --source shop theirs");
    assert!(folder.read("theirs/https-edge-storefront.yaml").contains("required-by-storefront"));
    assert_eq!(folder.ok("plan --source shop theirs").out, "No changes: 2 unchanged.\n");

    let serve = folder.serve("");
    let found = routes(&serve);
    assert_eq!(found.len(), 2);
    for route in &found {
        assert_eq!(route["ip_restriction"]["ip_policies"][0]["id"], "ipp_office", "{route:#}");
        let path = format!(
            "/edges/https/{}/routes/{}/ip_restriction",
            route["edge_id"].as_str().unwrap(),
            route["id"].as_str().unwrap()
        );
        for (method, body, status) in [
            ("DELETE", "", 409),
            ("PUT", r#"{"ip_policy_ids": ["ipp_all"]}"#, 409),
            ("PUT", r#"{"ip_policy_ids": ["ipp_office"]}"#, 200),
        ] {
            let answer = serve.call(method, &path, body);
            assert_eq!(answer.status, status, "{method} {body}: {}", answer.body);
            assert!(status == 200 || answer.code() == "ERR_EDGEWRIGHT_REQUIRED_MODULE", "{}", answer.body);
        }
    }
    let path = format!("/edges/https/{}/routes", found[0]["edge_id"].as_str().unwrap());
    let body = json!({"match_type": "path_prefix", "match": "/new"});
    assert_eq!(serve.call("POST", &path, &body.to_string()).status, 409);
    drop(serve);

    // Another requirement reaches the routes of other sources with their next sync; until then, there is a warning.
    folder.write("shop/edge.yaml", &(guard("ipp_vpn") + &storefront(&required)));
    let run = folder.ok("reconcile --source shop shop");
    let warning = "routes of HttpsEdge `storefront` do not have its required modules yet: `help` of source `docs`";
    assert!(run.err.contains(warning), "{}", run.err);
    let calls = folder.ok("reconcile --source docs docs").calls();
    assert!(
        matches!(calls.as_slice(), [one] if one.starts_with("PUT ") && one.ends_with("/ip_restriction")),
        "{calls:?}"
    );
    assert!(!folder.ok("reconcile --source shop shop").err.contains("required modules"));
}

#[test]
fn no_finding_depends_on_the_secrets_of_required_modules() {
    let folder = Folder::new();
    let set = |secret: &str| {
        head("ModuleSet", "guard")
            + &format!("spec: {{webhook_verification: {{provider: github, secret: {secret}}}}}\n---\n")
    };
    let required = format!("{DELEGATES}  required_modules: [guard]\n");
    folder.write("shop/edge.yaml", &(set("right-secret-0123") + &storefront(&required)));
    folder.ok("reconcile --source shop shop");
    let guess = |secret: &str| {
        let own = format!(", webhook_verification: {{provider: github, secret: {secret}}}");
        folder.write("docs/route.yaml", &route("/docs/", &own));
        folder.ok("plan --source docs docs").all()
    };
    assert_eq!(guess("wrong-secret-0123"), guess("right-secret-0123"));
    // The secret of the edge replaces the one of the route.
    guess("wrong-secret-0123");
    folder.ok("reconcile --source docs docs");
    let serve = folder.serve("");
    for route in routes(&serve).iter().filter(|route| route["match"] == "/docs/") {
        assert_eq!(route["webhook_verification"]["secret"], "right-secret-0123", "{route:#}");
    }
    drop(serve);
    // Nor does the edge's owner learn the secrets of the routes of others.
    for secret in ["wrong-secret-0123", "right-secret-0123"] {
        folder.write("shop/edge.yaml", &(set(secret) + &storefront(&required)));
        let run = folder.ok("plan --source shop shop");
        assert!(!run.err.contains("required modules"), "{secret}: {}", run.err);
    }
}

//! Edges that several sources share: which routes and hostports their owner consents to, and the modules that it requires
//! of all routes (D103).

use serde_json::{Value, json};

use crate::support::{
    program::{Folder, Run, Serve, finish},
    users::client,
};

pub(crate) fn head(kind: &str, name: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
}

/// The edge `storefront` with more fields, and a route for `/cart`.
pub(crate) fn storefront(more: &str) -> String {
    head("HttpsEdge", "storefront")
        + &format!(
            "spec:\n  hostports: [\"shop.example.com:443\"]\n{more}  routes:\n  \
             - {{name: cart, match_type: path_prefix, match: /cart/, backend: {{backend_id: bkd_cart}}}}\n"
        )
}

/// A route of the edge for a path, with more fields.
pub(crate) fn route(path: &str, more: &str) -> String {
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
    let warning = "`delegates_to` does not allow existing routes of HttpsEdge `storefront`: `help` of source `docs`";
    assert!(withdrawn.err.contains(warning), "{}", withdrawn.err);
    // What has been admitted stays, and does not stop the rest of its source; its match cannot change any more.
    folder.write("docs/route.yaml", &route("/docs/", ", description: more"));
    let kept = folder.ok("reconcile --source docs docs");
    assert_eq!(kept.calls().len(), 1, "{}", kept.all());
    for text in ["⚠ source `shop` does not delegate routes", "the route stays as long as its match does not change"] {
        assert!(kept.err.contains(text), "{text} in {}", kept.err);
    }
    folder.write("docs/route.yaml", &route("/docs/new/", ""));
    let refused = [refused[0], refused[1], "`delegates_to: [{source: docs, path_prefix: /docs/new/}]`", refused[3]];
    assert_refused(&folder.run("reconcile --source docs docs"), &refused);
    folder.ok("reconcile --source shop shop");
}

#[test]
fn routes_stay_on_an_edge_that_changes_hands() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(""));
    folder.ok("reconcile --source shop shop");
    let taken = storefront("").replace("name: storefront", "name: storefront, transfer_from: shop");
    let (edge, _) = taken.split_once("  routes:").unwrap();
    folder.write("docs/edge.yaml", edge);
    let cart = "spec: {edge: storefront, match_type: path_prefix, match: /cart/, backend: {backend_id: bkd_cart}}\n";
    let cart = head("HttpsEdgeRoute", "cart") + cart;
    let given = edge.replace("transfer_from: shop", "transfer_to: docs");
    folder.write("shop/edge.yaml", &format!("{given}---\n{cart}"));
    folder.ok("reconcile --source shop shop");
    folder.ok("reconcile --source docs docs");
    folder.write("shop/edge.yaml", &cart);
    let kept = folder.ok("reconcile --source shop shop");
    assert!(kept.err.contains("⚠ source `docs` does not delegate routes"), "{}", kept.err);
    folder.write("shop/edge.yaml", &cart.replace("/cart/", "/"));
    assert_refused(&folder.run("reconcile --source shop shop"), &["NOT_DELEGATED"]);
}

/// Runs the program with the same secret in several variables.
fn with_secrets(folder: &Folder, line: &str) -> Run {
    let mut command = folder.command(line);
    command.envs(["SHOP_HOOK", "CART_HOOK", "DOCS_HOOK"].map(|name| (name, "a-long-secret-0123456789")));
    finish(command, "")
}

/// The field with a secret from a variable.
fn hook(variable: &str) -> String {
    format!("webhook_verification: {{provider: github, secret: {{from_env: {variable}}}}}")
}

#[test]
fn unknown_values_fit_the_modules_that_an_edge_requires() {
    let folder = Folder::new();
    let guard = head("ModuleSet", "guard") + &format!("spec: {{{}}}\n---\n", hook("SHOP_HOOK"));
    let edge = storefront(&format!("{DELEGATES}  required_modules: [guard]\n"));
    let edge = edge.replace("bkd_cart}}", &format!("bkd_cart}}, {}}}", hook("CART_HOOK")));
    folder.write("shop/edge.yaml", &(guard + &edge));
    folder.write("docs/route.yaml", &route("/docs/", &format!(", {}", hook("DOCS_HOOK"))));
    folder.ok("plan --source shop --secrets=assume shop");
    assert_eq!(with_secrets(&folder, "reconcile --source shop shop").code, 0);
    folder.ok("plan --source docs --secrets=assume docs");
    // Other values are no secrets, and must be equal all the same.
    folder.edit("docs/route.yaml", "provider: github", "provider: gitlab");
    assert_refused(&folder.run("plan --source docs --secrets=assume docs"), &["REQUIRED_MODULE"]);
}

#[test]
fn an_export_leaves_out_of_routes_what_their_edge_requires() {
    let folder = Folder::new();
    let guard = head("ModuleSet", "guard") + &format!("spec: {{{}}}\n---\n", hook("SHOP_HOOK"));
    folder.write("shop/edge.yaml", &(guard + &storefront(&format!("{DELEGATES}  required_modules: [guard]\n"))));
    folder.write("docs/route.yaml", &route("/docs/", ""));
    for source in ["shop", "docs"] {
        let run = with_secrets(&folder, &format!("reconcile --source {source} {source}"));
        assert_eq!(run.code, 0, "{}", run.all());
    }
    let theirs = folder.ok("export --source docs theirs");
    assert!(!theirs.err.contains("SECRET"), "{}", theirs.err);
    assert_eq!(folder.ok("plan --source docs theirs").out, "No changes: 1 unchanged.\n");
    folder.ok("export --source shop ours");
    let ours = folder.read("ours/https-edge-storefront.yaml");
    assert_eq!(ours.matches("from_env").count(), 1, "{ours}");
}

#[test]
fn whoever_takes_the_name_of_an_edge_does_not_stop_those_who_use_it() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(DELEGATES));
    folder.ok("reconcile --source shop shop");
    let other = |more: &str| {
        head("HttpsEdge", "storefront") + &format!("spec:\n  hostports: [\"other.example.com:443\"]\n{more}")
    };
    folder.write("other/edge.yaml", &other(""));
    folder.ok("reconcile --source other other");
    // Only one of the two delegates to the source.
    folder.write("docs/route.yaml", &route("/docs/", ""));
    folder.ok("reconcile --source docs docs");
    // Only one of the two has its routes, whatever the other one offers.
    folder.write("other/edge.yaml", &other(DELEGATES));
    folder.ok("reconcile --source other other");
    folder.write("docs/more.yaml", &route("/docs/more/", "").replace("name: help", "name: more"));
    let planned = folder.ok("plan --source docs docs");
    assert!(planned.out.contains("1 to create, 0 to change"), "{}", planned.out);
    assert!(folder.ok("reconcile --source docs docs").out.contains("storefront/more"));
    // Somebody who uses neither has to say which one is meant.
    folder.write("guides/route.yaml", &route("/docs/guides/", ""));
    let run = folder.run("plan --source guides guides");
    assert_refused(&run, &["AMBIGUOUS_REFERENCE", "`other/storefront`", "`shop/storefront`"]);
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
    // Not with consent either, which is for routes and other hosts: one of the two edges would get no requests. And not
    // without the lint, whose level the source sets.
    folder.write("shop/edge.yaml", &storefront("  delegates_to: [{source: docs, path_prefix: /}]\n"));
    folder.ok("reconcile --source shop shop");
    for text in [theirs.clone(), without_lint(&theirs, "docs")] {
        folder.write("docs/edge.yaml", &text);
        assert_refused(&folder.run("reconcile --source docs docs"), &refused);
    }
}

/// A manifest in which a hostport of another edge is allowed.
fn without_lint(text: &str, name: &str) -> String {
    let annotated = format!("{{name: {name}, annotations: {{edgewright/lint.duplicate-hostport: allow}}}}");
    text.replace(&format!("{{name: {name}}}"), &annotated)
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
            let said = "of source `shop` requires its `ip_restriction` module on every route";
            let is_refused = answer.code() == "ERR_EDGEWRIGHT_REQUIRED_MODULE" && answer.body.contains(said);
            assert!(status == 200 || is_refused, "{}", answer.body);
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

/// The path of the edge with a first hostport.
fn path_of(serve: &Serve, hostport: &str) -> String {
    let list = serve.get("/edges/https").json();
    let edges = list["https_edges"].as_array().unwrap();
    let found = edges.iter().find(|edge| edge["hostports"][0] == hostport).unwrap();
    format!("/edges/https/{}", found["id"].as_str().unwrap())
}

/// The path of the route with a match on an edge.
fn route_of(serve: &Serve, edge: &str, path: &str) -> String {
    let found = serve.get(edge).json();
    let routes = found["routes"].as_array().unwrap();
    let route = routes.iter().find(|route| route["match"] == path).unwrap();
    format!("{edge}/routes/{}", route["id"].as_str().unwrap())
}

#[test]
fn a_request_takes_neither_hostports_nor_paths_of_another_source() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(DELEGATES));
    let own = head("HttpsEdge", "docs") + "spec: {hostports: [\"docs.example.com:443\"]}\n---\n";
    folder.write("docs/route.yaml", &(own + &route("/docs/", "")));
    folder.ok("reconcile --source shop shop");
    folder.ok("reconcile --source docs docs");
    let serve = folder.serve("");
    let assert_not_delegated = |method: &str, path: &str, body: Value, field: &str, said: &str| {
        let answer = serve.call(method, path, &body.to_string());
        assert_eq!(answer.status, 409, "{body}: {}", answer.body);
        assert_eq!(answer.code(), "ERR_EDGEWRIGHT_NOT_DELEGATED");
        assert_eq!(answer.json()["details"]["field"], field, "{}", answer.body);
        assert!(answer.body.contains(said), "{said} in {}", answer.body);
    };
    let assert_allowed = |method: &str, path: &str, body: Value| {
        let answer = serve.call(method, path, &body.to_string());
        assert!(matches!(answer.status, 200 | 201), "{method} {path} {body}: {}", answer.body);
    };

    let (shop, docs) = (path_of(&serve, "shop.example.com:443"), path_of(&serve, "docs.example.com:443"));
    let belongs = "belongs to HttpsEdge `storefront` of source `shop`";
    let both = json!({"hostports": ["docs.example.com:443", "Shop.example.com:443"]});
    assert_not_delegated("PATCH", &docs, both, "/hostports/1", belongs);
    let shops = json!({"hostports": ["shop.example.com:443"]});
    assert_not_delegated("POST", "/edges/https", shops.clone(), "/hostports/0", belongs);
    assert_allowed("PATCH", &shop, json!({"hostports": ["shop.example.com:443", "shop.example.com:80"]}));
    // Edges without a source can have the same hostport, as the API specification has it.
    assert_allowed("POST", "/edges/https", json!({"hostports": ["free.example.com:443"], "description": "one"}));
    assert_allowed("POST", "/edges/https", json!({"hostports": ["free.example.com:443"], "description": "two"}));
    let free = path_of(&serve, "free.example.com:443");
    assert_not_delegated("PATCH", &free, shops, "/hostports/0", belongs);
    assert_allowed("PATCH", &free, json!({"description": "three"}));

    let help = route_of(&serve, &shop, "/docs/");
    let only = "source `shop` delegates only paths below `/docs/`";
    for text in ["/", "/admin/", "/docs/../admin/"] {
        assert_not_delegated("PATCH", &help, json!({"match": text}), "/match", only);
    }
    assert_allowed("PATCH", &help, json!({"match": "/docs/new/"}));
    assert_allowed("PATCH", &help, json!({"description": "by hand"}));
    assert_allowed("PATCH", &route_of(&serve, &shop, "/cart/"), json!({"match": "/basket/"}));
}

#[test]
fn a_hostport_that_two_sources_have_already_stops_neither() {
    let folder = Folder::new();
    let theirs =
        without_lint(&(head("HttpsEdge", "docs") + "spec:\n  hostports: [\"shop.example.com:443\"]\n"), "docs");
    folder.write("docs/edge.yaml", &theirs);
    folder.ok("reconcile --source docs docs");
    let before = folder.snapshot("store").revision;
    folder.write("docs/edge.yaml", &theirs.replace("shop.example.com", "docs.example.com"));
    folder.ok("reconcile --source docs docs");
    folder.write("shop/edge.yaml", &without_lint(&storefront(""), "storefront"));
    folder.ok("reconcile --source shop shop");
    // Whoever may change everything brings it back.
    folder.ok(&format!("rollback --to {before} --source docs"));
    folder.write("shop/edge.yaml", &without_lint(&storefront("  description: still here\n"), "storefront"));
    folder.ok("reconcile --source shop shop");
    folder.write("docs/edge.yaml", &(theirs.clone() + "  description: still here\n"));
    folder.ok("reconcile --source docs docs");

    // Once it is given up, it cannot be added again.
    folder.write("docs/edge.yaml", &theirs.replace("shop.example.com", "docs.example.com"));
    folder.ok("reconcile --source docs docs");
    folder.write("docs/edge.yaml", &theirs);
    assert_refused(&folder.run("reconcile --source docs docs"), &["NOT_DELEGATED", "docs/edge.yaml:5:"]);
}

#[test]
fn an_old_copy_of_surrounding_manifests_does_not_keep_a_client_from_the_server() {
    let folder = Folder::new();
    folder.write("shop/edge.yaml", &storefront(DELEGATES));
    folder.ok("reconcile --source shop shop");
    folder.write("old/edge.yaml", &storefront(""));
    folder.write("docs/route.yaml", &route("/docs/", ""));
    let serve = folder.serve("");
    let run = client(&folder, &serve, "reconcile --source docs --with old docs");
    assert_eq!(run.code, 0, "{}", run.all());
    // What the server does not admit, it refuses itself.
    folder.write("docs/route.yaml", &route("/admin/", ""));
    folder.write("old/edge.yaml", &storefront(&DELEGATES.replace("/docs/", "/admin/")));
    let run = client(&folder, &serve, "plan --source docs --with old docs");
    assert_refused(&run, &["NOT_DELEGATED", "delegates only paths below `/docs/`"]);
}

#[test]
fn a_shared_authority_is_used_and_kept_beside_its_replacement_until_it_is_let_go() {
    let folder = Folder::new();
    let authority = head("CertificateAuthority", "staff") + "spec: {ca_pem: {from_file: ca.pem}}\n";
    folder.write("shop/ca.yaml", &authority);
    folder.write("shop/ca.pem", include_str!("../../../examples/storefront/certs/staff-devices.pem"));
    let edge = "spec: {hostports: [\"docs.example.com:443\"], mutual_tls: {certificate_authority_ids: [staff]}}\n";
    folder.write("docs/edge.yaml", &(head("HttpsEdge", "docs") + edge));
    let unused = folder.ok("reconcile --source shop shop");
    assert!(unused.err.contains("unused-certificate-authority"), "{}", unused.err);
    folder.ok("reconcile --source docs docs");
    let used = folder.ok("plan --source shop shop");
    assert!(!used.err.contains("unused-certificate-authority"), "{}", used.err);
    folder.write("shop/ca.pem", include_str!("../../../examples/storefront/certs/partner-devices.pem"));
    let kept = |run: &Run| {
        let in_use = "is kept: it is in use by HttpsEdge docs of source `docs`";
        for text in ["IN_USE", in_use, "at docs/edge.yaml:", "shop/ca.yaml:"] {
            assert!(run.err.contains(text), "{text} in {}", run.err);
        }
    };
    kept(&folder.ok("plan --source shop shop"));
    let replaced = folder.ok("reconcile --source shop shop");
    assert_eq!(replaced.calls(), ["POST /certificate_authorities"]);
    let again = folder.ok("plan --source shop shop");
    kept(&again);
    assert!(again.out.starts_with("No changes: 1 unchanged."), "{}", again.out);
    // A reference that has resolved keeps its resource; one with the source means the new one.
    assert_eq!(folder.ok("plan --source docs docs").out, "No changes: 1 unchanged.\n");
    folder.write("docs/edge.yaml", &(head("HttpsEdge", "docs") + &edge.replace("[staff]", "[shop/staff]")));
    assert_eq!(folder.ok("reconcile --source docs docs").calls().len(), 1);
    let last = folder.ok("reconcile --source shop shop");
    assert!(!last.err.contains("is kept") && last.summary().contains("1 to delete"), "{}", last.all());
    assert_eq!(folder.ok("plan --source shop shop").out, "No changes: 1 unchanged.\n");
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

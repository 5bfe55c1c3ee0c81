//! Writes over the API to resources of a source: drift, refused, or allowed with a header that names the source (D103).

use serde_json::json;

use crate::support::{
    http::{HttpAnswer, http},
    manifests::{edge, edge_with},
    program::{CONFIG, Folder, Serve},
    sources::{in_state, next_sync, replace},
    users::client,
};

const SOURCES: &str = "sources:\n- {name: shop, path: shop, drift: off}\n- {name: docs, path: docs, drift: off}\n";

/// Two sources with an edge each: `one` and `two`.
fn served(rest_writes: &str) -> (Folder, Serve) {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("one", "a"));
    folder.write("docs/two.yaml", &edge("two", "b"));
    folder.write(CONFIG, &format!("rest_writes: {rest_writes}\n{SOURCES}"));
    let serve = folder.serve("");
    (folder, serve)
}

/// The path of the edge with a description.
fn path_of(serve: &Serve, description: &str) -> String {
    let list = serve.get("/edges/https").json();
    let edges = list["https_edges"].as_array().unwrap();
    let found = edges.iter().find(|edge| edge["description"] == description).unwrap();
    format!("/edges/https/{}", found["id"].as_str().unwrap())
}

/// A request whose headers override sources.
fn call(serve: &Serve, call: &str, body: &str, overrides: &[&str]) -> HttpAnswer {
    let bearer = format!("Bearer {}", serve.token);
    let mut headers = vec![("Authorization", bearer.as_str()), ("Service-Version", "2")];
    headers.extend(overrides.iter().map(|source| ("Edgewright-Override", *source)));
    let (method, path) = call.split_once(' ').unwrap();
    http(&serve.address, method, path, &headers, body)
}

fn patch(serve: &Serve, path: &str, description: &str, overrides: &[&str]) -> HttpAnswer {
    call(serve, &format!("PATCH {path}"), &json!({"description": description}).to_string(), overrides)
}

fn assert_says(answer: &HttpAnswer, status: u16, texts: &[&str]) {
    assert_eq!(answer.status, status, "{answer:?}");
    for text in texts {
        assert!(answer.contains(text), "{text} in {answer:?}");
    }
}

#[test]
fn a_source_can_refuse_writes_over_the_api_until_it_is_suspended() {
    let (folder, serve) = served("{shop: refuse}");
    let (one, two) = (path_of(&serve, "a"), path_of(&serve, "b"));
    let refused = [
        "ERR_EDGEWRIGHT_MANAGED_BY_SOURCE",
        "HttpsEdge `one` is managed by source `shop`, which refuses this change",
        "change shop/one.yaml:4 instead",
        "`edgewright suspend shop --reason TEXT`",
    ];
    assert_says(&patch(&serve, &one, "x", &[]), 409, &refused);
    assert_says(&patch(&serve, &one, "x", &["shop"]), 409, &refused);
    let route = json!({"match_type": "path_prefix", "match": "/x"}).to_string();
    assert_says(&call(&serve, &format!("POST {one}/routes"), &route, &[]), 409, &refused);
    assert_says(&call(&serve, &format!("PUT {one}/tls_termination"), "{}", &[]), 409, &refused);
    assert_says(&call(&serve, &format!("DELETE {one}"), "", &[]), 409, &refused);
    // Other sources and resources without a source are as before.
    assert_says(&patch(&serve, &two, "y", &[]), 200, &["edgewright-warning: HttpsEdge `two` is managed by"]);
    let added = call(&serve, &format!("POST {two}/routes"), &route, &[]);
    assert_says(&added, 201, &["edgewright-warning: HttpsEdge `two` is managed by", "only what no source manages"]);
    let created = call(&serve, "POST /edges/https", &json!({"description": "free"}).to_string(), &[]);
    assert_says(&created, 201, &[]);
    let changed = patch(&serve, &path_of(&serve, "free"), "freer", &[]);
    assert!(changed.status == 200 && !changed.contains("edgewright-warning"), "{changed:?}");

    assert_eq!(client(&folder, &serve, "suspend shop --reason emergency").code, 0);
    in_state(&serve, "shop", "Suspended");
    let allowed = patch(&serve, &one, "fixed", &[]);
    assert_says(&allowed, 200, &["edgewright-warning: HttpsEdge `one` is managed by source `shop` (shop/one.yaml:4);"]);
    assert_eq!(client(&folder, &serve, "resume shop").code, 0);
    assert_says(&patch(&serve, &one, "x", &[]), 409, &refused);
}

#[test]
fn a_header_that_names_the_source_overrides_it_and_is_in_the_history() {
    let (folder, serve) = served("{'*': header}");
    let two = path_of(&serve, "b");
    let asked = ["ERR_EDGEWRIGHT_MANAGED_BY_SOURCE", "or send the header `Edgewright-Override: docs`"];
    assert_says(&patch(&serve, &two, "x", &[]), 409, &asked);
    let wrong = "`Edgewright-Override` names source `shop`, which owns none of the resources in this change";
    for overrides in [&["shop"][..], &["docs", "shop"][..]] {
        assert_says(&patch(&serve, &two, "x", overrides), 409, &[wrong]);
    }
    assert_says(&patch(&serve, &two, "x", &["docs"]), 200, &["edgewright-warning: "]);
    let last = serve.get("/history?limit=1").json();
    let last = &last["history"][0];
    assert_eq!(
        (&last["outcome"], &last["message"]),
        (&json!("applied"), &json!("overrides source `docs`")),
        "{last:#}"
    );

    // The running server takes another policy.
    replace(&folder, SOURCES);
    serve.wait_for("The policies of `rest_writes` in the configuration file are in effect.");
    assert_says(&patch(&serve, &two, "y", &[]), 200, &["edgewright-warning: HttpsEdge `two` is managed by"]);
}

#[test]
fn a_misspelt_source_is_warned_of_since_it_protects_nothing() {
    let (folder, serve) = served("{shpo: refuse, docs: drift, '*': header}");
    let (fact, meant) = ("which is not followed and owns nothing", "did you mean `shop`?");
    serve.wait_for(&format!("`rest_writes` names the source `shpo`, {fact}; {meant}"));
    replace(&folder, &format!("rest_writes: {{shopp: refuse}}\n{SOURCES}"));
    serve.wait_for(&format!("`rest_writes` names the source `shopp`, {fact}; {meant}"));
    assert!(!serve.said().contains("names the source `docs`"), "{}", serve.said());
    let run = folder.run("validate shop");
    let told = run.err.contains("names the source `shopp`, which the configuration file does not follow");
    assert!(run.code == 0 && told && run.err.contains(meant), "{}", run.all());
}

#[test]
fn an_unknown_policy_is_reported_at_its_field() {
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("one", "a"));
    folder.write(CONFIG, "rest_writes: {shop: never}\n");
    let run = folder.run("validate shop");
    let reported = run.err.contains("at /rest_writes/shop") && run.err.contains("unknown policy `never`");
    assert_eq!((run.code, reported), (1, true), "{}", run.err);
}

/// A server with an edge of source `shop`, whose route `home` is restricted.
fn serve_shop() -> (Folder, Serve) {
    let folder = Folder::new();
    let home = "{name: home, match_type: path_prefix, match: /home, backend: {backend_id: bkd_1}, \
                ip_restriction: {ip_policy_ids: [ipp_1]}}";
    let shop = format!("{{description: a, hostports: ['shop.example.com:443'], routes: [{home}]}}");
    folder.write("shop/shop.yaml", &edge_with("shop", &shop));
    folder.write(CONFIG, "sources:\n- {name: shop, path: shop, drift: off, interval: 1s}\n");
    let serve = folder.serve("");
    (folder, serve)
}

/// The ID of the route that its source declares.
fn declared_route(serve: &Serve) -> String {
    let routes = serve.get(&format!("{}/routes", path_of(serve, "a"))).json();
    routes["routes"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_route_without_a_source_that_takes_requests_is_told_with_the_declared_one() {
    let (folder, serve) = serve_shop();
    let routes = format!("{}/routes", path_of(&serve, "a"));
    let declared = declared_route(&serve);
    let add = |matched: &str| {
        let body = json!({"match_type": "path_prefix", "match": matched}).to_string();
        call(&serve, &format!("POST {routes}"), &body, &[])
    };
    let beside = add("/cart");
    assert!(beside.status == 201 && !beside.contains("shop/home"), "{beside:?}");
    let added = add("/home");
    let loser = format!("HttpsEdgeRoute shop/home of source `shop` ({declared}), and no sync changes that");
    let id = added.json()["id"].as_str().unwrap().to_owned();
    assert_says(&added, 201, &[&format!("edgewright-warning: HttpsEdgeRoute {id} has the same match as {loser}")]);
    let moved = call(&serve, &format!("PATCH {routes}/{id}"), &json!({"match": "/home/sale"}).to_string(), &[]);
    let takes = format!("HttpsEdgeRoute {id} takes requests from {loser}");
    assert_says(&moved, 200, &[&format!("edgewright-warning: {takes}")]);

    let told = format!("HttpsEdgeRoute {id}, which no source owns, takes requests from this route");
    let status = next_sync(&serve, "shop");
    assert_eq!(status["diagnostics"][0]["code"], "unmanaged-route", "{status:#}");
    assert_eq!(status["diagnostics"][0]["message"], json!(told), "{status:#}");
    let plan = client(&folder, &serve, "plan shop --source shop");
    assert!(plan.code == 0 && plan.all().contains(&told), "{}", plan.all());
    assert_says(&call(&serve, &format!("DELETE {routes}/{id}"), "", &[]), 204, &[]);
    assert_eq!(next_sync(&serve, "shop")["diagnostics"], json!([]));
}

#[test]
fn a_request_that_opens_access_is_told_what_is_missing() {
    let (folder, serve) = serve_shop();
    let (id, routes) = (declared_route(&serve), format!("{}/routes", path_of(&serve, "a")));
    let restriction = r#"{"ip_policy_ids": ["ipp_1"]}"#;
    let own = format!(r#"{{"match_type": "path_prefix", "match": "/own", "ip_restriction": {restriction}}}"#);
    let own = call(&serve, &format!("POST {routes}"), &own, &[]).json()["id"].as_str().unwrap().to_owned();
    let meant = call(&serve, &format!("DELETE {routes}/{own}/ip_restriction"), "", &[]);
    assert!(meant.status == 204 && !meant.contains("opens access"), "nobody declares it: {meant:?}");
    let warning = format!(
        "edgewright-warning: this opens access: HttpsEdgeRoute shop/home of source `shop` ({id}) is without ip_restriction"
    );
    assert_says(&call(&serve, &format!("DELETE {routes}/{id}/ip_restriction"), "", &[]), 204, &[&warning]);
    let revision = serve.get("/history?limit=1").json()["history"][0]["revision"].to_string();
    for line in ["history -n 1", &format!("history show {revision}")] {
        let shown = client(&folder, &serve, line);
        assert!(shown.out.contains("  opens access: without ip_restriction"), "{line}: {}", shown.all());
    }
    let listed: serde_json::Value = serde_json::from_str(&client(&folder, &serve, "history -n 1 -o json").out).unwrap();
    for record in [serve.get(&format!("/history/{revision}")).json(), listed] {
        assert_eq!(record["resources"][0]["opens_access"], json!(["ip_restriction"]), "{record:#}");
    }
    let restricted = call(&serve, &format!("PUT {routes}/{id}/ip_restriction"), restriction, &[]);
    assert!(restricted.status == 200 && !restricted.contains("opens access"), "{restricted:?}");
}

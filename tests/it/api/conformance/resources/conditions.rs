//! ETags, If-Match and If-None-Match (D25).

use serde_json::json;

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{SHOP_CHAIN, SHOP_KEY},
};

#[test]
fn conditional_requests() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [read_rows(), list_rows(), write_rows(), change_rows()].concat()
}

/// One of every kind that can be read, and how to make it.
fn readable() -> Vec<(Row, String)> {
    let pair = json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY});
    let source = "/event_subscriptions/esb_{n}/sources";
    let tls = "/edges/tls/edgtls_{n}";
    let compression = format!("{ROUTE}/compression");
    let of = |name: &str| row(format!("{name}: an ETag, and 304 for whoever has it"));
    vec![
        (of("an API key").given("id", "POST /api_keys", json!({})), "/api_keys/{id}".into()),
        (
            of("an IP restriction").given("id", "POST /ip_restrictions", json!({"type": "api"})),
            "/ip_restrictions/{id}".into(),
        ),
        (of("an authority").ca(), "/certificate_authorities/{ca}".into()),
        (of("a certificate").given("id", "POST /tls_certificates", pair), "/tls_certificates/{id}".into()),
        (of("an HTTPS edge").edge(), "/edges/https/{edge}".into()),
        (of("a route").route(), ROUTE.into()),
        (of("a module of a route").route().send(&format!("PUT {compression}"), json!({})), compression),
        (
            of("a module of an HTTPS edge").edge().send("PUT /edges/https/{edge}/tls_termination", json!({})),
            "/edges/https/{edge}/tls_termination".into(),
        ),
        (of("a TLS edge").send(&format!("PUT {tls}/policies"), json!({})), tls.into()),
        (of("a module of a TLS edge").send(&format!("PUT {tls}/policies"), json!({})), format!("{tls}/policies")),
        (
            of("a subscription").send(&format!("POST {source}"), json!({"type": "a.v0"})),
            "/event_subscriptions/esb_{n}".into(),
        ),
        (of("a source").send(&format!("POST {source}"), json!({"type": "a.v0"})), format!("{source}/a.v0")),
    ]
}

/// A GET, and the same with its ETag, alone and among others, and with another one.
fn honours_if_none_match(given: Row, get: &str) -> Row {
    given
        .call(get)
        .succeeds(200)
        .keep_etag("etag")
        .call(get)
        .with("If-None-Match", "{etag}")
        .succeeds(304)
        .carries("ETag", "{etag}")
        .call(get)
        .with("If-None-Match", "\"other\", W/{etag}")
        .succeeds(304)
        .call(get)
        .with("If-None-Match", "\"other\"")
        .succeeds(200)
        .carries("ETag", "{etag}")
}

fn read_rows() -> Vec<Row> {
    let rows = readable().into_iter().map(|(given, path)| {
        let get = format!("GET {path}");
        honours_if_none_match(given, &get)
            .call(&get)
            .with("If-None-Match", "*")
            .succeeds(304)
            // If-Match is for writes.
            .call(&get)
            .with("If-Match", "\"other\"")
            .succeeds(200)
    });
    rows.collect()
}

/// Lists of resources that no other row changes, because each row has an edge of its own.
fn list_rows() -> Vec<Row> {
    const ROUTES: &str = "/edges/https/{edge}/routes";
    let get = format!("GET {ROUTES}");
    let secret = json!({"client_id": "one", "client_secret": "list-etag-secret"});
    let other = json!({"match_type": "path_prefix", "match": "/other"});
    vec![
        honours_if_none_match(row("a list: an ETag, and 304 for whoever has it").route(), &get),
        row("the ETag of a list fits until one of its resources changes, whatever happens to others")
            .route()
            .call(&get)
            .succeeds(200)
            .keep_etag("before")
            .send("POST /edges/https", json!({}))
            .succeeds(201)
            .call(&get)
            .with("If-None-Match", "{before}")
            .succeeds(304)
            .send(&format!("PATCH {ROUTE}"), json!({"description": "changed"}))
            .succeeds(200)
            .call(&get)
            .with("If-None-Match", "{before}")
            .succeeds(200)
            .shows("/routes/0/description", json!("changed"))
            .keep_etag("changed")
            .send(&format!("POST {ROUTES}"), other.clone())
            .succeeds(201)
            .call(&get)
            .with("If-None-Match", "{changed}")
            .succeeds(200)
            .shows("/routes/0/match", json!("/other")),
        row("each page and each filter of a list has an ETag of its own")
            .route()
            .send(&format!("POST {ROUTES}"), other)
            .succeeds(201)
            .call(&format!("{get}?limit=1"))
            .succeeds(200)
            .keep_etag("first")
            .call(&format!("{get}?limit=1&before_id={{route}}"))
            .with("If-None-Match", "{first}")
            .succeeds(200)
            .call(&get)
            .with("If-None-Match", "{first}")
            .succeeds(200)
            .keep_etag("all")
            .call(&format!("{get}?match=/other"))
            .with("If-None-Match", "{all}")
            .succeeds(200)
            .keep_etag("found")
            .call(&format!("{get}?match=/other"))
            .with("If-None-Match", "{found}")
            .succeeds(304),
        row("a viewer's list is never another role's, in bytes or in ETags")
            .route()
            .send(&format!("PUT {ROUTE}/oidc"), secret)
            .succeeds(200)
            .call(&get)
            .succeeds(200)
            .says("list-etag-secret")
            .keep_etag("revealed")
            .call(&get)
            .by("viewer")
            .with("If-None-Match", "{revealed}")
            .succeeds(200)
            .hides("list-etag-secret")
            .keep_etag("masked")
            .call(&get)
            .by("viewer")
            .with("If-None-Match", "{masked}")
            .succeeds(304)
            .call(&get)
            .with("If-None-Match", "{masked}")
            .succeeds(200)
            .says("list-etag-secret")
            .call(&format!("GET {ROUTE}"))
            .by("viewer")
            .succeeds(200)
            .hides("list-etag-secret")
            .call(&format!("GET {ROUTE}"))
            .succeeds(200)
            .says("list-etag-secret")
            .call(&format!("GET {ROUTE}"))
            .by("viewer")
            .succeeds(200)
            .hides("list-etag-secret"),
    ]
}

fn write_rows() -> Vec<Row> {
    let patch = format!("PATCH {ROUTE}");
    let get = format!("GET {ROUTE}");
    vec![
        row("a PATCH with the ETag that is current is made, with another one it is not")
            .route()
            .call(&get)
            .succeeds(200)
            .keep_etag("first")
            .send(&patch, json!({"description": "one"}))
            .with("If-Match", "{first}")
            .succeeds(200)
            .keep_etag("second")
            .send(&patch, json!({"description": "two"}))
            .with("If-Match", "{first}")
            .fails(412, "PRECONDITION_FAILED", "")
            .call(&get)
            .succeeds(200)
            .carries("ETag", "{second}")
            .shows("/description", json!("one"))
            .send(&patch, json!({"description": "two"}))
            .with("If-Match", "{first}, {second}")
            .succeeds(200)
            .send(&patch, json!({"description": "three"}))
            .with("If-Match", "*")
            .succeeds(200),
        row("a weak ETag does not match a write")
            .route()
            .call(&get)
            .succeeds(200)
            .keep_etag("etag")
            .send(&patch, json!({}))
            .with("If-Match", "W/{etag}")
            .fails(412, "PRECONDITION_FAILED", ""),
        row("a PUT and a DELETE of a module look at the module's own ETag")
            .route()
            .send(&format!("PUT {ROUTE}/oidc"), json!({"client_id": "one"}))
            .succeeds(200)
            .keep_etag("first")
            .send(&format!("PUT {ROUTE}/compression"), json!({}))
            .succeeds(200)
            .send(&format!("PUT {ROUTE}/oidc"), json!({"client_id": "two"}))
            .with("If-Match", "{first}")
            .succeeds(200)
            .keep_etag("second")
            .send(&format!("PUT {ROUTE}/oidc"), json!({"client_id": "three"}))
            .with("If-Match", "{first}")
            .fails(412, "PRECONDITION_FAILED", "")
            .call(&format!("DELETE {ROUTE}/oidc"))
            .with("If-Match", "{first}")
            .fails(412, "PRECONDITION_FAILED", "")
            .call(&format!("DELETE {ROUTE}/oidc"))
            .with("If-Match", "{second}")
            .succeeds(204),
        row("a PUT that asks for any module is refused where there is none")
            .route()
            .send(&format!("PUT {ROUTE}/oidc"), json!({}))
            .with("If-Match", "*")
            .fails(412, "PRECONDITION_FAILED", ""),
        row("a DELETE with an ETag that is past changes nothing")
            .edge()
            .call("GET /edges/https/{edge}")
            .succeeds(200)
            .keep_etag("first")
            .send("PATCH /edges/https/{edge}", json!({"description": "changed"}))
            .succeeds(200)
            .keep_etag("second")
            .call("DELETE /edges/https/{edge}")
            .with("If-Match", "{first}")
            .fails(412, "PRECONDITION_FAILED", "")
            .call("DELETE /edges/https/{edge}")
            .with("If-Match", "{second}")
            .succeeds(204),
        row("an ETag fits until the resource changes, whatever happens to others")
            .route()
            .call(&get)
            .succeeds(200)
            .keep_etag("etag")
            .send("POST /edges/https/{edge}/routes", json!({"match_type": "exact_path", "match": "/x"}))
            .succeeds(201)
            .send("PATCH /edges/https/{edge}", json!({"description": "changed"}))
            .succeeds(200)
            .send(&patch, json!({"description": "changed"}))
            .with("If-Match", "{etag}")
            .succeeds(200),
    ]
}

/// What one call changes shows in every answer that contains it.
fn change_rows() -> Vec<Row> {
    let changes = [
        ("a PATCH of a route", format!("PATCH {ROUTE}"), json!({"description": "changed"})),
        ("a PUT of a route's module", format!("PUT {ROUTE}/compression"), json!({})),
        (
            "a new route",
            "POST /edges/https/{edge}/routes".to_owned(),
            json!({"match_type": "exact_path", "match": "/new"}),
        ),
    ];
    let rows = changes.map(|(name, call, body)| {
        row(format!("{name} changes the ETag of the edge that shows it"))
            .route()
            .call("GET /edges/https/{edge}")
            .succeeds(200)
            .keep_etag("before")
            .send(&call, body)
            .call("GET /edges/https/{edge}")
            .with("If-None-Match", "{before}")
            .succeeds(200)
            .keep_etag("after")
            .call("GET /edges/https/{edge}")
            .with("If-None-Match", "{after}")
            .succeeds(304)
    });
    rows.into()
}

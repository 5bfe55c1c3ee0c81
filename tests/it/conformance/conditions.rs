//! ETags, If-Match and If-None-Match (D25).

use serde_json::json;

use super::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{SHOP_CHAIN, SHOP_KEY},
};

#[test]
fn conditional_requests() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [read_rows(), write_rows(), change_rows()].concat()
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

fn read_rows() -> Vec<Row> {
    let rows = readable().into_iter().map(|(given, path)| {
        let get = format!("GET {path}");
        given
            .call(&get)
            .succeeds(200)
            .keep_etag("etag")
            .call(&get)
            .with("If-None-Match", "{etag}")
            .succeeds(304)
            .carries("ETag", "{etag}")
            .call(&get)
            .with("If-None-Match", "\"other\", W/{etag}")
            .succeeds(304)
            .call(&get)
            .with("If-None-Match", "*")
            .succeeds(304)
            .call(&get)
            .with("If-None-Match", "\"other\"")
            .succeeds(200)
            .carries("ETag", "{etag}")
            // If-Match is for writes.
            .call(&get)
            .with("If-Match", "\"other\"")
            .succeeds(200)
    });
    rows.collect()
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

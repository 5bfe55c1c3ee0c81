//! TLS edges and event subscriptions: owned elsewhere, here as long as something is configured under them (D20, D34).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};

#[test]
fn tls_edges() {
    hold(tls_edge_rows());
}

#[test]
fn event_sources() {
    hold(source_rows());
}

pub(super) fn rows() -> Vec<Row> {
    [tls_edge_rows(), source_rows()].concat()
}

const EDGE: &str = "/edges/tls/edgtls_{n}";

fn tls_edge(ip_restriction: Value, policies: Value, backend: Value) -> Value {
    json!({
        "id": "edgtls_{n}", "uri": "{base}/edges/tls/edgtls_{n}", "created_at": "{time}",
        "description": "", "metadata": "", "hostports": [],
        "ip_restriction": ip_restriction, "policies": policies, "backend": backend
    })
}

fn tls_edge_rows() -> Vec<Row> {
    let (get, backend) = (format!("GET {EDGE}"), format!("{EDGE}/backend"));
    let bkd = json!({"enabled": true, "backend": {"id": "bkd_1", "uri": "{base}/backends/bkd_1"}});
    let ipp = json!({"enabled": true, "ip_policies": [{"id": "ipp_1", "uri": "{base}/ip_policies/ipp_1"}]});
    let one = tls_edge(Value::Null, Value::Null, bkd.clone());
    vec![
        row("a TLS edge comes with its first module, and goes with its last")
            .call(&get)
            .fails(404, "NOT_FOUND", "")
            .send(&format!("PUT {backend}"), json!({"backend_id": "bkd_1"}))
            .answers(200, bkd.clone())
            .call(&get)
            .answers(200, one.clone())
            .call("GET /edges/tls")
            .succeeds(200)
            .shows("/tls_edges/0", one.clone())
            .send(&format!("PUT {EDGE}/ip_restriction"), json!({"ip_policy_ids": ["ipp_1"]}))
            .answers(200, ipp.clone())
            .call(&get)
            .answers(200, tls_edge(ipp, Value::Null, bkd))
            .call(&format!("DELETE {EDGE}/ip_restriction"))
            .succeeds(204)
            .call(&get)
            .answers(200, one)
            .call(&format!("DELETE {backend}"))
            .succeeds(204)
            .call(&get)
            .fails(404, "NOT_FOUND", "")
            .call(&format!("GET {backend}"))
            .fails(404, "NOT_FOUND", ""),
        row("a refused module brings no edge into being")
            .send(&format!("PUT {backend}"), json!({}))
            .fails(400, "REQUIRED", "/backend_id")
            .call(&get)
            .fails(404, "NOT_FOUND", ""),
        row("a TLS edge is not created, changed or deleted as a whole")
            .send("POST /edges/tls", json!({}))
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .send(&format!("PATCH {EDGE}"), json!({}))
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .call(&format!("DELETE {EDGE}"))
            .fails(405, "METHOD_NOT_ALLOWED", ""),
        row("a TLS edge has three modules and no other")
            .send(&format!("PUT {EDGE}/oauth"), json!({"provider": {"github": {}}}))
            .fails(404, "NOT_FOUND", ""),
        row("the identifier of a TLS edge is any text of 1 to 255 bytes, written as in a URL")
            .send("PUT /edges/tls/a%20b/backend", json!({"backend_id": "bkd_1"}))
            .fails(400, "INVALID_FORMAT", "")
            .send("PUT /edges/tls/a%2Fb/backend", json!({"backend_id": "bkd_1"}))
            .fails(400, "INVALID_FORMAT", "")
            .send("PUT /edges/tls/a%00b/backend", json!({"backend_id": "bkd_1"}))
            .fails(400, "INVALID_FORMAT", "")
            .send(&format!("PUT /edges/tls/{}/backend", "b".repeat(256)), json!({"backend_id": "bkd_1"}))
            .fails(400, "INVALID_FORMAT", "")
            .send(&format!("PUT /edges/tls/{}/backend", "b".repeat(255)), json!({"backend_id": "bkd_1"}))
            .succeeds(200)
            .send("PUT /edges/tls/%C3%BC%3F%25%23/backend", json!({"backend_id": "bkd_1"}))
            .succeeds(200)
            .call("GET /edges/tls/%C3%BC%3F%25%23")
            .succeeds(200)
            .shows("/id", json!("ü?%#"))
            .shows("/uri", json!("{base}/edges/tls/%C3%BC%3F%25%23"))
            .call("DELETE /edges/tls/%C3%BC%3F%25%23/backend")
            .succeeds(204),
        row("the identifier of a TLS edge has no prefix of another kind of this service (D20)")
            .send("PUT /edges/tls/edghts_1/backend", json!({"backend_id": "bkd_1"}))
            .fails(400, "INVALID_FORMAT", "")
            .says("has the prefix of an HttpsEdge, not of a TlsEdge")
            .send("PUT /edges/tls/port_{n}/backend", json!({"backend_id": "ca_1"}))
            .fails(400, "INVALID_FORMAT", "/backend_id")
            .says("has the prefix of a CertificateAuthority, not of a backend")
            .send("PUT /edges/tls/port_{n}/ip_restriction", json!({"ip_policy_ids": ["ipp_1", "usr_1", "rec_1"]}))
            .fails(400, "INVALID_FORMAT", "/ip_policy_ids/1")
            .also("INVALID_FORMAT", "/ip_policy_ids/2")
            .send("PUT /edges/tls/port_{n}/backend", json!({"backend_id": "bkd_1"}))
            .succeeds(200),
        row("the list of TLS edges takes a limit up to 1000").refuses_query("GET /edges/tls?limit=1001", "/limit"),
    ]
}

const SOURCES: &str = "/event_subscriptions/esb_{n}/sources";

fn source(kind: &str) -> Value {
    json!({"type": kind, "uri": format!("{{base}}/event_subscriptions/esb_{{n}}/sources/{kind}")})
}

fn source_rows() -> Vec<Row> {
    let (post, get) = (format!("POST {SOURCES}"), format!("GET {SOURCES}"));
    let (created, updated) = ("ip_policy_created.v0", "ip_policy_updated.v0");
    let list = |sources: &[Value]| json!({"sources": sources, "uri": "{base}/event_subscriptions/esb_{n}/sources"});
    let uri = "{base}/event_subscriptions/esb_{n}";
    let subscription = |sources: &[Value]| {
        json!({
            "id": "esb_{n}", "uri": uri, "created_at": "{time}", "description": "", "metadata": "",
            "sources": sources, "destinations": []
        })
    };
    let mut rows = vec![
        row("a source is added, read, patched with nothing, and deleted")
            .send(&post, json!({"type": created}))
            .answers(201, source(created))
            .keep_etag("etag")
            .call(&format!("{get}/{created}"))
            .answers(200, source(created))
            .carries("ETag", "{etag}")
            .send(&format!("PATCH {SOURCES}/{created}"), json!({}))
            .answers(200, source(created))
            .call(&format!("DELETE {SOURCES}/{created}"))
            .succeeds(204)
            .call(&format!("{get}/{created}"))
            .fails(404, "NOT_FOUND", "")
            .call(&format!("DELETE {SOURCES}/{created}"))
            .fails(404, "NOT_FOUND", ""),
        row("a PATCH of a source takes an empty body, with and without a content type (D5)")
            .send(&post, json!({"type": created}))
            .succeeds(201)
            .send_bytes(&format!("PATCH {SOURCES}/{created}"), "")
            .answers(200, source(created))
            .call(&format!("PATCH {SOURCES}/{created}"))
            .answers(200, source(created))
            .send(&format!("PATCH {SOURCES}/{created}"), Value::Null)
            .answers(200, source(created))
            .send(&format!("PATCH {SOURCES}/{created}"), json!({"type": null}))
            .answers(200, source(created)),
        row("the type of a source is fixed, and it has no other field")
            .send(&post, json!({"type": created}))
            .succeeds(201)
            .send(&format!("PATCH {SOURCES}/{created}"), json!({"type": updated}))
            .fails(400, "IMMUTABLE", "/type")
            .send(&format!("PATCH {SOURCES}/{created}"), json!({"kind": "x"}))
            .fails(400, "UNKNOWN_FIELD", "/kind")
            .send(&format!("PATCH {SOURCES}/{created}"), json!([]))
            .fails(400, "WRONG_TYPE", ""),
        row("a type is added once (D22)")
            .send(&post, json!({"type": created}))
            .succeeds(201)
            .send(&post, json!({"type": created}))
            .fails(409, "CONFLICT", "")
            .call(&get)
            .answers(200, list(&[source(created)])),
        row("the list of sources is whole: it has no next page, and is empty where nobody wrote (D34)")
            .call(&get)
            .answers(200, list(&[]))
            .send(&post, json!({"type": created}))
            .succeeds(201)
            .send(&post, json!({"type": updated}))
            .succeeds(201)
            .call(&get)
            .answers(200, list(&[source(updated), source(created)])),
        row("a subscription comes with its first source, and goes with its last")
            .call("GET /event_subscriptions/esb_{n}")
            .fails(404, "NOT_FOUND", "")
            .send(&post, json!({"type": created}))
            .succeeds(201)
            .send(&post, json!({"type": updated}))
            .succeeds(201)
            .call("GET /event_subscriptions/esb_{n}")
            .answers(200, subscription(&[source(created), source(updated)]))
            .call("GET /event_subscriptions")
            .succeeds(200)
            .shows("/event_subscriptions/0", subscription(&[source(created), source(updated)]))
            .call(&format!("DELETE {SOURCES}/{created}"))
            .succeeds(204)
            .call("GET /event_subscriptions/esb_{n}")
            .answers(200, subscription(&[source(updated)]))
            .call(&format!("DELETE {SOURCES}/{updated}"))
            .succeeds(204)
            .call("GET /event_subscriptions/esb_{n}")
            .fails(404, "NOT_FOUND", "")
            .call(&get)
            .answers(200, list(&[])),
        row("the same type may be in two subscriptions")
            .send(&post, json!({"type": created}))
            .succeeds(201)
            .send("POST /event_subscriptions/other_{n}/sources", json!({"type": created}))
            .succeeds(201),
        row("a source needs a type")
            .send(&post, json!({}))
            .fails(400, "REQUIRED", "/type")
            .send(&post, json!({"type": ""}))
            .fails(400, "REQUIRED", "/type")
            .send_bytes(&post, "")
            .fails(400, "SYNTAX", ""),
        row("an unknown source is 404")
            .send(&format!("PATCH {SOURCES}/{created}"), json!({}))
            .fails(404, "NOT_FOUND", "")
            .call(&format!("{get}/{created}"))
            .fails(404, "NOT_FOUND", ""),
        row("the identifier of a subscription is any text of 1 to 255 bytes")
            .send("POST /event_subscriptions/a%20b/sources", json!({"type": created}))
            .fails(400, "INVALID_FORMAT", "")
            .send(&format!("POST /event_subscriptions/{}/sources", "s".repeat(256)), json!({"type": created}))
            .fails(400, "INVALID_FORMAT", "")
            .send(&format!("POST /event_subscriptions/{}/sources", "s".repeat(255)), json!({"type": created}))
            .succeeds(201),
        row("the identifier of a subscription has no prefix of another kind of this service (D20)")
            .send("POST /event_subscriptions/cert_1/sources", json!({"type": created}))
            .fails(400, "INVALID_FORMAT", "")
            .says("has the prefix of a TlsCertificate, not of an EventSubscription")
            .send("POST /event_subscriptions/evsub_{n}/sources", json!({"type": created}))
            .succeeds(201),
        row("bad parameters of the lists")
            .refuses_query("GET /event_subscriptions?limit=-1", "/limit")
            .call(&format!("{get}?limit=1"))
            .fails(400, "PARAMETER", "/limit")
            .says("unknown query parameter `limit`")
            .call(&format!("{get}?before_id={created}"))
            .fails(400, "PARAMETER", "/before_id"),
    ];
    rows.extend(["a.v0", "a1_b.v12", "ip_policy_updated.v0"].map(|kind| {
        row(format!("`{kind}` is an event type (D22)")).send(&post, json!({"type": kind})).answers(201, source(kind))
    }));
    let bad =
        ["a", "a.v", ".v0", "A.v0", "1a.v0", "_a.v0", "a-b.v0", "a.v0.v1", "a.v-1", "a.v0 ", "a.V0", "é.v0", "a/b.v0"];
    rows.extend(bad.map(|kind| {
        row(format!("`{kind}` is no event type"))
            .send(&post, json!({"type": kind}))
            .fails(400, "INVALID_FORMAT", "/type")
            .call("GET /event_subscriptions/esb_{n}")
            .fails(404, "NOT_FOUND", "")
    }));
    rows
}

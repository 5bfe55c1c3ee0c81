//! Who may reconcile through the API, and what is told of it afterwards: the list, and each with its calls (D45).

use serde_json::{Value, json};

use super::reconciliations::{POST, request};
use crate::api::conformance::support::{
    row::{Row, row},
    run::{hold, hold_on},
    samples::with,
};
use crate::support::{manifests::bare_edge, server::Server};

#[test]
fn history() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [permission_rows(), list_rows(), item_rows()].concat()
}

/// The first revision of a server, which no source has made.
const UNKNOWN: &str = "rec_000000000000000000000000001";

/// The manifest of a key.
fn key(spec: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {{name: key-{{n}}}}\nspec: {spec}\n")
}

fn permission_rows() -> Vec<Row> {
    let foreign = key("{owner_id: {admin}, token_file: ../key.token}");
    let own = key("{token_file: ../key.token}");
    let mut rows = vec![
        row("a viewer plans, and applies nothing")
            .send(POST, request(&bare_edge("viewer-{n}", ""), json!({"dry_run": true})))
            .by("viewer")
            .succeeds(200)
            .send(POST, request(&bare_edge("viewer-{n}", ""), json!({})))
            .by("viewer")
            .fails(403, "FORBIDDEN", ""),
        row("an editor reconciles")
            .send(POST, request(&bare_edge("editor-{n}", ""), json!({})))
            .by("editor")
            .succeeds(201)
            .shows("/reconciliation/key_id", json!("{editor_key}"))
            .shows("/reconciliation/owner_id", json!("{editor}")),
        row("an editor makes no key for another owner, and does not plan one either")
            .send(POST, request(&foreign, json!({"dry_run": true})))
            .by("editor")
            .fails(403, "FORBIDDEN", "")
            .send(POST, request(&foreign, json!({})))
            .by("editor")
            .fails(403, "FORBIDDEN", "")
            .send(POST, request(&own, json!({"dry_run": true})))
            .by("editor")
            .succeeds(200),
        row("a new key needs the hash of its token")
            .send(POST, request(&foreign, json!({"dry_run": true})))
            .succeeds(200)
            .keep("key", "/plan/changes/0/id")
            .send(POST, request(&foreign, json!({"token_hashes": {}})))
            .fails(400, "REQUIRED", "/token_hashes/{key}")
            .says("{key}")
            .call("GET /api_keys/{key}")
            .fails(404, "NOT_FOUND", ""),
        row("the collection of reconciliations has GET and POST")
            .call("DELETE /reconciliations")
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .carries("Allow", "GET,HEAD,POST")
            .send_bytes("PUT /reconciliations", "{")
            .without("Authorization")
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .carries("Allow", "GET,HEAD,POST"),
        row("a reconciliation has GET alone: what happened is not changed")
            .call("DELETE /reconciliations/rec_000000000000000000000000002")
            .fails(405, "METHOD_NOT_ALLOWED", "")
            .carries("Allow", "GET,HEAD"),
    ];
    rows.extend([POST, "GET /reconciliations", "GET /reconciliations/rec_000000000000000000000000002"].map(|call| {
        row(format!("{call} asks for a token and a version"))
            .send_bytes(call, "{")
            .without("Authorization")
            .fails(401, "UNAUTHENTICATED", "")
            .carries("WWW-Authenticate", "Bearer")
            .send_bytes(call, "{")
            .without("Service-Version")
            .fails(400, "VERSION_HEADER", "")
            .says("Service-Version: 2")
    }));
    rows
}

fn list_rows() -> Vec<Row> {
    let list = "GET /reconciliations";
    let two = || {
        row("a list is newest first, a page at a time")
            .send(POST, request(&bare_edge("old-{n}", ""), json!({})))
            .succeeds(201)
            .keep("old", "/reconciliation/id")
            .send(POST, request(&bare_edge("new-{n}", ""), json!({"source": "other-{n}"})))
            .succeeds(201)
            .keep("new", "/reconciliation/id")
    };
    let named = |name: &str| Row { name: name.to_owned(), ..two() };
    let mut rows = vec![
        two()
            .call(list)
            .succeeds(200)
            .carries("Content-Type", "application/json")
            .shows("/uri", json!("{base}/reconciliations"))
            .shows("/reconciliations/0/id", json!("{new}"))
            .shows("/reconciliations/0/source", json!("other-{n}"))
            .shows("/reconciliations/1/id", json!("{old}"))
            .shows("/reconciliations/1/source", json!("source-{n}"))
            .call("GET /reconciliations?limit=1")
            .succeeds(200)
            .shows("/reconciliations/0/id", json!("{new}"))
            .shows("/next_page_uri", json!("{base}/reconciliations?limit=1&before_id={new}"))
            .call("GET /reconciliations?limit=1&before_id={new}")
            .succeeds(200)
            .shows("/reconciliations/0/id", json!("{old}"))
            .shows("/uri", json!("{base}/reconciliations"))
            .hides("{new}")
            .call("GET /reconciliations?limit=1000")
            .succeeds(200)
            .shows("/next_page_uri", Value::Null),
        named("what a request of the API has made is in no list")
            .send("POST /ip_restrictions", json!({"type": "api"}))
            .succeeds(201)
            .call("GET /reconciliations?limit=1")
            .succeeds(200)
            .shows("/reconciliations/0/id", json!("{new}")),
        named("a run with nothing to do, a dry run and a refused one are in no list")
            .send(POST, request(&bare_edge("old-{n}", ""), json!({})))
            .succeeds(200)
            .send(POST, request(&bare_edge("third-{n}", ""), json!({"dry_run": true})))
            .succeeds(200)
            .send(POST, request(&bare_edge("new-{n}", ""), json!({})))
            .fails(409, "NOT_DELEGATED", "/files/0/text")
            .call("GET /reconciliations?limit=1")
            .succeeds(200)
            .shows("/reconciliations/0/id", json!("{new}")),
        row("viewers may look").call(list).by("viewer").succeeds(200).call(list).by("editor").succeeds(200),
    ];
    let bad = [
        ("limit=0", "/limit"),
        ("limit=1001", "/limit"),
        ("limit=ten", "/limit"),
        ("limit=1&limit=1", "/limit"),
        ("before_id=", "/before_id"),
        ("before_id=nonsense", "/before_id"),
        ("before_id={new}&before_id={new}", "/before_id"),
    ];
    rows.extend(bad.map(|(query, field)| {
        named(&format!("a list of reconciliations refuses `?{query}`")).call(&format!("{list}?{query}")).fails(
            400,
            "PARAMETER",
            field,
        )
    }));
    rows.push(
        row("a revision that no source has made is no place to go on from")
            .call(&format!("{list}?before_id={UNKNOWN}"))
            .fails(400, "PARAMETER", "/before_id"),
    );
    rows
}

fn item_rows() -> Vec<Row> {
    let mut rows = vec![
        row("a reconciliation is told with its calls, as often as it is asked for")
            .send(POST, request(&bare_edge("told-{n}", ""), json!({"commit": "c0ffee"})))
            .succeeds(201)
            .keep("id", "/reconciliation/id")
            .call("GET /reconciliations/{id}")
            .by("viewer")
            .succeeds(200)
            .carries("Content-Type", "application/json")
            .keep_etag("etag")
            .shows("/id", json!("{id}"))
            .shows("/uri", json!("{base}/reconciliations/{id}"))
            .shows("/created_at", json!("{time}"))
            .shows("/source", json!("source-{n}"))
            .shows("/commit", json!("c0ffee"))
            .shows("/key_id", json!("{admin_key}"))
            .shows("/owner_id", json!("{admin}"))
            .shows("/operations", json!(1))
            .shows("/calls", json!(["POST /edges/https"]))
            .call("GET /reconciliations/{id}")
            .succeeds(200)
            .carries("ETag", "{etag}"),
        row("what a client has already is not sent again (D25)")
            .send(POST, request(&bare_edge("known-{n}", ""), json!({})))
            .succeeds(201)
            .keep("id", "/reconciliation/id")
            .call("GET /reconciliations/{id}")
            .succeeds(200)
            .keep_etag("etag")
            .call("GET /reconciliations/{id}")
            .with("If-None-Match", "{etag}")
            .succeeds(304)
            .carries("ETag", "{etag}")
            .call("GET /reconciliations/{id}")
            .with("If-None-Match", "\"another\"")
            .succeeds(200)
            .carries("ETag", "{etag}"),
    ];
    let unknown = [UNKNOWN, "rec_1", "rec_999999999999999999999999999", "rec_", "nonsense", "%FF", "2", "{admin_key}"];
    rows.extend(unknown.map(|id| {
        row(format!("there is no reconciliation `{id}`")).call(&format!("GET /reconciliations/{id}")).fails(
            404,
            "NOT_FOUND",
            "",
        )
    }));
    rows
}

/// On a server of its own, where every number is known.
#[test]
fn a_reconciliation_reads_the_same_wherever_it_is_told() {
    let server = Server::start();
    let head = json!({
        "id": "{rec_}", "uri": "{base}/reconciliations/{rec_}", "created_at": "{time}", "revision": 2,
        "source": "source-{n}", "commit": "c0ffee", "key_id": "{editor_key}", "owner_id": "{editor}", "operations": 1,
        "destroyed": false
    });
    let whole = with(head.clone(), json!({"calls": ["POST /edges/https"]}));
    let rows = [row("the first reconciliation of a store")
        .call("GET /reconciliations")
        .answers(200, json!({"reconciliations": [], "uri": "{base}/reconciliations", "next_page_uri": null}))
        .send(POST, request(&bare_edge("one", ""), json!({"commit": "c0ffee"})))
        .by("editor")
        .succeeds(201)
        .shows("/plan/base", json!(1))
        .shows("/applied", json!(2))
        .shows("/reconciliation", whole.clone())
        .carries("Location", "{base}/reconciliations/{rec_}")
        .call("GET /reconciliations/{rec_}")
        .answers(200, whole)
        .call("GET /reconciliations")
        .answers(200, json!({"reconciliations": [head], "uri": "{base}/reconciliations", "next_page_uri": null}))];
    hold_on(&server, &rows);
}

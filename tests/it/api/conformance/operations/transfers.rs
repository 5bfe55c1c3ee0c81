//! `/transfers`: resources move from one source to another and keep their identifiers (D104).

use serde_json::{Value, json};

use super::reconciliations::{POST as RECONCILE, request};
use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
    samples::with,
};
use crate::support::manifests::bare_edge;

#[test]
fn transfers() {
    hold(rows());
}

const POST: &str = "POST /transfers";

/// A transfer of the row's edge from the row's source to another one.
fn transfer(more: Value) -> Value {
    with(json!({"from": "source-{n}", "to": "team-{n}", "resources": ["HttpsEdge/moved-{n}"]}), more)
}

/// A row with an edge that a source owns.
fn owned(name: &str) -> Row {
    row(name)
        .send(RECONCILE, request(&bare_edge("moved-{n}", ""), json!({})))
        .succeeds(201)
        .keep("id", "/plan/changes/0/id")
}

pub(super) fn rows() -> Vec<Row> {
    [moving_rows(), refused_rows(), shape_rows()].concat()
}

fn moving_rows() -> Vec<Row> {
    vec![
        owned("an editor moves an edge, as the dry run showed, and it keeps its id")
            .send(POST, transfer(json!({"dry_run": true})))
            .by("editor")
            .succeeds(200)
            .shows("/command", json!("transfer"))
            .shows("/applied", Value::Null)
            .shows("/plan/changes/0/id", json!("{id}"))
            .shows("/plan/changes/0/calls", json!([]))
            .shows("/plan/changes/0/notes", json!(["transferred from source `source-{n}`"]))
            .keep("outcome", "/outcome")
            .send(POST, transfer(json!({"expect": ""})))
            .fails(400, "INVALID_FORMAT", "/expect")
            .send(POST, transfer(json!({"expect": "another"})))
            .fails(409, "STALE", "/expect")
            .send(POST, transfer(json!({"expect": "{outcome}"})))
            .by("editor")
            .succeeds(201)
            .call("GET /resources/{id}")
            .succeeds(200)
            .shows("/source", json!("team-{n}"))
            .call("GET /history?limit=1")
            .succeeds(200)
            .shows("/history/0/owner_id", json!("{editor}"))
            .send(RECONCILE, request(&bare_edge("moved-{n}", ""), json!({})))
            .fails(409, "OWNER_CONFLICT", "/files/0/text")
            .says("`team-{n}`")
            .send(RECONCILE, request(&bare_edge("moved-{n}", ""), json!({"source": "team-{n}"})))
            .succeeds(201)
            .shows("/plan/changes/0/notes", json!(["now declared by its new source"]))
            .send(RECONCILE, request(&bare_edge("moved-{n}", ""), json!({"source": "team-{n}"})))
            .succeeds(200)
            .shows("/summary/unchanged", json!(1)),
        owned("a transfer can be repeated")
            .send(POST, transfer(json!({})))
            .succeeds(201)
            .send(POST, transfer(json!({})))
            .succeeds(200)
            .shows("/applied", Value::Null),
        owned("a whole source moves").send(POST, transfer(json!({"resources": [], "all": true}))).succeeds(201),
    ]
}

fn refused_rows() -> Vec<Row> {
    vec![
        owned("a viewer plans, and moves nothing")
            .send(POST, transfer(json!({"dry_run": true})))
            .by("viewer")
            .succeeds(200)
            .send(POST, transfer(json!({})))
            .by("viewer")
            .fails(403, "FORBIDDEN", "/from"),
        owned("what a source does not own does not move")
            .send(POST, transfer(json!({"resources": ["HttpsEdge/moved-x"]})))
            .fails(404, "NOT_FOUND", "")
            .send(POST, transfer(json!({"from": "nobody-{n}"})))
            .fails(409, "OWNER_CONFLICT", "")
            .says("source `source-{n}` owns it")
            .send(POST, transfer(json!({"from": "nobody-{n}", "resources": [], "all": true})))
            .fails(404, "NOT_FOUND", "")
            .call("GET /resources/{id}")
            .succeeds(200)
            .shows("/source", json!("source-{n}")),
    ]
}

fn shape_rows() -> Vec<Row> {
    let bad = [
        ("a transfer names both sources", json!({"to": "b", "all": true}), "REQUIRED", "/from"),
        ("a source has a name", json!({"from": " ", "to": "b", "all": true}), "INVALID_FORMAT", "/from"),
        (
            "a source's name is no token",
            json!({"from": "{viewer_token}", "to": "b", "all": true}),
            "NOT_ALLOWED",
            "/from",
        ),
        ("two different sources", json!({"from": "a", "to": "a", "all": true}), "NOT_ALLOWED", "/to"),
        ("nothing is not everything", json!({"from": "a", "to": "b"}), "REQUIRED", "/resources"),
        (
            "some are not all",
            json!({"from": "a", "to": "b", "all": true, "resources": ["edghts_1"]}),
            "NOT_ALLOWED",
            "/resources",
        ),
        ("no more fields", json!({"from": "a", "to": "b", "all": true, "al": 1}), "UNKNOWN_FIELD", "/al"),
    ];
    let mut rows: Vec<Row> = bad
        .into_iter()
        .map(|(name, body, code, field)| row(format!("transfers: {name}")).send(POST, body).fails(400, code, field))
        .collect();
    rows.push(
        row("all that is wrong with a transfer is told at once (D9)")
            .send(POST, json!({"from": "a", "to": "a", "all": true, "al": 1}))
            .fails(400, "UNKNOWN_FIELD", "/al")
            .also("NOT_ALLOWED", "/to"),
    );
    rows.push(
        row("a transfer asks for a token and a version")
            .send_bytes(POST, "{")
            .without("Authorization")
            .fails(401, "UNAUTHENTICATED", "")
            .send_bytes(POST, "{")
            .without("Service-Version")
            .fails(400, "VERSION_HEADER", ""),
    );
    rows
}

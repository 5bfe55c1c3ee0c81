//! The history over the API, who set each field, and rollbacks (D77, D78).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::{hold, hold_on},
};
use crate::support::server::Server;

#[test]
fn revisions() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [history_rows(), refused_rows(), rollback_rows(), origin_rows()].concat()
}

fn origin_rows() -> Vec<Row> {
    let text = "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {name: origin-{n}}\nspec: {type: api}\n";
    let files = json!([{"name": "edge/one.yaml", "text": format!("# first\n{text}")}]);
    let sent = json!({"files": files, "source": "origin-{n}", "commit": "4f2a91c"});
    vec![
        row("the origin of a resource is the manifest that its source applied, whoever changes it later")
            .send("POST /reconciliations", sent)
            .succeeds(201)
            .keep("one", "/plan/changes/0/id")
            .call("GET /resources/{one}")
            .by("viewer")
            .succeeds(200)
            .shows("/kind", json!("IpRestriction"))
            .shows("/path", json!("/ip_restrictions/{one}"))
            .shows("/uri", json!("{base}/ip_restrictions/{one}"))
            .shows("/source", json!("origin-{n}"))
            .shows("/name", json!("origin-{n}"))
            .shows("/file", json!("edge/one.yaml"))
            .shows("/line", json!(5))
            .shows("/commit", json!("4f2a91c"))
            .shows("/changed_by/by", json!("source"))
            .send("PATCH /ip_restrictions/{one}", json!({"description": "by hand"}))
            .by("editor")
            .succeeds(200)
            .call("GET /resources/{one}")
            .succeeds(200)
            .shows("/commit", json!("4f2a91c"))
            .shows("/changed_by/by", json!("api"))
            .shows("/changed_by/owner_id", json!("{editor}"))
            .keep_etag("etag")
            .call("GET /resources/{one}")
            .with("If-None-Match", "{etag}")
            .succeeds(304),
        row("a resource without a source has no file, and what does not exist has no origin")
            .send("POST /ip_restrictions", json!({"type": "api"}))
            .succeeds(201)
            .keep("one", "/id")
            .call("GET /resources/{one}")
            .succeeds(200)
            .shows("/source", json!(""))
            .shows("/file", json!(""))
            .shows("/line", Value::Null)
            .shows("/applied_revision", Value::Null)
            .shows("/changed_by/owner_id", json!("{admin}"))
            .call("DELETE /ip_restrictions/{one}")
            .succeeds(204)
            .call("GET /resources/{one}")
            .fails(404, "NOT_FOUND", "")
            .call("GET /resources/{admin}")
            .fails(404, "NOT_FOUND", "")
            .refuses_query("GET /resources/{one}?at=1", "")
            .says("unknown query parameter `at`"),
    ]
}

fn history_rows() -> Vec<Row> {
    let restriction = |row: Row| {
        row.send("POST /ip_restrictions", json!({"type": "api", "description": "first"}))
            .by("editor")
            .succeeds(201)
            .keep("one", "/id")
            .send("PATCH /ip_restrictions/{one}", json!({"description": "second"}))
            .succeeds(200)
    };
    let of_one = "GET /history?resource=/ip_restrictions/{one}";
    vec![
        restriction(row("the history of a resource is newest first, a page at a time"))
            .call(of_one)
            .by("viewer")
            .succeeds(200)
            .shows("/uri", json!("{base}/history"))
            .shows("/history/0/by", json!("api"))
            .shows("/history/0/owner_id", json!("{admin}"))
            .shows("/history/0/outcome", json!("applied"))
            .shows("/history/0/changed", json!(1))
            .shows("/history/1/key_id", json!("{editor_key}"))
            .shows("/history/1/key_description", json!("the first {editor}"))
            .shows("/next_page_uri", Value::Null)
            .call("GET /history?limit=1&resource=/ip_restrictions/{one}")
            .succeeds(200)
            .keep("record", "/history/0/id")
            .call("GET /history?limit=1&before_id={record}&resource=/ip_restrictions/{one}")
            .succeeds(200)
            .shows("/history/0/owner_id", json!("{editor}"))
            .shows("/next_page_uri", Value::Null),
        restriction(row("the history is filtered by actor and source"))
            .call("GET /history?limit=1&resource=/ip_restrictions/{one}&actor={editor}")
            .succeeds(200)
            .shows("/history/0/key_id", json!("{editor_key}"))
            .shows("/next_page_uri", Value::Null)
            .call("GET /history?resource=/ip_restrictions/{one}&source=nobody")
            .answers(200, json!({"history": [], "uri": "{base}/history", "next_page_uri": null})),
        restriction(row("each field has the revision and actor that set it"))
            .call("GET /history/blame?resource=/ip_restrictions/{one}")
            .by("viewer")
            .succeeds(200)
            .shows("/kind", json!("IpRestriction"))
            .shows("/resource", json!("/ip_restrictions/{one}"))
            .shows("/fields/0/field", json!("/description"))
            .shows("/fields/0/value", json!("second"))
            .shows("/fields/0/owner_id", json!("{admin}"))
            .shows("/fields/2/field", json!("/type"))
            .shows("/fields/2/owner_id", json!("{editor}"))
            .shows("/fields/2/before_revision", Value::Null)
            .call("DELETE /ip_restrictions/{one}")
            .succeeds(204)
            .call("GET /history/blame?resource=/ip_restrictions/{one}")
            .fails(404, "NOT_FOUND", "/resource"),
    ]
}

fn refused_rows() -> Vec<Row> {
    let mut rows: Vec<Row> = ["GET /history", "GET /history/1", "GET /history/blame?resource=/x", "POST /rollbacks"]
        .into_iter()
        .map(|call| {
            row(format!("{call} asks for a token and a version"))
                .send_bytes(call, "{")
                .without("Authorization")
                .fails(401, "UNAUTHENTICATED", "")
                .send_bytes(call, "{")
                .without("Service-Version")
                .fails(400, "VERSION_HEADER", "")
        })
        .collect();
    let bad = [
        ("limt=1", "/limt"),
        ("limit=0", "/limit"),
        ("before_id=0", "/before_id"),
        ("before_id=none", "/before_id"),
        ("before_id=99999999", "/before_id"),
        ("from=-1", "/from"),
        ("to=last", "/to"),
        ("to=1&to=2", "/to"),
        ("actor=", "/actor"),
        ("resource=", "/resource"),
        ("commit=", "/commit"),
        ("commit=abc123", "/commit"),
        ("commit=main123", "/commit"),
    ];
    rows.extend(bad.map(|(query, field)| {
        row(format!("the history refuses `?{query}`")).call(&format!("GET /history?{query}")).fails(
            400,
            "PARAMETER",
            field,
        )
    }));
    rows.extend(["0", "999999", "-1", "last"].map(|revision| {
        row(format!("there is no revision `{revision}` in the history"))
            .call(&format!("GET /history/{revision}"))
            .fails(404, "REVISION_NOT_FOUND", "")
            .says(&format!("revision {revision} does not exist; the store is at revision "))
    }));
    rows.push(row("a path that is no UTF-8 is no revision").call("GET /history/%FF").fails(404, "NOT_FOUND", ""));
    rows.push(
        row("blame asks for a path")
            .refuses_query("GET /history/blame", "/resource")
            .call("GET /history/blame?resource=/ip_restrictions/ipx_unknown")
            .fails(404, "NOT_FOUND", "/resource"),
    );
    rows
}

fn rollback_rows() -> Vec<Row> {
    let post = "POST /rollbacks";
    vec![
        row("a viewer rolls nothing back, but may plan it")
            .send(post, json!({"to": 1, "dry_run": true}))
            .by("viewer")
            .succeeds(200)
            .send(post, json!({"to": 1}))
            .by("viewer")
            .fails(403, "FORBIDDEN", ""),
        row("a rollback names a revision that exists")
            .send(post, json!({}))
            .fails(400, "REQUIRED", "/to")
            .send(post, json!({"to": 999_999}))
            .fails(404, "REVISION_NOT_FOUND", "/to")
            .send(post, json!({"to": 1, "form": true}))
            .fails(400, "UNKNOWN_FIELD", "/form")
            .send_bytes(post, "")
            .fails(400, "SYNTAX", "")
            .send("POST /rollbacks?dry_run=true", json!({"to": 1}))
            .fails(400, "PARAMETER", ""),
    ]
}

/// On a server of its own, where every revision is known: the first one made the keys.
#[test]
fn a_revision_is_told_and_rolled_back_to() {
    hold_on(&Server::start(), &known_rows());
}

pub(crate) fn known_rows() -> Vec<Row> {
    let module = format!("{ROUTE}/webhook_verification");
    let secret = |secret: &str| json!({"provider": "github", "secret": secret});
    let told = row("a revision is told without its secrets")
        .route()
        .send(&format!("PUT {module}"), secret("first-secret"))
        .succeeds(200)
        .send(&format!("PUT {module}"), secret("second-secret"))
        .succeeds(200)
        .call("GET /history/5")
        .by("viewer")
        .succeeds(200)
        .shows("/revision", json!(5))
        .shows("/uri", json!("{base}/history/5"))
        .shows("/calls/0", json!(format!("PUT {module}")))
        .shows("/resources/0/path", json!(ROUTE))
        .shows("/resources/0/before/webhook_verification/secret", json!("(secret)"))
        .shows("/resources/0/after/webhook_verification/secret", json!("(secret, changed)"))
        .hides("-secret")
        .keep_etag("etag")
        .call("GET /history/5")
        .with("If-None-Match", "{etag}")
        .succeeds(304)
        .call("GET /history?from=4&to=5&limit=1")
        .succeeds(200)
        .shows("/history/0/revision", json!(5))
        .shows("/next_page_uri", json!("{base}/history?limit=1&before_id=5&from=4&to=5"))
        .keep("record", "/history/0/id")
        .call("GET /history?from=4&to=5&before_id={record}")
        .succeeds(200)
        .shows("/history/0/revision", json!(4))
        .shows("/next_page_uri", Value::Null)
        .call(&format!("GET /history/blame?resource={ROUTE}"))
        .by("viewer")
        .succeeds(200)
        .hides("-secret");
    let rolled_back = row("a rollback restores a secret, and no other plan than the expected one is applied")
        .send("POST /rollbacks", json!({"to": 4, "dry_run": true}))
        .by("editor")
        .succeeds(200)
        .keep("outcome", "/outcome")
        .shows("/command", json!("rollback"))
        .shows("/summary/change", json!(1))
        .shows("/applied", Value::Null)
        .hides("-secret")
        .send("POST /rollbacks", json!({"to": 4, "expect": ""}))
        .by("editor")
        .fails(400, "INVALID_FORMAT", "/expect")
        .send("POST /rollbacks", json!({"to": 4, "expect": "another"}))
        .by("editor")
        .fails(409, "STALE", "/expect")
        .send("POST /rollbacks", json!({"to": 4, "expect": "{outcome}"}))
        .by("editor")
        .succeeds(201)
        .shows("/applied", json!(6))
        .call("GET /edges/https?at=6")
        .succeeds(200)
        .shows("/https_edges/0/routes/0/webhook_verification/secret", json!("first-secret"))
        .send("POST /rollbacks", json!({"to": 4}))
        .succeeds(200)
        .shows("/applied", Value::Null)
        .call("GET /history/6")
        .succeeds(200)
        .shows("/by", json!("rollback"))
        .shows("/rollback_to", json!(4))
        .shows("/owner_id", json!("{editor}"))
        .call("GET /history?limit=1")
        .succeeds(200)
        .shows("/history/0/revision", json!(6));
    let protected = row("a rollback has the deletion limit")
        .send("POST /rollbacks", json!({"to": 1, "source": "nobody"}))
        .fails(404, "NOT_FOUND", "")
        .send("POST /rollbacks", json!({"to": 1}))
        .fails(409, "TOO_MANY_DELETIONS", "")
        .send("POST /rollbacks", json!({"to": 1, "max_deletes": "2"}))
        .succeeds(201)
        .call("GET /api_keys")
        .succeeds(200);
    vec![told, rolled_back, protected]
}

//! The followed sources over the API, their suspension, and what the history tells of it (D83, D84).

use serde_json::{Value, json};

use super::reconciliations;
use crate::api::conformance::support::{
    row::{Row, row},
    run::hold_on,
};
use crate::support::{manifests::bare_edge, server::Server};

const SUSPEND: &str = "POST /sources/shop/suspend";
const RESUME: &str = "POST /sources/shop/resume";
const SYNC: &str = "POST /sources/shop/sync";
const DESTROY: &str = "POST /sources/shop/destroy";

/// On a server that follows the source `shop`.
#[test]
fn sources() {
    hold_on(&Server::following("shop", &bare_edge("shop", "")), &rows());
}

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![status_row(), sync_row(), suspension_row(), refused_row(), destroy_row()];
    rows.extend(["GET /sources", "GET /sources/shop", SUSPEND, RESUME, SYNC, DESTROY].map(|call| {
        row(format!("{call} asks for a token and a version"))
            .send_bytes(call, "{")
            .without("Authorization")
            .fails(401, "UNAUTHENTICATED", "")
            .send_bytes(call, "{")
            .without("Service-Version")
            .fails(400, "VERSION_HEADER", "")
    }));
    rows
}

fn status_row() -> Row {
    row("a source is listed with its status, and found by its name")
        .call("GET /sources")
        .by("viewer")
        .succeeds(200)
        .carries("Content-Type", "application/json")
        .shows("/uri", json!("{base}/sources"))
        .shows("/sources/0/name", json!("shop"))
        .shows("/sources/0/state", json!("Synced"))
        .call("GET /sources/shop")
        .by("viewer")
        .succeeds(200)
        .shows("/uri", json!("{base}/sources/shop"))
        .shows("/conditions/0/type", json!("Synced"))
        .shows("/last_applied/revision", json!(2))
        .shows("/counts/owned", json!(1))
        .shows("/suspension", Value::Null)
        .call("GET /history?source=shop")
        .succeeds(200)
        .shows("/history/0/outcome", json!("applied"))
        .shows("/history/0/revision", json!(2))
        .call("GET /sources/nothing")
        .fails(404, "NOT_FOUND", "")
        .refuses_query("GET /sources?limit=1", "")
        .call("DELETE /sources/shop")
        .fails(405, "METHOD_NOT_ALLOWED", "")
        .carries("Allow", "GET,HEAD")
}

fn sync_row() -> Row {
    row("an editor requests a sync, and a viewer does not")
        .call(SYNC)
        .by("editor")
        .succeeds(200)
        .shows("/name", json!("shop"))
        .shows("/replaced_suspension", Value::Null)
        .call(SYNC)
        .by("viewer")
        .fails(403, "FORBIDDEN", "")
        .call("POST /sources/nothing/sync")
        .fails(404, "NOT_FOUND", "")
        .call("GET /sources/shop/sync")
        .fails(405, "METHOD_NOT_ALLOWED", "")
}

fn suspension_row() -> Row {
    row("an editor suspends and resumes a source, and the history tells who did it and why")
        .send(SUSPEND, json!({"reason": "an emergency fix", "until": "2999-01-31T18:00:00Z"}))
        .by("editor")
        .succeeds(200)
        .shows("/name", json!("shop"))
        .shows("/suspension/reason", json!("an emergency fix"))
        .shows("/suspension/by", json!("{editor}"))
        .shows("/suspension/since", json!("{time}"))
        .shows("/suspension/until", json!("2999-01-31T18:00:00Z"))
        .shows("/replaced_suspension", Value::Null)
        .call("GET /history?source=shop&limit=1")
        .by("viewer")
        .succeeds(200)
        .shows("/history/0/outcome", json!("suspended"))
        .shows("/history/0/source", json!("shop"))
        .shows("/history/0/message", json!("an emergency fix (until 2999-01-31T18:00:00Z)"))
        .shows("/history/0/by", json!("api"))
        .shows("/history/0/owner_id", json!("{editor}"))
        .shows("/history/0/revision", Value::Null)
        .shows("/history/0/uri", json!(""))
        // A further suspension replaces it, and says so.
        .send(SUSPEND, json!({"reason": "a longer fix"}))
        .succeeds(200)
        .shows("/suspension/reason", json!("a longer fix"))
        .shows("/suspension/until", json!(""))
        .shows("/replaced_suspension/reason", json!("an emergency fix"))
        .shows("/replaced_suspension/by", json!("{editor}"))
        .shows("/replaced_suspension/until", json!("2999-01-31T18:00:00Z"))
        .call("GET /sources/shop")
        .succeeds(200)
        .shows("/suspension/reason", json!("a longer fix"))
        .shows("/replaced_suspension", Value::Null)
        .call(RESUME)
        .succeeds(200)
        .shows("/suspension", Value::Null)
        .shows("/replaced_suspension/reason", json!("a longer fix"))
        // There is nothing to resume any more, and nothing to record.
        .call(RESUME)
        .succeeds(200)
        .shows("/replaced_suspension", Value::Null)
        .call("GET /history?source=shop")
        .succeeds(200)
        .shows("/history/0/outcome", json!("resumed"))
        .shows("/history/0/message", json!(""))
        .shows("/history/0/key_id", json!("{admin_key}"))
        .shows("/history/1/outcome", json!("suspended"))
        .shows("/history/1/message", json!("a longer fix"))
        .shows("/history/2/message", json!("an emergency fix (until 2999-01-31T18:00:00Z)"))
        .call("GET /history?actor={editor}")
        .succeeds(200)
        .shows("/history/0/outcome", json!("suspended"))
}

fn refused_row() -> Row {
    let past = json!({"reason": "x", "until": "2020-01-01T00:00:00Z"});
    row("a suspension has a reason and a source, and viewers neither begin nor end one")
        .send(SUSPEND, json!({"reason": "x"}))
        .by("viewer")
        .fails(403, "FORBIDDEN", "")
        .call(RESUME)
        .by("viewer")
        .fails(403, "FORBIDDEN", "")
        .send_bytes(SUSPEND, "")
        .fails(400, "SYNTAX", "")
        .send(SUSPEND, json!({}))
        .fails(400, "REQUIRED", "/reason")
        .send(SUSPEND, json!({"reason": " "}))
        .fails(400, "REQUIRED", "/reason")
        .send(SUSPEND, past)
        .fails(400, "OUT_OF_RANGE", "/until")
        .send(SUSPEND, json!({"reason": "x", "until": "soon"}))
        .fails(400, "INVALID_FORMAT", "/until")
        .send(SUSPEND, json!({"reason": "x", "for": "2h"}))
        .fails(400, "UNKNOWN_FIELD", "/for")
        .send("POST /sources/nothing/suspend", json!({"reason": "x"}))
        .fails(404, "NOT_FOUND", "")
        .call("POST /sources/nothing/resume")
        .fails(404, "NOT_FOUND", "")
        .send(RESUME, json!({"accept_commit": "main"}))
        .fails(400, "INVALID_FORMAT", "/accept_commit")
        .send(RESUME, json!({"accept_commit": "4f2a9c51d0b7e38642f1a5c9e0d3b7864f2a9c51"}))
        .fails(400, "NOT_ALLOWED", "/accept_commit")
        .says("not in a Git repository")
        .send(RESUME, json!({"commit": "main"}))
        .fails(400, "UNKNOWN_FIELD", "/commit")
        .call("GET /sources/shop")
        .succeeds(200)
        .shows("/suspension", Value::Null)
}

fn destroy_row() -> Row {
    let manifests = json!({"files": [{"name": "a.yaml", "text": bare_edge("ending", "")}], "source": "ending"});
    let ending = "POST /sources/ending/destroy";
    row("a source that nobody follows is destroyed as a dry run has shown, and by no viewer")
        .send(reconciliations::POST, manifests)
        .succeeds(201)
        .send(ending, json!({"dry_run": true}))
        .by("viewer")
        .succeeds(200)
        .send(ending, json!({"expect": "anything"}))
        .by("viewer")
        .fails(403, "FORBIDDEN", "")
        .send(ending, json!({}))
        .fails(400, "REQUIRED", "/expect")
        .send(ending, json!({"expect": ""}))
        .fails(400, "REQUIRED", "/expect")
        .send(ending, json!({"dry_run": true, "force": true}))
        .fails(400, "UNKNOWN_FIELD", "/force")
        .send_bytes(ending, "")
        .fails(400, "SYNTAX", "")
        .send("POST /sources/ending/destroy?dry_run=true", json!({"dry_run": true}))
        .fails(400, "PARAMETER", "")
        .send("POST /sources/nothing/destroy", json!({"dry_run": true}))
        .fails(404, "NOT_FOUND", "")
        .send(DESTROY, json!({"dry_run": true}))
        .succeeds(200)
        .shows("/refusals/0/code", json!("ERR_EDGEWRIGHT_CONFLICT"))
        .keep("outcome", "/outcome")
        .send(DESTROY, json!({"expect": "{outcome}"}))
        .fails(409, "CONFLICT", "")
        .send(ending, json!({"dry_run": true, "max_deletes": "0"}))
        .succeeds(200)
        .shows("/refusals/0/code", json!("ERR_EDGEWRIGHT_TOO_MANY_DELETIONS"))
        .send(ending, json!({"dry_run": true}))
        .by("editor")
        .succeeds(200)
        .shows("/command", json!("destroy"))
        .shows("/summary/delete", json!(1))
        .shows("/applied", Value::Null)
        .keep("outcome", "/outcome")
        .send(ending, json!({"expect": "another"}))
        .by("editor")
        .fails(409, "STALE", "/expect")
        .send(ending, json!({"expect": "{outcome}"}))
        .by("editor")
        .succeeds(201)
        .call("GET /history?source=ending&limit=1")
        .succeeds(200)
        .shows("/history/0/by", json!("source"))
        .shows("/history/0/destroyed", json!(true))
        .shows("/history/0/owner_id", json!("{editor}"))
        .call("GET /sources/ending")
        .fails(404, "NOT_FOUND", "")
        .send(ending, json!({"expect": "{outcome}"}))
        .fails(404, "NOT_FOUND", "")
}

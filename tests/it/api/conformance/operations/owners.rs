//! The owners of API keys and their roles, which only admins read and set (D23).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};

#[test]
fn owners() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    vec![read_row(), role_row(), last_admin_row(), permission_row(), refused_row(), precondition_row()]
}

/// A row with an owner of its own, who has a key.
fn with_owner(name: &str) -> Row {
    row(name)
        .send("POST /api_keys", json!({"owner_id": "bot_owner{n}"}))
        .succeeds(201)
        .keep("owner", "/owner_id")
        .keep("token", "/token")
}

fn read_row() -> Row {
    with_owner("an admin lists and reads owners with their roles")
        .call("GET /owners?limit=1")
        .succeeds(200)
        .shows("/owners/0/id", json!("{owner}"))
        .shows("/owners/0/role", json!("editor"))
        .shows("/uri", json!("{base}/owners"))
        .shows("/next_page_uri", json!("{base}/owners?limit=1&before_id={owner}"))
        .call("GET /owners")
        .succeeds(200)
        .shows("/next_page_uri", Value::Null)
        .call("GET /owners/{owner}")
        .answers(
            200,
            json!({"id": "{owner}", "uri": "{base}/owners/{owner}", "created_at": "{time}", "role": "editor"}),
        )
        .keep_etag("etag")
        .call("GET /owners/{owner}")
        .with("If-None-Match", "{etag}")
        .succeeds(304)
}

fn role_row() -> Row {
    with_owner("a new role counts at once for the keys that the owner has")
        .send("PATCH /owners/{owner}", json!({"role": "viewer"}))
        .succeeds(200)
        .shows("/id", json!("{owner}"))
        .shows("/role", json!("viewer"))
        .send("POST /ip_restrictions", json!({"type": "api"}))
        .by("{token}")
        .fails(403, "FORBIDDEN", "")
        .call("GET /history?limit=1")
        .succeeds(200)
        .shows("/history/0/owner_id", json!("{admin}"))
        .send("PATCH /owners/{owner}", json!({"role": "gateway"}))
        .succeeds(200)
        .call("GET /edges/https")
        .by("{token}")
        .fails(403, "FORBIDDEN", "")
        .send("PATCH /owners/{owner}", json!({"role": "admin"}))
        .succeeds(200)
        .call("GET /owners")
        .by("{token}")
        .succeeds(200)
        // The other rows have one admin.
        .send("PATCH /owners/{owner}", json!({"role": "editor"}))
        .by("{token}")
        .succeeds(200)
}

fn last_admin_row() -> Row {
    row("the last admin stays one")
        .send("PATCH /owners/{admin}", json!({"role": "editor"}))
        .fails(409, "LAST_ADMIN", "")
        .call("GET /owners/{admin}")
        .succeeds(200)
        .shows("/role", json!("admin"))
}

fn permission_row() -> Row {
    let role = json!({"role": "admin"});
    let mut row = row("nobody but an admin reads owners or sets a role")
        .call("GET /owners")
        .without("Authorization")
        .fails(401, "UNAUTHENTICATED", "")
        .send("PATCH /owners/{editor}", role.clone())
        .without("Authorization")
        .fails(401, "UNAUTHENTICATED", "");
    for who in ["editor", "viewer"] {
        for path in ["/owners", "/owners/{editor}"] {
            row = row.call(&format!("GET {path}")).by(who).fails(403, "FORBIDDEN", "");
        }
        row = row.send("PATCH /owners/{editor}", role.clone()).by(who).fails(403, "FORBIDDEN", "");
    }
    row
}

fn refused_row() -> Row {
    const PATCH: &str = "PATCH /owners/{editor}";
    row("a role is one of four, and of an owner that exists")
        .call("GET /owners/usr_nobody")
        .fails(404, "NOT_FOUND", "")
        .send("PATCH /owners/usr_nobody", json!({"role": "viewer"}))
        .fails(404, "NOT_FOUND", "")
        .send(PATCH, json!({"role": "boss"}))
        .fails(400, "UNKNOWN_VALUE", "/role")
        .send(PATCH, json!({}))
        .fails(400, "REQUIRED", "/role")
        .send(PATCH, json!({"role": "viewer", "name": "x"}))
        .fails(400, "UNKNOWN_FIELD", "/name")
        .send_bytes(PATCH, "")
        .fails(400, "SYNTAX", "")
        .send("PATCH /owners/{editor}?role=viewer", json!({"role": "viewer"}))
        .fails(400, "PARAMETER", "")
        .refuses_query("GET /owners?before_id=usr_nobody", "/before_id")
        .call("DELETE /owners/{editor}")
        .fails(405, "METHOD_NOT_ALLOWED", "")
}

fn precondition_row() -> Row {
    with_owner("a role is only set if the owner is as the client has read it")
        .call("GET /owners/{owner}")
        .succeeds(200)
        .keep_etag("etag")
        .send("PATCH /owners/{owner}", json!({"role": "viewer"}))
        .with("If-Match", "{etag}")
        .succeeds(200)
        .send("PATCH /owners/{owner}", json!({"role": "admin"}))
        .with("If-Match", "{etag}")
        .fails(412, "PRECONDITION_FAILED", "")
        .call("GET /owners/{owner}")
        .succeeds(200)
        .shows("/role", json!("viewer"))
        .send("PATCH /owners/usr_nobody", json!({"role": "viewer"}))
        .with("If-Match", "*")
        .fails(412, "PRECONDITION_FAILED", "")
}

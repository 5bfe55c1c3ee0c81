//! API keys: the token that is shown once, owners and roles (D23), and the last admin key.

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
    samples::with,
};

#[test]
fn api_keys() {
    hold(rows());
}

/// Each of these takes the last admin key away, or nearly: they need a server of their own.
#[test]
fn the_last_admin_key_stays() {
    hold(last_admin_rows());
}

fn key(changes: Value) -> Value {
    let base = json!({
        "id": "{ak_}", "uri": "{base}/api_keys/{ak_}", "description": "", "metadata": "", "created_at": "{time}",
        "token": null, "owner_id": "{admin}"
    });
    with(base, changes)
}

pub(super) fn rows() -> Vec<Row> {
    [create_rows(), change_rows(), owner_rows()].concat()
}

fn create_rows() -> Vec<Row> {
    vec![
        row("a key is created with its token, which is null ever after")
            .send("POST /api_keys", json!({"description": "ci", "metadata": "{\"a\": 1}"}))
            .answers(201, key(json!({"description": "ci", "metadata": "{\"a\": 1}", "token": "{token}"})))
            .keep_etag("etag")
            .call("GET /api_keys/{ak_}")
            .answers(200, key(json!({"description": "ci", "metadata": "{\"a\": 1}"})))
            .carries("ETag", "{etag}")
            .hides("{token}")
            .send("PATCH /api_keys/{ak_}", json!({"description": "cd"}))
            .answers(200, key(json!({"description": "cd", "metadata": "{\"a\": 1}"})))
            .call("GET /api_keys")
            .succeeds(200)
            .shows("/keys/0", key(json!({"description": "cd", "metadata": "{\"a\": 1}"})))
            .hides("{token}"),
        row("a key needs no field at all")
            .send("POST /api_keys", json!({}))
            .answers(201, key(json!({"token": "{token}"}))),
        row("null fields of a key are not given (D6)")
            .send("POST /api_keys", json!({"description": null, "metadata": null, "owner_id": null}))
            .answers(201, key(json!({"token": "{token}"}))),
        row("an empty owner is not given")
            .send("POST /api_keys", json!({"owner_id": ""}))
            .answers(201, key(json!({"token": "{token}"}))),
        row("the token of a new key works, and a deleted one does not")
            .send("POST /api_keys", json!({}))
            .answers(201, key(json!({"token": "{token}"})))
            .call("GET /api_keys/{ak_}")
            .by("{token}")
            .succeeds(200)
            .call("DELETE /api_keys/{ak_}")
            .succeeds(204)
            .call("GET /api_keys")
            .by("{token}")
            .fails(401, "UNAUTHENTICATED", "")
            .carries("WWW-Authenticate", "Bearer")
            .call("GET /api_keys/{ak_}")
            .fails(404, "NOT_FOUND", ""),
        row("a key has no body but an object").send_bytes("POST /api_keys", "").fails(400, "SYNTAX", ""),
        row("a token cannot be chosen").send("POST /api_keys", json!({"token": "ew_mine"})).fails(
            400,
            "UNKNOWN_FIELD",
            "/token",
        ),
        row("an unknown field of a key is refused, and the nearest suggested")
            .send("POST /api_keys", json!({"descripton": "ci"}))
            .fails(400, "UNKNOWN_FIELD", "/descripton")
            .says("did you mean `description`?"),
        row("a description is text").send("POST /api_keys", json!({"description": 5})).fails(
            400,
            "WRONG_TYPE",
            "/description",
        ),
    ]
}

fn change_rows() -> Vec<Row> {
    let made =
        |name: &str| row(name).given("key", "POST /api_keys", json!({"description": "before", "metadata": "kept"}));
    vec![
        made("a PATCH of a key changes what it names and leaves the rest")
            .send("PATCH /api_keys/{key}", json!({"description": "after", "metadata": null}))
            .succeeds(200)
            .shows("/description", json!("after"))
            .shows("/metadata", json!("kept"))
            .send("PATCH /api_keys/{key}", json!({}))
            .succeeds(200)
            .shows("/description", json!("after"))
            .send("PATCH /api_keys/{key}", json!({"description": ""}))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!("kept")),
        made("the owner of a key is fixed")
            .send("PATCH /api_keys/{key}", json!({"owner_id": "{editor}"}))
            .fails(400, "IMMUTABLE", "/owner_id")
            .call("GET /api_keys/{key}")
            .succeeds(200)
            .shows("/owner_id", json!("{admin}")),
        made("a null owner is not given in a PATCH")
            .send("PATCH /api_keys/{key}", json!({"owner_id": null, "description": "after"}))
            .succeeds(200)
            .shows("/description", json!("after")),
        made("a token is no field of a PATCH").send("PATCH /api_keys/{key}", json!({"token": "x"})).fails(
            400,
            "UNKNOWN_FIELD",
            "/token",
        ),
        row("a field that is fixed at creation is not suggested for a misspelt one")
            .given("key", "POST /api_keys", json!({}))
            .send("PATCH /api_keys/{key}", json!({"owner": "usr_other"}))
            .fails(400, "UNKNOWN_FIELD", "/owner")
            .hides("owner_id")
            .send("PATCH /api_keys/{key}", json!({"descripton": "x", "owner_id": "usr_other"}))
            .fails(400, "UNKNOWN_FIELD", "/descripton")
            .also("IMMUTABLE", "/owner_id")
            .says("did you mean `description`?"),
        row("an unknown key is 404")
            .call("GET /api_keys/ak_unknown")
            .fails(404, "NOT_FOUND", "")
            .send("PATCH /api_keys/ak_unknown", json!({"description": "x"}))
            .fails(404, "NOT_FOUND", "")
            .call("DELETE /api_keys/ak_unknown")
            .fails(404, "NOT_FOUND", ""),
        row("the list of keys takes a limit from 1").refuses_query("GET /api_keys?limit=0", "/limit"),
    ]
}

fn owner_rows() -> Vec<Row> {
    vec![
        row("a key belongs to whoever creates it")
            .send("POST /api_keys", json!({}))
            .by("editor")
            .answers(201, key(json!({"owner_id": "{editor}", "token": "{token}"}))),
        row("an editor may name itself as the owner")
            .send("POST /api_keys", json!({"owner_id": "{editor}"}))
            .by("editor")
            .succeeds(201)
            .shows("/owner_id", json!("{editor}")),
        row("an editor may not create a key for another owner")
            .send("POST /api_keys", json!({"owner_id": "{admin}"}))
            .by("editor")
            .fails(403, "FORBIDDEN", "/owner_id")
            .send("POST /api_keys", json!({"owner_id": "bot_new_{n}"}))
            .by("editor")
            .fails(403, "FORBIDDEN", "/owner_id"),
        row("an admin may, and an owner first named so is an editor")
            .send("POST /api_keys", json!({"owner_id": "bot_ci_{n}"}))
            .succeeds(201)
            .shows("/owner_id", json!("bot_ci_{n}"))
            .keep("token", "/token")
            .send("POST /ip_restrictions", json!({"type": "api"}))
            .by("{token}")
            .succeeds(201)
            .send("POST /api_keys", json!({"owner_id": "{admin}"}))
            .by("{token}")
            .fails(403, "FORBIDDEN", "/owner_id"),
        row("a key that an admin makes for a viewer reads only")
            .send("POST /api_keys", json!({"owner_id": "{viewer}"}))
            .succeeds(201)
            .keep("token", "/token")
            .call("GET /api_keys")
            .by("{token}")
            .succeeds(200)
            .send("POST /api_keys", json!({}))
            .by("{token}")
            .fails(403, "FORBIDDEN", ""),
        row("the owner of a new key gets its role in the same revision")
            .send("POST /api_keys?owner_role=viewer", json!({"owner_id": "bot_role_{n}"}))
            .succeeds(201)
            .keep("token", "/token")
            .call("GET /owners/bot_role_{n}")
            .succeeds(200)
            .shows("/role", json!("viewer"))
            .send("POST /ip_restrictions", json!({"type": "api"}))
            .by("{token}")
            .fails(403, "FORBIDDEN", "")
            .send("POST /api_keys?owner_role=viewer", json!({"owner_id": "bot_role_{n}"}))
            .succeeds(201)
            .send("POST /api_keys?owner_role=admin", json!({"owner_id": "bot_role_{n}"}))
            .fails(409, "CONFLICT", "/owner_role")
            .says("already has the role `viewer`"),
        row("only admins name the role of an owner")
            .send("POST /api_keys?owner_role=editor", json!({}))
            .by("editor")
            .fails(403, "FORBIDDEN", "")
            .send("POST /api_keys?owner_role=admin", json!({"owner_id": "{viewer}"}))
            .by("editor")
            .fails(403, "FORBIDDEN", "")
            .send("POST /api_keys?owner_role=boss", json!({"owner_id": "bot_boss_{n}"}))
            .fails(400, "PARAMETER", "/owner_role")
            .says("must be one of gateway, viewer, planner, editor, admin")
            .call("GET /owners/bot_boss_{n}")
            .fails(404, "NOT_FOUND", ""),
        row("owners are users and bots")
            .send("POST /api_keys", json!({"owner_id": "alice"}))
            .fails(400, "INVALID_FORMAT", "/owner_id")
            .send("POST /api_keys", json!({"owner_id": "usr_"}))
            .fails(400, "INVALID_FORMAT", "/owner_id")
            .send("POST /api_keys", json!({"owner_id": "bot_a b"}))
            .fails(400, "INVALID_FORMAT", "/owner_id"),
    ]
}

fn last_admin_rows() -> Vec<Row> {
    vec![
        row("the last key of an admin cannot be deleted, and an editor deletes no admin's key at all (D99)")
            .call("DELETE /api_keys/{admin_key}")
            .fails(409, "LAST_ADMIN", "")
            .call("DELETE /api_keys/{admin_key}")
            .by("editor")
            .fails(403, "FORBIDDEN", "")
            .says("ask an admin")
            .call("GET /api_keys/{admin_key}")
            .succeeds(200),
        row("with another admin key it can, by itself")
            .send("POST /api_keys", json!({}))
            .succeeds(201)
            .keep("other", "/id")
            .keep("token", "/token")
            .call("DELETE /api_keys/{admin_key}")
            .succeeds(204)
            .call("GET /api_keys")
            .fails(401, "UNAUTHENTICATED", "")
            .call("DELETE /api_keys/{other}")
            .by("{token}")
            .fails(409, "LAST_ADMIN", ""),
    ]
}

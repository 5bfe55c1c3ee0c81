//! New keys for the secrets in the store, which only admins make (D96).

use serde_json::json;

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};

const POST: &str = "POST /store/rekey";

#[test]
fn rekey() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    vec![made_row(), permission_row(), refused_row()]
}

fn made_row() -> Row {
    row("an admin makes data keys, and destroys former ones")
        .call(POST)
        .succeeds(200)
        // The tokens of the three keys.
        .shows("/encrypted_resources", json!(3))
        .shows("/master_key_changed", json!(false))
        .shows("/former_keys/0/until", json!("{time}"))
        .shows("/destroyed_key_ids", json!([]))
        .carries("Content-Type", "application/json")
        .keep("first", "/data_key_id")
        .keep("master", "/master_key_id")
        .send(POST, json!({}))
        .succeeds(200)
        .shows("/former_keys/1/id", json!("{first}"))
        .keep("second", "/data_key_id")
        .send(POST, json!({"forget_secrets": null}))
        .succeeds(200)
        .shows("/former_keys/2/id", json!("{second}"))
        .shows("/destroyed_key_ids", json!([]))
        .send(POST, json!({"forget_secrets": true}))
        .succeeds(200)
        .shows("/former_keys", json!([]))
        .shows("/destroyed_key_ids/1", json!("{first}"))
        .shows("/destroyed_key_ids/2", json!("{second}"))
        .shows("/master_key_id", json!("{master}"))
        .call("GET /api_keys")
        .by("editor")
        .succeeds(200)
}

fn permission_row() -> Row {
    let mut row = row("nobody but an admin makes new keys")
        .call(POST)
        .without("Authorization")
        .fails(401, "UNAUTHENTICATED", "")
        .call(POST)
        .without("Service-Version")
        .fails(400, "VERSION_HEADER", "");
    for who in ["editor", "viewer"] {
        row = row.send_bytes(POST, "{").by(who).fails(403, "FORBIDDEN", "");
    }
    row
}

fn refused_row() -> Row {
    row("a rekey has one field, and no parameters")
        .send(POST, json!({"forget_secrets": "yes"}))
        .fails(400, "WRONG_TYPE", "/forget_secrets")
        .send(POST, json!({"forget": true}))
        .fails(400, "UNKNOWN_FIELD", "/forget")
        .send_bytes(POST, "null")
        .fails(400, "WRONG_TYPE", "")
        .send(POST, json!([]))
        .fails(400, "WRONG_TYPE", "")
        .send_bytes(POST, "{")
        .fails(400, "SYNTAX", "")
        .send_bytes(POST, "{}")
        .with("Content-Type", "text/plain")
        .fails(415, "CONTENT_TYPE", "")
        .refuses_query("POST /store/rekey?forget_secrets=true", "")
        .call("GET /store/rekey")
        .fails(405, "METHOD_NOT_ALLOWED", "")
        .carries("Allow", "POST")
}

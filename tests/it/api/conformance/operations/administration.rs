//! What administration of a running server needs beside the resources: the caller, exports and traces (D105).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
};

const TRACE: &str = "POST /trace";

#[test]
fn administration() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    vec![caller_row(), export_row(), adopted_row(), trace_row(), refused_trace_row(), routing_row()]
}

fn caller_row() -> Row {
    let mut row = row("a caller learns its key, owner and role")
        .send("POST /api_keys", json!({"owner_id": "bot_caller{n}"}))
        .succeeds(201)
        .keep("key", "/id")
        .keep("token", "/token")
        .call("GET /whoami")
        .by("{token}")
        .answers(200, json!({"key_id": "{key}", "owner_id": "bot_caller{n}", "role": "editor"}))
        // Every role can ask, also one that can read no resource.
        .send("PATCH /owners/bot_caller{n}", json!({"role": "gateway"}))
        .succeeds(200)
        .call("GET /whoami")
        .by("{token}")
        .succeeds(200)
        .shows("/role", json!("gateway"))
        .call("GET /export")
        .by("{token}")
        .fails(403, "FORBIDDEN", "")
        .send(TRACE, json!({"url": "a.example"}))
        .by("{token}")
        .fails(403, "FORBIDDEN", "");
    for who in ["admin", "viewer"] {
        row = row.call("GET /whoami").by(who).succeeds(200).shows("/role", json!(who));
    }
    row.call("GET /whoami")
        .without("Authorization")
        .fails(401, "UNAUTHENTICATED", "")
        .call("GET /whoami")
        .without("Service-Version")
        .fails(400, "VERSION_HEADER", "")
        .refuses_query("GET /whoami?verbose=true", "")
        .call("POST /whoami")
        .fails(405, "METHOD_NOT_ALLOWED", "")
}

fn export_row() -> Row {
    row("an export has the parameters of the command")
        .call("GET /export?source=nothing-{n}")
        .by("viewer")
        .succeeds(200)
        .shows("/files", json!([]))
        .shows("/variables", json!([]))
        .refuses_query("GET /export?adapt=true", "/adapt")
        .says("did you mean `adopt`?")
        .refuses_query("GET /export?adopt=yes", "/adopt")
        .refuses_query("GET /export?adopt=true&adopt=true", "/adopt")
        .call("GET /export")
        .without("Authorization")
        .fails(401, "UNAUTHENTICATED", "")
}

fn adopted_row() -> Row {
    row("an export has no secret, also for an admin")
        .route()
        .send(
            "PUT /edges/https/{edge}/routes/{route}/webhook_verification",
            json!({"provider": "github", "secret": "hunter2-{n}"}),
        )
        .succeeds(200)
        .call("GET /export?source=nothing-{n}&adopt=true")
        .succeeds(200)
        .says("from_env")
        .hides("hunter2")
}

fn trace_row() -> Row {
    row("a viewer traces a request")
        .given("edge", "POST /edges/https", json!({"hostports": ["trace{n}.example:443"]}))
        .given(
            "route",
            "POST /edges/https/{edge}/routes",
            json!({"match_type": "path_prefix", "match": "/cart", "backend": {"backend_id": "bkd_1"}}),
        )
        .send(TRACE, json!({"url": "https://trace{n}.example/cart/1"}))
        .by("viewer")
        .succeeds(200)
        .shows("/request", json!("GET trace{n}.example:443/cart/1"))
        .shows("/edge/id", json!("{edge}"))
        .shows("/edge/name", Value::Null)
        .shows("/tls/certificate_id", Value::Null)
        .shows("/routes/0/id", json!("{route}"))
        .shows("/routes/0/taken", json!(true))
        .shows("/modules/0/module", json!("backend"))
        .send(TRACE, json!({"url": "https://trace{n}.example/", "method": "POST"}))
        .by("viewer")
        .succeeds(200)
        .shows("/routes/0/taken", json!(false))
        .shows("/modules", json!([]))
        .send(TRACE, json!({"url": "elsewhere{n}.example"}))
        .succeeds(200)
        .shows("/edge", Value::Null)
}

fn routing_row() -> Row {
    row("what routes requests has no secret, also for an admin")
        .route()
        .send(
            "PUT /edges/https/{edge}/routes/{route}/webhook_verification",
            json!({"provider": "github", "secret": "hunter3-{n}"}),
        )
        .succeeds(200)
        .call("GET /routing")
        .by("viewer")
        .succeeds(200)
        .says("webhook_verification")
        .call("GET /routing")
        .succeeds(200)
        .says("{route}")
        .hides("hunter3")
        .call("GET /routing?at=999999")
        .fails(404, "REVISION_NOT_FOUND", "/at")
        .refuses_query("GET /routing?at=yesterday", "/at")
        .refuses_query("GET /routing?edge=x", "/edge")
}

fn refused_trace_row() -> Row {
    row("a trace needs a URL")
        .send(TRACE, json!({}))
        .fails(400, "REQUIRED", "/url")
        .send(TRACE, json!({"url": "ftp://a.example"}))
        .fails(400, "INVALID_FORMAT", "/url")
        .send(TRACE, json!({"url": "a.example", "method": "G T"}))
        .fails(400, "INVALID_FORMAT", "/method")
        .send(TRACE, json!({"url": "a.example", "client_ip": "localhost"}))
        .fails(400, "INVALID_FORMAT", "/client_ip")
        .send(TRACE, json!({"url": "a.example", "header": []}))
        .fails(400, "UNKNOWN_FIELD", "/header")
        .call(TRACE)
        .fails(400, "SYNTAX", "")
        .send(TRACE, json!({"url": "a.example"}))
        .without("Authorization")
        .fails(401, "UNAUTHENTICATED", "")
}

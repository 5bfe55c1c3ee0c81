//! `/gateway/configuration` in the OpenAPI document.

use serde_json::{Value, json};

use super::{super::openapi::schemas::Schemas, SINCE, view::GatewayConfiguration};

/// The tag of the operation.
pub(in crate::api) const TAG: &str = "Gateway";
/// The path.
pub(in crate::api) const PATH: &str = "/gateway/configuration";

/// The path with its operation. `failures` refers to errors by their statuses.
pub(in crate::api) fn path(schemas: &mut Schemas, failures: &dyn Fn(&[&str]) -> Value) -> (String, Value) {
    let schema = schemas.response::<GatewayConfiguration>();
    let mut responses = failures(&["400", "401", "403", "500"]);
    if let Some(responses) = responses.as_object_mut() {
        let headers = json!({
            "ETag": {"description": "The strong ETag of the revision and its content.", "schema": {"type": "string"}},
            "Cache-Control": {"description": "`no-store`.", "schema": {"type": "string"}},
        });
        responses.insert(
            "200".into(),
            json!({"description": "OK", "headers": headers, "content": {"application/json": {"schema": schema}}}),
        );
        responses.insert(
            "304".into(),
            json!({"description": "Not modified: the client has the current revision (`If-None-Match`)."}),
        );
    }
    let get = json!({
        "operationId": "getGatewayConfiguration",
        "summary": "Get the configuration for a gateway",
        "description": "Returns one revision for the gateway to serve, with private keys and secrets. Only keys with the role `gateway` can read it, and only from the server's own machine. With `since`, the response has what differs from that revision, or everything if that revision is no longer known. Each read is in the audit log.",
        "tags": [TAG],
        "x-extension": true,
        "parameters": [
            {
                "name": SINCE,
                "in": "query",
                "description": "The revision that the client has.",
                "schema": {"type": "string", "pattern": "^[0-9]{1,19}$"},
                "x-extension": true,
            },
            {"name": "If-None-Match", "in": "header", "description": "The ETag of the client's copy.", "schema": {"type": "string"}},
        ],
        "responses": responses,
    });
    (PATH.to_owned(), json!({"get": get}))
}

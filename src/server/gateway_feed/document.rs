//! `/gateway/configuration` in the OpenAPI document.

use serde_json::{Value, json};

use super::{SINCE, view::GatewayConfiguration};
use crate::server::openapi::{extension::ExtensionOperation, schemas::Schemas};

/// The tag of the operation.
pub(in crate::server) const TAG: &str = "Gateway";
/// The path.
pub(in crate::server) const PATH: &str = "/gateway/configuration";

/// The path with its operation.
pub(in crate::server) fn path(schemas: &mut Schemas) -> (String, Value) {
    let get = ExtensionOperation::new(
        TAG,
        "getGatewayConfiguration",
        "Get the configuration for a gateway",
        "Returns one revision for the gateway to serve, with private keys and secrets. Only keys with the role `gateway` can read it, and only from the server's own machine. With `since`, the response has what differs from that revision, or everything if that revision is no longer known. Each read is in the audit log.",
    )
    .parameter(json!({
        "name": SINCE,
        "in": "query",
        "description": "The revision that the client has.",
        "schema": {"type": "string", "pattern": "^[0-9]{1,19}$"},
        "x-extension": true,
    }))
    .ok(schemas.response::<GatewayConfiguration>())
    .conditional()
    .header("200", "Cache-Control", "`no-store`.")
    .fails(&["400", "401", "403", "429", "500", "503"]);
    (PATH.to_owned(), json!({"get": get.build()}))
}

//! `/watch` in the OpenAPI document.

use serde_json::{Value, json};

use crate::server::{openapi::extension::ExtensionOperation, resources::change::public_kinds};

/// The path.
pub(crate) const PATH: &str = "/watch";
/// The tag of the operation.
pub(crate) const TAG: &str = "Changes";

/// The operation.
pub(crate) fn operation() -> Value {
    let kinds: Vec<&str> = public_kinds().map(|info| info.name).collect();
    ExtensionOperation::new(
        TAG,
        "watchChanges",
        "Watch changes",
        "Streams changes of resources as server-sent events: `created`, `updated` or `deleted` for each resource, and `revision` after the last one of a revision. Only `revision` has an id. `error` is the last event of a stream that the server ends because of an error. Without `since`, the stream starts after the current revision.",
    )
    .parameter(json!({"name": "since", "in": "query", "description": "The last revision that the client knows.", "schema": {"type": "integer", "minimum": 0}}))
    .parameter(json!({"name": "kind", "in": "query", "description": format!("Kinds of resources, separated by commas: {}.", kinds.join(", ")), "schema": {"type": "string"}}))
    .parameter(json!({"name": "source", "in": "query", "description": "Names of the sources that own the resources, separated by commas.", "schema": {"type": "string"}}))
    .parameter(json!({"name": "Last-Event-ID", "in": "header", "description": "The id of the last event, to resume a stream. It takes precedence over `since`.", "schema": {"type": "string", "pattern": "^[0-9]*$"}}))
    .responds_with("200", "A stream of events", "text/event-stream", json!({"type": "string"}))
    .fails(&["400", "401", "410", "429", "500", "503"])
    .build()
}

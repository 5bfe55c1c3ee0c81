//! `/watch` in the OpenAPI document.

use serde_json::{Value, json};

use super::super::change::public_kinds;

/// The path.
pub(crate) const PATH: &str = "/watch";
/// The tag of the operation.
pub(crate) const TAG: &str = "Changes";

/// The operation. `failures` refers to errors by their statuses.
pub(crate) fn operation(failures: &dyn Fn(&[&str]) -> Value) -> Value {
    let kinds: Vec<&str> = public_kinds().map(|info| info.name).collect();
    let mut responses = failures(&["400", "401", "410", "500", "503"]);
    if let Some(responses) = responses.as_object_mut() {
        responses.insert(
            "200".into(),
            json!({"description": "A stream of events", "content": {"text/event-stream": {"schema": {"type": "string"}}}}),
        );
    }
    json!({
        "operationId": "watchChanges",
        "summary": "Watch changes",
        "description": "Streams changes of resources as server-sent events: `created`, `updated` or `deleted` for each resource, and `revision` after the last one of a revision. Only `revision` has an id. `error` is the last event of a stream that the server ends because of an error. Without `since`, the stream starts after the current revision.",
        "tags": [TAG],
        "x-extension": true,
        "parameters": [
            {"name": "since", "in": "query", "description": "The last revision that the client knows.", "schema": {"type": "integer", "minimum": 0}},
            {"name": "kind", "in": "query", "description": format!("Kinds of resources, separated by commas: {}.", kinds.join(", ")), "schema": {"type": "string"}},
            {"name": "source", "in": "query", "description": "Names of the sources that own the resources, separated by commas.", "schema": {"type": "string"}},
            {"name": "Last-Event-ID", "in": "header", "description": "The id of the last event, to resume a stream. It takes precedence over `since`.", "schema": {"type": "string", "pattern": "^[0-9]*$"}},
        ],
        "responses": responses,
    })
}

//! `/sources` in the OpenAPI document.

use serde_json::{Value, json};

use super::{
    super::openapi::schemas::Schemas,
    view::{SourceSuspend, SourceView},
};

/// The tag of the operations.
pub(crate) const TAG: &str = "Sources";
const PATH: &str = "/sources";

/// The paths with their operations. `failures` refers to errors by their statuses.
pub(crate) fn paths(schemas: &mut Schemas, failures: &dyn Fn(&[&str]) -> Value) -> Vec<(String, Value)> {
    let one = schemas.response::<SourceView>();
    let suspend = schemas.request::<SourceSuspend>();
    let list = schemas.list("Source", "sources", one.clone(), false);
    let reading = |id: &str, summary: &str, description: &str, schema: Value, statuses: &[&str]| {
        let mut responses = failures(statuses);
        if let Some(responses) = responses.as_object_mut() {
            let etag =
                json!({"ETag": {"description": "The strong ETag of the response.", "schema": {"type": "string"}}});
            responses.insert(
                "200".into(),
                json!({"description": "OK", "headers": etag, "content": {"application/json": {"schema": schema}}}),
            );
            responses.insert(
                "304".into(),
                json!({"description": "Not modified: the client's copy is current (`If-None-Match`)."}),
            );
        }
        json!({
            "operationId": id,
            "summary": summary,
            "description": description,
            "tags": [TAG],
            "x-extension": true,
            "parameters": [
                {"name": "If-None-Match", "in": "header", "description": "The ETag of the client's copy.", "schema": {"type": "string"}},
            ],
            "responses": responses,
        })
    };
    let writing = |id: &str, summary: &str, description: &str, statuses: &[&str]| {
        let mut responses = failures(statuses);
        if let Some(responses) = responses.as_object_mut() {
            let etag =
                json!({"ETag": {"description": "The strong ETag of the response.", "schema": {"type": "string"}}});
            responses.insert(
                "200".into(),
                json!({"description": "OK", "headers": etag, "content": {"application/json": {"schema": one.clone()}}}),
            );
        }
        json!({
            "operationId": id,
            "summary": summary,
            "description": description,
            "tags": [TAG],
            "x-extension": true,
            "responses": responses,
        })
    };
    let mut suspending = writing(
        "suspendSource",
        "Suspend a source",
        "Suspends a source until it is resumed or until a time: the server looks at its manifests and reports what it would change, and applies nothing. Responds after the end of a current run.",
        &["400", "401", "403", "404", "408", "413", "415", "500"],
    );
    if let Some(operation) = suspending.as_object_mut() {
        let example = json!({"reason": "Emergency fix of the checkout route", "until": ""});
        operation.insert(
            "requestBody".into(),
            json!({"required": true, "content": {"application/json": {"schema": suspend, "example": example}}}),
        );
    }
    let resuming = writing(
        "resumeSource",
        "Resume a source",
        "Ends the suspension of a source, if it has one, and looks at its manifests.",
        &["400", "401", "403", "404", "409", "500"],
    );
    let list = reading(
        "listSources",
        "List sources",
        "Returns the sources that the server follows, with their status, in the order of the configuration.",
        list,
        &["400", "401", "500"],
    );
    let get = reading(
        "getSource",
        "Get the status of a source",
        "Returns the status of a source that the server follows: its conditions, the last look and the last one that applied the manifests, the diagnostics with their places, and counts.",
        one.clone(),
        &["400", "401", "404", "500"],
    );
    vec![
        (PATH.to_owned(), json!({"get": list})),
        (format!("{PATH}/{{name}}"), json!({"get": get})),
        (format!("{PATH}/{{name}}/suspend"), json!({"post": suspending})),
        (format!("{PATH}/{{name}}/resume"), json!({"post": resuming})),
    ]
}

//! `/reconciliations` in the OpenAPI document.

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::wire::{Reconciliation, ReconciliationItem, Request, Run};

const PATH: &str = "/reconciliations";
const MANIFEST: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n";

/// An example request.
pub(crate) fn example() -> Value {
    json!({"files": [{"name": "example.yaml", "text": MANIFEST}], "source": "example", "dry_run": true})
}

/// The paths with their operations. `answer` converts a schema to its response form, and `failure` refers to an error.
pub(crate) fn paths(
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
    answer: fn(Value) -> Value,
    failures: &dyn Fn(&[&str]) -> Value,
) -> [(String, Value); 2] {
    let response = |schema: Value, description: &str| json!({"description": description, "content": {"application/json": {"schema": answer(schema)}}});
    let run = answers.subschema_for::<Run>().to_value();
    let one = answers.subschema_for::<Reconciliation>().to_value();
    let item = answer(answers.subschema_for::<ReconciliationItem>().to_value());
    let list = json!({
        "type": "object",
        "properties": {
            "reconciliations": {"type": "array", "items": item},
            "uri": {"type": "string", "description": "URI of the list."},
            "next_page_uri": {"type": ["string", "null"], "description": "URI of the next page; null on the last page."},
        },
        "required": ["reconciliations", "uri", "next_page_uri"],
        "additionalProperties": false,
    });
    let mut created = response(run.clone(), "Applied as a new revision");
    if let Some(created) = created.as_object_mut() {
        created.insert(
            "headers".into(),
            json!({"Location": {"description": "Its address.", "schema": {"type": "string"}}}),
        );
    }
    let with = |responses: &[(&str, Value)], statuses: &[&str]| {
        let mut all = failures(statuses);
        if let Some(all) = all.as_object_mut() {
            all.extend(responses.iter().map(|(status, response)| ((*status).to_owned(), response.clone())));
        }
        all
    };
    let writing = ["400", "401", "403", "408", "409", "413", "415", "500", "503"];
    let post = json!({
        "operationId": "createReconciliation",
        "summary": "Plan manifests and apply the plan as one revision, unless it is a dry run.",
        "description": "A dry run always responds with 200. Its diagnostics and refusals are the errors that would prevent applying the plan.",
        "tags": ["Reconciliation"],
        "x-extension": true,
        "requestBody": {"required": true, "content": {"application/json": {
            "schema": requests.subschema_for::<Request>().to_value(),
            "example": example(),
        }}},
        "responses": with(&[("200", response(run, "Planned, or no changes")), ("201", created)], &writing),
    });
    let get_list = json!({
        "operationId": "listReconciliation",
        "summary": "List the revisions created by sources, newest first.",
        "tags": ["Reconciliation"],
        "x-extension": true,
        "parameters": [
            {"name": "limit", "in": "query", "description": "The number of reconciliations per page.", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
            {"name": "before_id", "in": "query", "description": "Continues after this reconciliation.", "schema": {"type": "string"}},
        ],
        "responses": with(&[("200", json!({"description": "OK", "content": {"application/json": {"schema": list}}}))], &["400", "401", "500"]),
    });
    let mut found = response(one, "OK");
    if let Some(found) = found.as_object_mut() {
        let etag = json!({"ETag": {"description": "The strong ETag of the response.", "schema": {"type": "string"}}});
        found.insert("headers".into(), etag);
    }
    let not_modified = json!({"description": "Not modified: the client's copy is current (`If-None-Match`)."});
    let get = json!({
        "operationId": "getReconciliation",
        "summary": "Get a reconciliation with its calls.",
        "tags": ["Reconciliation"],
        "x-extension": true,
        "parameters": [
            {"name": "If-None-Match", "in": "header", "description": "The ETag of the client's copy.", "schema": {"type": "string"}},
        ],
        "responses": with(&[("200", found), ("304", not_modified)], &["400", "401", "404", "500"]),
    });
    [(PATH.to_owned(), json!({"post": post, "get": get_list})), (format!("{PATH}/{{id}}"), json!({"get": get}))]
}

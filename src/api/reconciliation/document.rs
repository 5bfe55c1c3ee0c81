//! `/reconciliations` in the OpenAPI document.

use serde_json::{Value, json};

use super::{
    super::openapi::schemas::Schemas,
    wire::{Reconciliation, ReconciliationItem, Request, Run},
};

/// The tag of the operations.
pub(crate) const TAG: &str = "Reconciliations";
const PATH: &str = "/reconciliations";
const MANIFEST: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n";

/// An example request.
pub(crate) fn example() -> Value {
    json!({"files": [{"name": "example.yaml", "text": MANIFEST}], "source": "example", "dry_run": true})
}

/// The paths with their operations. `failures` refers to errors by their statuses.
pub(crate) fn paths(schemas: &mut Schemas, failures: &dyn Fn(&[&str]) -> Value) -> [(String, Value); 2] {
    let response = |schema: Value, description: &str| json!({"description": description, "content": {"application/json": {"schema": schema}}});
    let run = schemas.response::<Run>();
    let one = schemas.response::<Reconciliation>();
    let item = schemas.response::<ReconciliationItem>();
    let list = schemas.list("Reconciliation", "reconciliations", item, true);
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
        "summary": "Plan or apply manifests",
        "description": "Plans manifests and applies the plan as one revision, unless `dry_run` is set. A dry run responds with 200: its diagnostics and refusals are the errors that would prevent applying the plan. If the server lacks the text of a file with a `digest`, it responds with 409 and `ERR_EDGEWRIGHT_MISSING_FILES`, plans and changes nothing, and keeps the texts of the request for the next one.",
        "tags": [TAG],
        "x-extension": true,
        "requestBody": {"required": true, "content": {"application/json": {
            "schema": schemas.request::<Request>(),
            "example": example(),
        }}},
        "responses": with(&[("200", response(run, "Planned, or no changes")), ("201", created)], &writing),
    });
    let get_list = json!({
        "operationId": "listReconciliations",
        "summary": "List reconciliations",
        "description": "Returns the revisions that sources created, newest first, one page at a time. `next_page_uri` is the URI of the next page.",
        "tags": [TAG],
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
        "summary": "Get a reconciliation",
        "description": "Returns the reconciliation with its calls, or 304 if the client's copy is current.",
        "tags": [TAG],
        "x-extension": true,
        "parameters": [
            {"name": "If-None-Match", "in": "header", "description": "The ETag of the client's copy.", "schema": {"type": "string"}},
        ],
        "responses": with(&[("200", found), ("304", not_modified)], &["400", "401", "404", "500"]),
    });
    [(PATH.to_owned(), json!({"post": post, "get": get_list})), (format!("{PATH}/{{id}}"), json!({"get": get}))]
}

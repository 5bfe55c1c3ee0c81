//! `/reconciliations` in the OpenAPI document.

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::wire::{Head, Reconciliation, Request, Run};

const PATH: &str = "/reconciliations";
const MANIFEST: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n";

/// An example of a request.
pub fn example() -> Value {
    json!({"files": [{"name": "example.yaml", "text": MANIFEST}], "source": "example", "dry_run": true})
}

/// The paths with their operations. `answer` makes a schema one of a response, and `failure` refers to a failure.
pub fn paths(
    requests: &mut SchemaGenerator,
    answers: &mut SchemaGenerator,
    answer: fn(Value) -> Value,
    failures: &dyn Fn(&[&str]) -> Value,
) -> [(String, Value); 2] {
    let told = |schema: Value, description: &str| json!({"description": description, "content": {"application/json": {"schema": answer(schema)}}});
    let run = answers.subschema_for::<Run>().to_value();
    let one = answers.subschema_for::<Reconciliation>().to_value();
    let item = answer(answers.subschema_for::<Head>().to_value());
    let list = json!({
        "type": "object",
        "properties": {
            "reconciliations": {"type": "array", "items": item},
            "uri": {"type": "string", "description": "Address of the list."},
            "next_page_uri": {"type": ["string", "null"], "description": "Address of the next page; null if there is none."},
        },
        "required": ["reconciliations", "uri", "next_page_uri"],
        "additionalProperties": false,
    });
    let mut created = told(run.clone(), "Applied as a new revision");
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
        "summary": "Plan what manifests ask for, and apply it as one revision unless it is a dry run.",
        "description": "A dry run answers with 200 whatever it finds: its diagnostics and refusals say what an application would be refused for.",
        "tags": ["Reconciliation"],
        "x-extension": true,
        "requestBody": {"required": true, "content": {"application/json": {
            "schema": requests.subschema_for::<Request>().to_value(),
            "example": example(),
        }}},
        "responses": with(&[("200", told(run, "Planned, or nothing to do")), ("201", created)], &writing),
    });
    let get_list = json!({
        "operationId": "listReconciliation",
        "summary": "List the revisions that sources have made, newest first.",
        "tags": ["Reconciliation"],
        "x-extension": true,
        "parameters": [
            {"name": "limit", "in": "query", "description": "Reconciliations on a page.", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}},
            {"name": "before_id", "in": "query", "description": "Continues behind this one.", "schema": {"type": "string"}},
        ],
        "responses": with(&[("200", json!({"description": "OK", "content": {"application/json": {"schema": list}}}))], &["400", "401", "500"]),
    });
    let mut found = told(one, "OK");
    if let Some(found) = found.as_object_mut() {
        let etag = json!({"ETag": {"description": "The strong ETag of this answer.", "schema": {"type": "string"}}});
        found.insert("headers".into(), etag);
    }
    let not_modified = json!({"description": "The client has it already (`If-None-Match`)."});
    let get = json!({
        "operationId": "getReconciliation",
        "summary": "Get one, with its calls.",
        "tags": ["Reconciliation"],
        "x-extension": true,
        "parameters": [
            {"name": "If-None-Match", "in": "header", "description": "The ETag of what the client has.", "schema": {"type": "string"}},
        ],
        "responses": with(&[("200", found), ("304", not_modified)], &["400", "401", "404", "500"]),
    });
    [(PATH.to_owned(), json!({"post": post, "get": get_list})), (format!("{PATH}/{{id}}"), json!({"get": get}))]
}

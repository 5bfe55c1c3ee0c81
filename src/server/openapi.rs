//! The OpenAPI 3.1 document, generated from the types and endpoints of the server.
//!
//! Nobody writes the document, so that it cannot differ from what the server does. The endpoints of resources follow
//! from the kinds and slots of the model: their texts are made from names (`operation_texts`). All other operations
//! describe themselves where they are declared ([`OPERATIONS`]). Schemas come from the types that bodies are parsed
//! into and written from (`schemas`). Both kinds of operations are put together by one builder (`operation_document`),
//! which adds what all of them have: headers, pages, conditions and errors.
//!
//! For example, a module in a new slot appears with `GET`, `PUT` and `DELETE`, its schema and its example, and nothing
//! here changes.

use serde_json::json;

use super::operations::OPERATIONS;
use super::resources::endpoint::{Action, Endpoint, endpoints};
use crate::server::http::error_body::ErrorBody;
use crate::server::prelude::*;
use operation_document::OperationDocument;
use schemas::{Schemas, description_of, redirect};

pub(super) mod operation_document;
mod operation_texts;
pub(crate) mod schemas;
#[cfg(test)]
mod tests;

/// The tags of the operations that no kind has.
const TAGS: [(&str, &str); 13] = [
    ("Reconciliations", "Planning and applying manifests, and the revisions that sources created."),
    ("History", "Who changed what, revision by revision and field by field."),
    ("Rollbacks", "Restoring earlier revisions as new ones."),
    ("Sources", "The sources that the server follows, and whether the store matches their manifests."),
    ("Origin", "The manifests that resources come from."),
    ("Owners", "The owners of API keys, and their roles."),
    ("Changes", "A stream of resource changes."),
    ("Gateway", "The resolved configuration, for the gateway itself."),
    ("Backups", "Backups of the whole store."),
    ("Store", "The keys that encrypt the secrets in the store."),
    ("Administration", "The caller, manifests of the current state, and traces of requests."),
    ("Transfers", "Moving resources from one source to another."),
    ("Service", "Health, metrics and this document. No token or version header is needed."),
];
/// Generates the document. `version_header` is the name of the version header (D4), and `base_path` the path of the base URL
/// without a slash at its end (D13).
pub(crate) fn document(version_header: &str, base_path: &str) -> Value {
    let mut schemas = Schemas::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for endpoint in endpoints() {
        let item = paths.entry(endpoint.path.clone()).or_default();
        item.insert("parameters".into(), path_parameters(&endpoint.path));
        item.insert(endpoint.method.to_lowercase(), operation(&mut schemas, &endpoint));
    }
    for operation in OPERATIONS {
        let Some(described) = operation.document(&mut schemas) else { continue };
        let item = paths.entry(operation.path.into()).or_default();
        item.insert("parameters".into(), path_parameters(operation.path));
        item.insert(operation.method_name().to_owned(), described);
    }
    let responses = failure_responses(&schemas.response::<ErrorBody>());
    let (mut schemas, references) = schemas.finish();
    schemas.sort_keys();
    let server = if base_path.is_empty() { "/" } else { base_path };
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "edgewright management API",
            "version": "2",
            "summary": "API keys, certificates, HTTPS edges, their routes and traffic modules.",
            "description": "Operations, parameters and fields marked `x-extension` extend the API specification. In a request body, null means \"not given\", even for unknown fields, and the body may repeat the path parameters. Unknown and repeated query parameters are rejected with 400, except on `/healthz`, `/readyz` and `/metrics`, which ignore them. The header `Edgewright-Revision` of a successful response has a revision of the store that includes what the response shows or has changed; a request with this number in `If-Revision-At-Least` waits until the server has it, and otherwise fails with 503.",
            "contact": {"name": "The edgewright maintainers"},
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": server}],
        "security": [{"token": [], "version": []}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The token of an API key."},
                "version": {"type": "apiKey", "in": "header", "name": version_header, "description": "The API version: `2`."},
            },
        },
    });
    redirect(&mut document, &references);
    document
}

fn tags() -> Vec<Value> {
    let kinds = Kind::all().filter(|info| endpoints().iter().any(|endpoint| endpoint.kind == info.kind));
    let kinds = kinds
        .map(|info| json!({"name": operation_texts::tag(info.name), "description": description_of(info.spec_schema)}));
    kinds.chain(TAGS.map(|(name, description)| json!({"name": name, "description": description}))).collect()
}

fn operation(schemas: &mut Schemas, endpoint: &Endpoint) -> Value {
    let info = endpoint.kind.info();
    let operation = OperationDocument::new(
        &operation_texts::tag(info.name),
        &operation_texts::operation_id(endpoint),
        &operation_texts::summary(endpoint),
        &operation_texts::description(endpoint),
    );
    let operation = if endpoint.extension { operation.extension() } else { operation };
    let operation = operation.query(endpoint.query_parameters());
    let operation = match endpoint.action {
        Action::Create => overridable(operation)
            .with_body(true, schemas.request_of(info.spec_schema), (info.example)())
            .responds("201", "Created", schemas.response_of(info.view_schema))
            .header("201", "ETag", "The strong ETag of the response.")
            .header("201", "Location", "The URI of the resource.")
            .header("201", WARNING, CHANGE_WARNING),
        Action::List => {
            let items = schemas.response_of(info.view_schema);
            let list = schemas.list(info.name, info.list, items, info.kind.is_paged());
            operation.ok(list).conditional()
        }
        Action::Get => operation.ok(schemas.response_of(info.view_schema)).conditional(),
        Action::GetModule(slot) => operation.ok(schemas.response_of(slot.view_schema)).conditional(),
        Action::Patch => changing(operation)
            .with_body(endpoint.kind != Kind::EventSource, schemas.update_of(info), Some((info.patch_example)()))
            .ok(schemas.response_of(info.view_schema))
            .tagged()
            .header("200", WARNING, CHANGE_WARNING),
        Action::PutModule(slot) => changing(operation)
            .with_body(!slot.empty_is_harmless, schemas.request_of(slot.spec_schema), Some((slot.example)()))
            .ok(schemas.response_of(slot.view_schema))
            .tagged()
            .header("200", WARNING, CHANGE_WARNING),
        Action::Delete | Action::DeleteModule(_) => changing(operation).responds_empty("204", "Deleted").header(
            "204",
            WARNING,
            "Warns that a source owns the resource, that the change opens access to it, or that nobody can tell any longer whether an invariant holds.",
        ),
    };
    let succeeds = match endpoint.action {
        Action::Create => "201",
        Action::Delete | Action::DeleteModule(_) => "204",
        _ => "200",
    };
    operation.header(succeeds, REVISION, NAMED_REVISION).build(match endpoint.action {
        Action::Get | Action::GetModule(_) | Action::List => "400 401 404 410 429 500 503",
        _ => "400 401 403 404 408 409 412 413 415 429 500 503",
    })
}

/// The header of a response that warns.
const WARNING: &str = "Edgewright-Warning";
const CHANGE_WARNING: &str = "Warns that the change left a blank field unchanged, cleared a field along with other changes, or emptied an enforced restriction, that a source owns the resource, that the change opens access to it or takes requests from a declared route, or that nobody can tell any longer whether an invariant holds.";

/// The header of a response with a revision that has what it shows or has changed (D115).
const REVISION: &str = "Edgewright-Revision";
const NAMED_REVISION: &str =
    "A revision of the store that includes what the response shows or has changed, for `If-Revision-At-Least`.";

/// Adds the header that overrides a source (D103).
fn overridable(operation: OperationDocument) -> OperationDocument {
    operation.request_header("Edgewright-Override", "The source whose manifests the change overrides, required if the source's policy for API writes is `header`. The history records it.")
}

/// Adds the headers of a request that changes a resource.
fn changing(operation: OperationDocument) -> OperationDocument {
    overridable(operation.request_header("If-Match", "The ETag of the resource that the change is based on."))
}

fn path_parameters(path: &str) -> Value {
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({"name": name, "in": "path", "required": true, "description": operation_texts::path_parameter(name), "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[^/\s\x00-\x1f\x7f-\x9f]+$"}})).collect()
}

/// The errors by status. All have the same schema.
fn failure_responses(schema: &Value) -> Value {
    let described = [
        ("400", "The request is invalid; `errors` lists every fault."),
        ("401", "No valid API key, or one that has expired."),
        ("403", "The API key lacks the permission."),
        ("404", "The resource, its parent or the revision does not exist."),
        ("408", "The request body was not received in time."),
        ("409", "The request conflicts with the current state."),
        ("410", "The revision is no longer kept. For `/watch`, `details.revision` is the current one."),
        ("412", "`If-Match` does not match the current state."),
        ("413", "The request body is too large."),
        ("415", "The content type of the request body is not JSON."),
        (
            "429",
            "The API key, its owner or the address has sent too many requests. `Retry-After` says when to send the next.",
        ),
        ("431", "The URL and the headers of the request are too large. Over HTTP/2, the response has no body."),
        ("500", "An internal error, or a failure of the store."),
        (
            "503",
            "The server is overloaded, shutting down or not ready, the database with the store does not answer, or of several servers, the one that writes does not.",
        ),
    ];
    let responses = described.map(|(status, description)| {
        (status.to_owned(), json!({"description": description, "content": {"application/json": {"schema": schema}}}))
    });
    responses.into_iter().collect()
}

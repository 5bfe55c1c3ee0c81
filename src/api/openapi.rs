//! The OpenAPI 3.1 document, generated from the types and endpoints of the server.

use std::collections::BTreeMap;

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    endpoint::{Action, Endpoint, endpoints},
    reconciliation,
};
use crate::{
    filter,
    model::{
        Kind,
        resource::KindInfo,
        schema::{definition_name, inline, refine},
    },
};

const SCHEMAS: &str = "/components/schemas";

/// Generates the document. `version_header` is the name of the version header (D4).
pub(crate) fn document(version_header: &str) -> Value {
    let mut builder = DocumentBuilder::new();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for endpoint in endpoints() {
        let item = paths.entry(endpoint.path.clone()).or_default();
        item.insert("parameters".into(), path_parameters(&endpoint.path));
        item.insert(endpoint.method.to_lowercase(), builder.operation(&endpoint));
    }
    let failures = |statuses: &[&str]| {
        let refer = |status: &&str| ((*status).to_owned(), json!({"$ref": format!("#/components/responses/{status}")}));
        Value::Object(statuses.iter().map(refer).collect())
    };
    for (path, item) in
        reconciliation::document::paths(&mut builder.requests, &mut builder.answers, as_answer, &failures)
    {
        let operations = paths.entry(path.clone()).or_default();
        operations.insert("parameters".into(), path_parameters(&path));
        if let Value::Object(item) = item {
            operations.extend(item);
        }
    }
    for (path, summary, media) in [
        ("/healthz", "The process is alive.", "text/plain"),
        ("/readyz", "The server is ready for requests; a second line may contain a warning.", "text/plain"),
        ("/metrics", "Prometheus metrics.", "text/plain"),
        ("/openapi.json", "This document.", "application/json"),
    ] {
        let mut responses = json!({"200": {"description": "OK", "content": {media: {"schema": {}}}}});
        if let (Some(responses), "/readyz") = (responses.as_object_mut(), path) {
            responses.insert("503".into(), json!({"$ref": "#/components/responses/503"}));
        }
        // Probes and scrapers may add query parameters to the others (D56).
        if let (true, Some(responses)) = (path == "/openapi.json", responses.as_object_mut()) {
            responses.insert("400".into(), json!({"$ref": "#/components/responses/400"}));
        }
        let operation = json!({
            "operationId": path.trim_matches('/').replace('.', "_"),
            "summary": summary,
            "tags": ["service"],
            "security": [],
            "x-extension": true,
            "responses": responses,
        });
        paths.entry(path.into()).or_default().insert("get".into(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "edgewright management API",
            "version": "2",
            "summary": "API keys, certificates, HTTPS edges, their routes and traffic modules.",
            "description": "Operations, parameters and fields marked `x-extension` extend the API specification. In a request body, null means unset, also for unknown fields, and path parameters can be repeated. Unknown and repeated query parameters are rejected with 400, except on `/healthz`, `/readyz` and `/metrics`, which ignore them.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": [], "version": []}],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": builder.schemas(),
            "responses": failure_responses(),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The token of an API key."},
                "version": {"type": "apiKey", "in": "header", "name": version_header, "description": "The API version: `2`."},
            },
        },
    })
}

fn tags() -> Vec<Value> {
    let kinds = Kind::all().filter(|info| endpoints().iter().any(|endpoint| endpoint.kind == info.kind));
    kinds
        .map(|info| json!({"name": info.name}))
        .chain([json!({"name": "Reconciliation"}), json!({"name": "service"})])
        .collect()
}

struct DocumentBuilder {
    /// The write forms.
    requests: SchemaGenerator,
    /// The response forms, in which every key is always present (D14).
    answers: SchemaGenerator,
    /// The write forms of PATCH, where no field is required.
    patches: Map<String, Value>,
}

impl DocumentBuilder {
    fn new() -> Self {
        let settings = || SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = SCHEMAS.into());
        Self {
            requests: settings().into_generator(),
            answers: settings().for_serialize().into_generator(),
            patches: Map::new(),
        }
    }

    fn operation(&mut self, endpoint: &Endpoint) -> Value {
        let info = endpoint.kind.info();
        let (verb, what) = words(endpoint);
        let mut operation = json!({
            "operationId": operation_id(endpoint),
            "summary": format!("{verb} {what}."),
            "tags": [info.name],
            "responses": self.responses(endpoint, info),
        });
        let Some(fields) = operation.as_object_mut() else { return operation };
        if let Some(body) = self.body(endpoint, info) {
            fields.insert("requestBody".into(), body);
        }
        let parameters = parameters(endpoint);
        if !parameters.is_empty() {
            fields.insert("parameters".into(), Value::Array(parameters));
        }
        if endpoint.extension {
            fields.insert("x-extension".into(), json!(true));
        }
        operation
    }

    fn body(&mut self, endpoint: &Endpoint, info: &'static KindInfo) -> Option<Value> {
        let (schema, example) = match endpoint.action {
            Action::Create => ((info.spec_schema)(&mut self.requests).to_value(), (info.example)()),
            Action::Patch => (self.patch_schema(info), Some((info.patch_example)())),
            Action::PutModule(slot) => ((slot.spec_schema)(&mut self.requests).to_value(), Some((slot.example)())),
            _ => return None,
        };
        let required = match endpoint.action {
            Action::Patch => endpoint.kind != Kind::EventSource,
            Action::PutModule(slot) => !slot.empty_is_harmless,
            _ => true,
        };
        let mut media = json!({"schema": schema});
        if let (Some(media), Some(example)) = (media.as_object_mut(), example) {
            media.insert("example".into(), example);
        }
        Some(json!({"required": required, "content": {"application/json": media}}))
    }

    /// The write form without immutable fields and without required fields.
    fn patch_schema(&mut self, info: &'static KindInfo) -> Value {
        let name = format!("{}Patch", info.name);
        let mut whole = inline(&mut self.requests, info.spec_schema);
        if let Some(properties) = whole.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|field, _| !info.fixed.contains(&field.as_str()));
            for field in info.blank_is_unset {
                if let Some(property) = properties.get_mut(*field) {
                    *property = json!({"anyOf": [property.take(), {"const": ""}, {"type": "null"}]});
                }
            }
        }
        self.patches.insert(name.clone(), whole);
        json!({"$ref": format!("#{SCHEMAS}/{name}")})
    }

    fn responses(&mut self, endpoint: &Endpoint, info: &'static KindInfo) -> Value {
        let (status, description, schema) = match endpoint.action {
            Action::Create => ("201", "Created", Some(self.view(info))),
            Action::Get | Action::Patch => ("200", "OK", Some(self.view(info))),
            Action::List => ("200", "OK", Some(self.list(info))),
            Action::PutModule(slot) | Action::GetModule(slot) => {
                ("200", "OK", Some(as_answer((slot.view_schema)(&mut self.answers).to_value())))
            }
            Action::Delete | Action::DeleteModule(_) => ("204", "Deleted", None),
        };
        let mut responses = Map::new();
        let mut success = json!({"description": description});
        if let (Some(schema), Some(success)) = (schema, success.as_object_mut()) {
            success.insert("content".into(), json!({"application/json": {"schema": schema}}));
            if endpoint.action != Action::List {
                let mut headers =
                    json!({"ETag": {"description": "The strong ETag of the response.", "schema": {"type": "string"}}});
                if let (Action::Patch, Some(headers)) = (endpoint.action, headers.as_object_mut()) {
                    let warns =
                        "Warns that the change emptied an enforced restriction, or left a blank field unchanged.";
                    headers.insert(
                        "Edgewright-Warning".into(),
                        json!({"description": warns, "schema": {"type": "string"}, "x-extension": true}),
                    );
                }
                success.insert("headers".into(), headers);
            }
        }
        responses.insert(status.into(), success);
        for status in failures(endpoint) {
            responses.insert((*status).into(), json!({"$ref": format!("#/components/responses/{status}")}));
        }
        if matches!(endpoint.action, Action::Get | Action::GetModule(_)) {
            responses.insert(
                "304".into(),
                json!({"description": "Not modified: the client's copy is current (`If-None-Match`)."}),
            );
        }
        Value::Object(responses)
    }

    fn view(&mut self, info: &'static KindInfo) -> Value {
        as_answer((info.view_schema)(&mut self.answers).to_value())
    }

    fn list(&mut self, info: &'static KindInfo) -> Value {
        let items = self.view(info);
        let mut properties = json!({
            info.list: {"type": "array", "items": items},
            "uri": {"type": "string", "description": "URI of the list."},
        });
        let mut required = vec![info.list, "uri"];
        if info.kind != Kind::EventSource {
            required.push("next_page_uri");
            if let Some(properties) = properties.as_object_mut() {
                properties.insert(
                    "next_page_uri".into(),
                    json!({"type": ["string", "null"], "description": "URI of the next page; null on the last page."}),
                );
            }
        }
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    }

    /// All schemas. A type can have a write and a response form, so the response forms have separate names.
    fn schemas(mut self) -> Map<String, Value> {
        let mut requests = self.requests.take_definitions(true);
        refine(&mut requests, Kind::constraints());
        for (name, schema) in self.patches {
            requests.insert(name, schema);
        }
        requests.values_mut().for_each(nullable);
        let answers = self
            .answers
            .take_definitions(true)
            .into_iter()
            .map(|(name, schema)| (answer_name(&name), as_answer(schema)));
        let mut schemas: BTreeMap<String, Value> = requests.into_iter().chain(answers).collect();
        schemas.insert("Error".into(), error_schema());
        schemas.into_iter().collect()
    }
}

fn operation_id(endpoint: &Endpoint) -> String {
    let kind = endpoint.kind.info().name;
    match endpoint.action {
        Action::Create => format!("create{kind}"),
        Action::List => format!("list{kind}"),
        Action::Get => format!("get{kind}"),
        Action::Patch => format!("update{kind}"),
        Action::Delete => format!("delete{kind}"),
        Action::PutModule(slot) => format!("replace{kind}_{}", slot.name),
        Action::GetModule(slot) => format!("get{kind}_{}", slot.name),
        Action::DeleteModule(slot) => format!("delete{kind}_{}", slot.name),
    }
}

fn words(endpoint: &Endpoint) -> (&'static str, String) {
    let kind = endpoint.kind.info().name.to_owned();
    match endpoint.action {
        Action::Create => ("Create one", kind),
        Action::List => ("List every", format!("{kind}, newest first")),
        Action::Get => ("Get one", kind),
        Action::Patch => ("Change fields of one", kind),
        Action::Delete => ("Delete one", kind),
        Action::PutModule(slot) => ("Replace the module", slot.name.to_owned()),
        Action::GetModule(slot) => ("Get the module", slot.name.to_owned()),
        Action::DeleteModule(slot) => ("Delete the module", slot.name.to_owned()),
    }
}

fn path_parameters(path: &str) -> Value {
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[^/\s\x00-\x1f\x7f-\x9f]+$"}})).collect()
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    match endpoint.action {
        Action::List => {
            let page = [
                json!({"name": "limit", "in": "query", "description": "The number of resources per page.", "schema": {"type": "integer", "minimum": 1, "maximum": 1000}}),
                json!({"name": "before_id", "in": "query", "description": "Continues after this resource.", "schema": {"type": "string"}}),
            ];
            let filters = filter::parameters(endpoint.kind).map(|parameter| {
                json!({"name": parameter.name, "in": "query", "description": parameter.description, "schema": {"type": "string", "minLength": 1}, "x-extension": true})
            });
            page.into_iter().chain(filters).collect()
        }
        Action::Patch | Action::Delete | Action::PutModule(_) | Action::DeleteModule(_) => {
            vec![
                json!({"name": "If-Match", "in": "header", "description": "The ETag of the resource that the change is based on.", "schema": {"type": "string"}}),
            ]
        }
        Action::Get | Action::GetModule(_) => {
            vec![
                json!({"name": "If-None-Match", "in": "header", "description": "The ETag of the client's copy.", "schema": {"type": "string"}}),
            ]
        }
        Action::Create => Vec::new(),
    }
}

/// The error statuses of an endpoint.
fn failures(endpoint: &Endpoint) -> &'static [&'static str] {
    match endpoint.action {
        Action::Get | Action::GetModule(_) => &["400", "401", "404", "500"],
        Action::List => &["400", "401", "404", "500", "503"],
        _ => &["400", "401", "403", "404", "408", "409", "412", "413", "415", "500"],
    }
}

/// The errors by status.
fn failure_responses() -> Value {
    let described = [
        ("400", "The request is invalid; `errors` lists every fault."),
        ("401", "No valid API key."),
        ("403", "The key's owner lacks the permission."),
        ("404", "The resource or its parent does not exist."),
        ("408", "The request body was not received in time."),
        ("409", "The request conflicts with the current state."),
        ("412", "`If-Match` does not match the current state."),
        ("413", "The request body is too large."),
        ("415", "The content type of the request body is not JSON."),
        ("500", "An internal error, or a failure of the store."),
        ("503", "The server is overloaded, shutting down, or not ready."),
    ];
    let responses = described.map(|(status, description)| {
        let schema = json!({"$ref": format!("#{SCHEMAS}/Error")});
        (status.to_owned(), json!({"description": description, "content": {"application/json": {"schema": schema}}}))
    });
    Value::Object(responses.into_iter().collect())
}

/// The common error body (D9).
fn error_schema() -> Value {
    json!({
        "type": "object",
        "description": "The body of every error.",
        "properties": {
            "error_code": {"type": "string", "pattern": "^ERR_EDGEWRIGHT_", "description": "The error code; `edgewright explain CODE` explains it."},
            "status_code": {"type": "integer", "description": "The HTTP status."},
            "msg": {"type": "string", "description": "The message of the first fault."},
            "details": {
                "type": "object",
                "properties": {
                    "operation_id": {"type": "string", "pattern": "^op_", "description": "The id of the request, as in the Request-Id header."},
                    "field": {"type": "string", "description": "JSON pointer to the invalid field."},
                },
                "required": ["operation_id"],
                "additionalProperties": {"type": "string"},
            },
            "errors": {
                "type": "array",
                "description": "All faults, if there are several.",
                "items": {
                    "type": "object",
                    "properties": {
                        "error_code": {"type": "string"},
                        "field": {"type": "string", "description": "JSON pointer to the invalid field."},
                        "msg": {"type": "string"},
                    },
                    "required": ["error_code", "field", "msg"],
                },
            },
        },
        "required": ["error_code", "status_code", "msg", "details"],
        "example": {
            "error_code": "ERR_EDGEWRIGHT_UNKNOWN_FIELD",
            "status_code": 400,
            "msg": "unknown field `oath`; did you mean `oauth`?",
            "details": {"operation_id": "op_2f9XkQ0000000000000000000a", "field": "/oath"},
        },
    })
}

fn answer_name(name: &str) -> String {
    if name.ends_with("View") { name.to_owned() } else { format!("{name}View") }
}

/// Makes a schema refer to response forms.
fn as_answer(mut schema: Value) -> Value {
    if let Some(name) = definition_name(&schema).map(answer_name) {
        schema = json!({"$ref": format!("#{SCHEMAS}/{name}")});
    }
    match &mut schema {
        Value::Object(map) => map.values_mut().for_each(|value| *value = as_answer(value.take())),
        Value::Array(items) => items.iter_mut().for_each(|value| *value = as_answer(value.take())),
        _ => {}
    }
    schema
}

/// Allows null for optional fields, because null means unset in a request (D6).
fn nullable(definition: &mut Value) {
    let required: Vec<String> = definition
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    if let Some(properties) = definition.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            if let Some(map) = property.get_mut("additionalProperties").filter(|map| map.is_object()) {
                *map = or_null(map.take());
            }
            if !required.contains(name) {
                *property = or_null(property.take());
            }
        }
    }
}

fn or_null(mut schema: Value) -> Value {
    let allows_null = |option: &Value| option.get("type") == Some(&json!("null"));
    let listed = schema.get("anyOf").and_then(Value::as_array).is_some_and(|options| options.iter().any(allows_null));
    let typed = schema.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&json!("null")));
    if listed || typed {
        return schema;
    }
    let mut outer = Map::new();
    if let Some(inner) = schema.as_object_mut() {
        for shown in ["description", "default"] {
            outer.extend(inner.remove(shown).map(|value| (shown.to_owned(), value)));
        }
    }
    outer.insert("anyOf".into(), json!([schema, {"type": "null"}]));
    Value::Object(outer)
}

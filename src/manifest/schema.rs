//! JSON Schemas of manifests, one for each kind and one for any, so that an editor completes and explains.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    declaration::manifest_kinds,
    document::{API_VERSION, Metadata},
};
use crate::model::{
    Kind,
    secret::{SECRET_SCHEMA, TEXT_SCHEMA},
};

/// The name of the schema of any manifest.
pub const ANY: &str = "manifest";

/// The fields that a definition cannot do without; the rules of the model say so, serde's types do not.
const REQUIRED: &[(&str, &[&str])] = &[
    ("HttpsEdgeRoute", &["match_type", "match"]),
    ("IpRestriction", &["type"]),
    ("CertificateAuthority", &["ca_pem"]),
    ("TlsCertificate", &["certificate_pem", "private_key_pem"]),
    ("EventSource", &["type"]),
    ("Backend", &["backend_id"]),
    ("WebhookVerification", &["provider"]),
    ("Oauth", &["provider"]),
    ("Saml", &["idp_metadata"]),
    ("Token", &["type", "method"]),
    ("EndpointAction", &["type"]),
];

/// Every schema by the name of its file without the extension.
pub fn all() -> BTreeMap<String, Value> {
    let each = manifest_kinds().map(|kind| (kind.to_owned(), schema(&[kind])));
    let kinds: Vec<&str> = manifest_kinds().collect();
    each.chain([(ANY.to_owned(), schema(&kinds))]).collect()
}

/// The schema of a manifest of one of some kinds.
fn schema(kinds: &[&'static str]) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let metadata = generator.subschema_for::<Metadata>().to_value();
    let mut documents: Vec<Value> = kinds.iter().map(|kind| document(&mut generator, kind, &metadata)).collect();
    let mut definitions = generator.take_definitions(true);
    refine(&mut definitions);
    let mut root = match documents.pop() {
        Some(one) if documents.is_empty() => one,
        last => {
            documents.extend(last);
            json!({"title": "edgewright manifest", "oneOf": documents})
        }
    };
    if let Some(root) = root.as_object_mut() {
        root.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        root.insert("$defs".into(), Value::Object(definitions));
    }
    root
}

/// The envelope around a kind's `spec`.
fn document(generator: &mut SchemaGenerator, kind: &'static str, metadata: &Value) -> Value {
    json!({
        "title": kind,
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION, "description": "The version of the manifest format."},
            "kind": {"const": kind, "description": "The kind of resource."},
            "metadata": metadata,
            "spec": spec(generator, kind),
        },
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "additionalProperties": false,
    })
}

fn spec(generator: &mut SchemaGenerator, kind: &'static str) -> Value {
    let Some(info) = Kind::all().find(|info| info.name == kind) else { return module_set(generator) };
    let mut whole = inline(generator, info.spec_schema);
    let routes = |generator: &mut SchemaGenerator| {
        let mut route = inline(generator, Kind::HttpsEdgeRoute.info().spec_schema);
        require(&mut route, "HttpsEdgeRoute");
        add(
            &mut route,
            "name",
            json!({"type": "string", "description": "The route's identity inside its edge; without it, match_type and match are."}),
        );
        add(&mut route, "modules_from", modules_from());
        json!({"type": "array", "items": route, "description": "Routes of the edge."})
    };
    require(&mut whole, kind);
    match info.kind {
        Kind::HttpsEdge => {
            let routes = routes(generator);
            add(&mut whole, "routes", routes);
        }
        Kind::HttpsEdgeRoute => {
            add(
                &mut whole,
                "edge",
                json!({"type": "string", "description": "The edge that the route is part of: a name or an id."}),
            );
            add(&mut whole, "modules_from", modules_from());
            also_required(&mut whole, &["edge"]);
        }
        Kind::EventSubscription => {
            let source = generator_ref(generator, Kind::EventSource.info().spec_schema);
            add(
                &mut whole,
                "sources",
                json!({"type": "array", "items": source, "description": "The event types that trigger the subscription."}),
            );
        }
        Kind::ApiKey => {
            add(
                &mut whole,
                "token_file",
                json!({"type": "string", "description": "Where the token is written, once: a file outside of the source tree."}),
            );
            also_required(&mut whole, &["token_file"]);
        }
        _ => {}
    }
    whole
}

fn modules_from() -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": "Module sets to take, by name. Later sets win over earlier ones, the route's own modules over all."})
}

/// Modules by name, as a route holds them.
fn module_set(generator: &mut SchemaGenerator) -> Value {
    let mut whole = inline(generator, Kind::HttpsEdgeRoute.info().spec_schema);
    let slots = Kind::HttpsEdgeRoute.info().slots;
    if let Some(properties) = whole.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| slots.iter().any(|slot| slot.name == name));
    }
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("description".into(), json!("Modules that routes take with `modules_from`."));
    }
    whole
}

fn generator_ref(generator: &mut SchemaGenerator, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    schema(generator).to_value()
}

/// A kind's own schema instead of a reference to it, for the manifest adds fields to it.
fn inline(generator: &mut SchemaGenerator, schema: fn(&mut SchemaGenerator) -> Schema) -> Value {
    let reference = schema(generator).to_value();
    let name = reference.get("$ref").and_then(Value::as_str).and_then(|it| it.rsplit('/').next()).unwrap_or_default();
    generator.definitions_mut().get(name).cloned().unwrap_or(reference)
}

fn add(schema: &mut Value, name: &str, property: Value) {
    if let Some(properties) =
        schema.as_object_mut().map(|schema| schema.entry("properties").or_insert_with(|| json!({})))
        && let Some(properties) = properties.as_object_mut()
    {
        properties.insert(name.to_owned(), property);
    }
}

fn require(schema: &mut Value, name: &str) {
    if let Some((_, fields)) = REQUIRED.iter().find(|(of, _)| *of == name) {
        also_required(schema, fields);
    }
}

fn also_required(schema: &mut Value, fields: &[&str]) {
    if let Some(schema) = schema.as_object_mut()
        && let Some(list) = schema.entry("required").or_insert_with(|| json!([])).as_array_mut()
    {
        list.extend(fields.iter().map(|field| json!(field)));
    }
}

/// What a manifest's values may be that those of a request body may not: taken from a file or the environment (D28).
fn refine(definitions: &mut Map<String, Value>) {
    for (name, definition) in definitions.iter_mut() {
        require(definition, name);
    }
    for name in [SECRET_SCHEMA, TEXT_SCHEMA] {
        if let Some(definition) = definitions.get_mut(name) {
            let description = definition.get("description").cloned();
            *definition = json!({
                "description": description,
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"from_env": {"type": "string", "description": "The environment variable that holds the value."}},
                        "required": ["from_env"],
                        "additionalProperties": false
                    },
                    {
                        "type": "object",
                        "properties": {"from_file": {"type": "string", "description": "The file that holds the value, relative to the manifest."}},
                        "required": ["from_file"],
                        "additionalProperties": false
                    }
                ]
            });
        }
    }
    // Kinds stand inline in their documents; only what they refer to is left here.
    definitions.retain(|name, _| !Kind::all().any(|info| info.name == name) || name == Kind::EventSource.info().name);
}

//! JSON Schemas of manifests, one per kind and one for any kind, for completion and help in editors.

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::json;

use super::envelope::{API_VERSION, ENVELOPE, Metadata};
use super::kinds::{KINDS, MODULE_SET, ManifestKind};
use crate::manifest::prelude::*;
use crate::model::schema::{add_property, add_required, inline, refine, require};
use crate::model::secrets::redact::Fields;
use crate::model::secrets::secret::SECRET_SCHEMA;
use crate::model::secrets::text::TEXT_SCHEMA;

/// The name of the schema of any manifest.
pub(crate) const ANY: &str = "manifest";

/// All schemas by file name without extension.
pub(crate) fn all() -> BTreeMap<String, Value> {
    let each = KINDS.iter().map(|kind| (kind.name.to_owned(), schema(std::slice::from_ref(kind))));
    each.chain([(ANY.to_owned(), schema(&KINDS))]).collect()
}

/// The fields of all manifests, which tell what is public in excerpts (D28).
pub(crate) fn fields() -> &'static Fields {
    static FIELDS: OnceLock<Fields> = OnceLock::new();
    FIELDS.get_or_init(|| Fields::new(schema(&KINDS)))
}

/// The schema of a manifest of one of some kinds.
fn schema(kinds: &'static [ManifestKind]) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let metadata = generator.subschema_for::<Metadata>().to_value();
    let mut documents: Vec<Value> = kinds.iter().map(|kind| document(&mut generator, kind, &metadata)).collect();
    let mut definitions = generator.take_definitions(true);
    adapt(&mut definitions);
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
fn document(generator: &mut SchemaGenerator, kind: &'static ManifestKind, metadata: &Value) -> Value {
    json!({
        "title": kind.name,
        "type": "object",
        "properties": {
            "apiVersion": {"const": API_VERSION, "description": "The version of the manifest format."},
            "kind": {"const": kind.name, "description": "The kind of resource."},
            "metadata": metadata,
            "spec": spec(generator, kind),
        },
        "required": ENVELOPE,
        "additionalProperties": false,
    })
}

fn spec(generator: &mut SchemaGenerator, kind: &'static ManifestKind) -> Value {
    let mut whole = match kind.resource.map(Kind::info) {
        Some(info) => {
            let mut whole = inline(generator, info.spec_schema);
            require(info.required, &mut whole);
            whole
        }
        None if kind.name == MODULE_SET => return module_set(generator),
        None => json!({
            "type": "object",
            "description": "Requests with their expected handling. A store does not keep it.",
            "additionalProperties": false,
        }),
    };
    for field in kind.fields {
        let property = (field.schema)(generator);
        add_property(&mut whole, field.name, property);
    }
    let required = kind.fields.iter().filter(|field| field.required).map(|field| field.name);
    add_required(&mut whole, &required.collect::<Vec<_>>());
    whole
}

/// Modules by name, as a route holds them.
fn module_set(generator: &mut SchemaGenerator) -> Value {
    let mut whole = inline(generator, Kind::HttpsEdgeRoute.info().spec_schema);
    let slots = Kind::HttpsEdgeRoute.info().slots;
    if let Some(properties) = whole.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| slots.iter().any(|slot| slot.name == name));
    }
    if let Some(whole) = whole.as_object_mut() {
        whole.insert("description".into(), json!("Modules that routes use with `modules_from`."));
    }
    whole
}

/// Allows values from files and the environment, which request bodies do not accept (D28).
fn adapt(definitions: &mut Map<String, Value>) {
    refine(definitions, Kind::constraints());
    if let Some(metadata) = definitions.get_mut("Metadata") {
        require(&["name"], metadata);
    }
    let source = |field: &str, description: &str| {
        json!({
            "type": "object",
            "properties": {field: {"type": "string", "description": description}},
            "required": [field],
            "additionalProperties": false
        })
    };
    for name in [SECRET_SCHEMA, TEXT_SCHEMA] {
        if let Some(definition) = definitions.get_mut(name) {
            let description = definition.get("description").cloned();
            *definition = json!({
                "description": description,
                "anyOf": [
                    {"type": "string"},
                    source("from_env", "The environment variable that holds the value."),
                    source("from_file", "The file that holds the value, relative to the manifest.")
                ]
            });
        }
    }
    // Kinds are inlined in their documents; only referenced definitions stay.
    definitions.retain(|name, _| !Kind::all().any(|info| info.name == name) || name == Kind::EventSource.info().name);
}

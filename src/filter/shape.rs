//! The shapes of the response forms, from their JSON Schemas.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::model::schema::definition_name;
use crate::model::{Kind, KindInfo};
use crate::syntax::cel::CelShape;

/// The most definitions inside each other; the response forms do not contain themselves.
const MOST_LEVELS: usize = 20;

static SHAPES: LazyLock<BTreeMap<Kind, CelShape>> =
    LazyLock::new(|| Kind::all().map(|info| (info.kind, shape_of(info))).collect());

/// The shape of a kind's response form.
pub(super) fn response_shape(kind: Kind) -> &'static CelShape {
    SHAPES.get(&kind).unwrap_or(&CelShape::Any)
}

fn shape_of(info: &KindInfo) -> CelShape {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = (info.view_schema)(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    shape(&schema, &definitions, MOST_LEVELS)
}

/// Reads a schema. What it does not understand can be any value.
fn shape(schema: &Value, definitions: &Map<String, Value>, levels: usize) -> CelShape {
    let Some(levels) = levels.checked_sub(1) else { return CelShape::Any };
    let inner = |schema: &Value| shape(schema, definitions, levels);
    if let Some(name) = definition_name(schema) {
        return definitions.get(name).map_or(CelShape::Any, inner);
    }
    let options = ["anyOf", "oneOf"].into_iter().find_map(|keyword| schema.get(keyword)?.as_array());
    if let Some(options) = options {
        let is_null = |option: &&Value| option.get("type").and_then(Value::as_str) == Some("null");
        let mut shapes = options.iter().filter(|option| !is_null(option)).map(inner);
        let Some(first) = shapes.next() else { return CelShape::Any };
        return if shapes.all(|shape| shape == first) { first } else { CelShape::Any };
    }
    match type_of(schema) {
        Some("string") => CelShape::Text,
        Some("boolean") => CelShape::Bool,
        Some("integer" | "number") => CelShape::Number,
        Some("array") => CelShape::List(Arc::new(schema.get("items").map_or(CelShape::Any, inner))),
        Some("object") => object(schema, inner),
        _ => CelShape::Any,
    }
}

fn object(schema: &Value, inner: impl Fn(&Value) -> CelShape) -> CelShape {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let fields = properties.iter().map(|(name, schema)| (name.clone(), inner(schema)));
        return CelShape::Object(Arc::new(fields.collect()));
    }
    let values = schema.get("additionalProperties").filter(|values| values.is_object());
    CelShape::Map(Arc::new(values.map_or(CelShape::Any, inner)))
}

/// The only type other than null.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(only) => Some(only),
        Value::Array(types) => {
            let mut types = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            types.next().filter(|_| types.next().is_none())
        }
        _ => None,
    }
}

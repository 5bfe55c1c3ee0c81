//! The fields of objects in a JSON Schema, as tables.

use std::collections::BTreeSet;
use std::iter::once;

use serde_json::Value;

use super::markdown::{code, paragraph, prose, table};
use crate::model::Kind;

const HEAD: [&str; 4] = ["Field", "Type", "Default", "Meaning"];
/// The length from which a pattern says less than the description of its field.
const LONG_PATTERN: usize = 60;

/// The type of a field that takes the name of any module: the section of modules lists them.
const MODULE_NAME: &str = "[module](resources.md#modules)";

/// The section of a named type: a note, its description, and its fields or values.
pub(super) fn section(name: &str, note: &str, schema: &Value) -> String {
    let about = format!("{note} {}", description(schema));
    format!("### {name}\n\n{}{}", paragraph(about.trim()), body(schema))
}

/// The fields of an object, the values of an enumeration, or any other type in words.
pub(super) fn body(schema: &Value) -> String {
    let rows = rows("", schema);
    if !rows.is_empty() {
        return table(&HEAD, &rows);
    }
    let value = |choice: &Value| Some(format!("- {}: {}\n", literal(choice.get("const")?), description(choice)));
    let values: String = list(schema, "oneOf").filter_map(value).collect();
    if values.is_empty() { format!("Type: {}.\n\n", type_of(schema)) } else { values + "\n" }
}

pub(super) fn description(schema: &Value) -> String {
    prose(&schema.get("description").and_then(Value::as_str).unwrap_or_default().replace('\n', " "))
}

/// The type that a schema refers to by name.
pub(super) fn referenced(schema: &Value) -> Option<&str> {
    let mut choices = once(schema).chain(list(schema, "anyOf"));
    choices.find_map(|choice| choice.get("$ref")?.as_str()?.rsplit('/').next())
}

/// The names of all modules.
pub(super) fn module_names() -> BTreeSet<&'static str> {
    Kind::all().flat_map(|info| info.slots).map(|slot| slot.name).collect()
}

/// The schemas in a list of a schema.
pub(super) fn list<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A type in words, with a link if it has a name: to the page that a reference starts with, or else to the same page.
pub(super) fn type_of(schema: &Value) -> String {
    if let Some((page, name)) = schema.get("$ref").and_then(|target| target.as_str()?.rsplit_once('/')) {
        let page = if page.ends_with(".md") { page } else { "" };
        return format!("[{name}]({page}#{})", name.to_lowercase());
    }
    let joined = |choices: Vec<String>| choices.join(" or ");
    if let Some(value) = schema.get("const") {
        return literal(value);
    }
    if schema.get("enum").is_some() {
        let is_any_module = list(schema, "enum").filter_map(Value::as_str).collect::<BTreeSet<_>>() == module_names();
        let values = || joined(list(schema, "enum").map(literal).collect());
        return if is_any_module { MODULE_NAME.to_owned() } else { values() };
    }
    let choices = list(schema, "anyOf").chain(list(schema, "oneOf"));
    let choices: Vec<String> = choices.filter(|choice| type_name(choice) != Some("null")).map(type_of).collect();
    if !choices.is_empty() {
        return joined(choices);
    }
    let inside = |key: &str| schema.get(key).filter(|inside| inside.is_object()).map(type_of);
    let name = match type_name(schema) {
        Some("array") => format!("list of {}", inside("items").unwrap_or_else(|| "any values".to_owned())),
        Some("object") => {
            match (fields(schema).map(|(name, _)| code(name)).collect::<Vec<_>>(), inside("additionalProperties")) {
                (names, _) if !names.is_empty() => format!("object with {}", names.join(", ")),
                (_, Some(value)) => format!("map to {value}"),
                (_, None) => "object".to_owned(),
            }
        }
        Some(name) => name.to_owned(),
        None => "any value".to_owned(),
    };
    match limits(schema) {
        limits if limits.is_empty() => name,
        limits => format!("{name} ({})", limits.join(", ")),
    }
}

/// The rows of an object's fields, and of the fields of objects inside that have no name.
pub(super) fn rows(prefix: &str, schema: &Value) -> Vec<Vec<String>> {
    let required: Vec<&str> = list(schema, "required").filter_map(Value::as_str).collect();
    let of_field = |(name, field): (&String, &Value)| {
        let path = format!("{prefix}{name}");
        let items = field.get("items");
        let inside = match items {
            Some(items) => rows(&format!("{path}[]."), items),
            None => rows(&format!("{path}."), field),
        };
        let type_name = match (inside.is_empty(), items) {
            (true, _) => type_of(field),
            (false, Some(_)) => "list of objects".to_owned(),
            (false, None) => "object".to_owned(),
        };
        let default = match field.get("default") {
            _ if required.contains(&name.as_str()) => "required".to_owned(),
            Some(default) => code(&default.to_string()),
            None => String::new(),
        };
        let mut rows = vec![vec![code(&path), type_name, default, description(field)]];
        rows.extend(inside);
        rows
    };
    fields(schema).flat_map(of_field).collect()
}

pub(super) fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The name of a type that is not null, if there is another.
fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        name => name.as_str(),
    }
}

fn limits(schema: &Value) -> Vec<String> {
    let number = |key: &str| schema.get(key).filter(|value| value.is_number()).map(Value::to_string);
    let range = |unit: &str, least: &str, most: &str| match (number(least), number(most)) {
        (Some(least), Some(most)) => Some(format!("{unit}{least} to {most}")),
        (Some(least), None) => Some(format!("{unit}at least {least}")),
        (None, Some(most)) => Some(format!("{unit}at most {most}")),
        (None, None) => None,
    };
    let pattern = schema.get("pattern").and_then(Value::as_str).filter(|pattern| pattern.len() < LONG_PATTERN);
    let all = [
        range("", "minimum", "maximum"),
        range("length ", "minLength", "maxLength"),
        range("entries: ", "minItems", "maxItems"),
        pattern.map(|pattern| format!("pattern {}", code(pattern))),
    ];
    all.into_iter().flatten().collect()
}

/// A value as code; a text without its quotes, unless it is empty.
fn literal(value: &Value) -> String {
    match value.as_str() {
        Some(text) if !text.is_empty() => code(text),
        _ => code(&value.to_string()),
    }
}

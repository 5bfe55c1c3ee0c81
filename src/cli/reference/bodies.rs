//! The page of the bodies of requests and responses that manifests do not have.

use serde_json::Value;

use super::api::{Api, is_covered};
use super::fields::{body, description, fields, rows, type_of};
use super::markdown::{paragraph, prose, table};

const INTRODUCTION: &str = "\
# Bodies

The bodies of requests and responses of the [endpoints](endpoints.md). [Resources](resources.md) has the fields of requests
that create or change resources and modules; a response has them too, even if they are null or empty, and this page lists
what it has beyond that. Unless a type is *optional*, requests must have the field, and responses always have it.";

/// The start of a list of values in a description.
const VALUES: &str = "\n\n- `";
/// The least number of fields that are worth a link to another body.
const SHARED_FIELDS: usize = 4;

pub(super) fn page(api: &Api) -> String {
    let sections: String = api.bodies().map(|(name, schema)| section(api, name, schema)).collect();
    format!("{INTRODUCTION}\n\n{}", sections.replace("](bodies.md#", "](#"))
}

fn section(api: &Api, name: &str, schema: &Value) -> String {
    let (about, own) = match api.definition(name) {
        Some((definition_name, definition)) => {
            let is_own = |(field, value): (&String, &Value)| {
                !is_covered(schema, definition, field) || type_of(value).contains("](bodies.md#")
            };
            let about = format!("The fields of [{definition_name}](resources.md#{})", definition_name.to_lowercase());
            (format!("{about}{}, and:", api.lacks(name)), with_fields(schema, is_own))
        }
        None => match part(api, schema) {
            Some((part_name, part)) => {
                let is_own = |(field, _): (&String, &Value)| fields(part).all(|(it, _)| it != field);
                let about = format!("The fields of [{part_name}](#{}), and:", part_name.to_lowercase());
                (format!("{} {about}", description(schema)), with_fields(schema, is_own))
            }
            None => (description(schema), schema.clone()),
        },
    };
    match schema.get("description").and_then(Value::as_str).filter(|text| text.contains(VALUES)) {
        Some(values) => format!("### {name}\n\n{}\n\n", prose(values)),
        None => format!("### {name}\n\n{}{}", paragraph(&about), fields_of(&own)),
    }
}

/// The largest other body whose fields a body has, too.
fn part<'a>(api: &'a Api, schema: &Value) -> Option<(&'a String, &'a Value)> {
    let has = |(name, field): (&String, &Value)| fields(schema).any(|it| it == (name, field));
    let is_part = |(name, part): &(&String, &Value)| {
        let count = fields(part).count();
        let is_smaller = (SHARED_FIELDS..fields(schema).count()).contains(&count);
        is_smaller && api.definition(name).is_none() && fields(part).all(has)
    };
    api.bodies().filter(is_part).max_by_key(|(_, part)| fields(part).count())
}

/// A schema with some of its fields.
fn with_fields(schema: &Value, is_kept: impl Fn((&String, &Value)) -> bool) -> Value {
    let mut kept = schema.clone();
    if let Some(properties) = kept.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, field| is_kept((name, &*field)));
    }
    kept
}

/// The fields of a body, none of which has a default of its own: descriptions have them.
fn fields_of(schema: &Value) -> String {
    let row = |row: Vec<String>| {
        let [path, type_name, need, meaning] = <[String; 4]>::try_from(row).ok()?;
        let need = if need == "required" { "" } else { ", *optional*" };
        Some(vec![path, type_name + need, meaning])
    };
    let rows: Vec<Vec<String>> = rows("", schema).into_iter().filter_map(row).collect();
    if rows.is_empty() { body(schema) } else { table(&["Field", "Type", "Meaning"], &rows) }
}

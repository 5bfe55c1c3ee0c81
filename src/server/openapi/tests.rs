//! What generators of clients need of the document.

use std::collections::BTreeSet;

use serde_json::Value;

use super::schemas::SCHEMAS;
use super::*;
use crate::server::VERSION_HEADER;

fn written() -> Value {
    document(VERSION_HEADER, "")
}

/// The operations with their ids.
fn operations(document: &Value) -> Vec<(String, Value)> {
    let paths = document.get("paths").and_then(Value::as_object).cloned().unwrap_or_default();
    let items = paths.into_iter().flat_map(|(_, item)| item.as_object().cloned().unwrap_or_default());
    let operations = items.filter(|(key, _)| key != "parameters");
    operations.map(|(_, operation)| (text(&operation, "operationId"), operation)).collect()
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn schemas_of(document: &Value) -> Map<String, Value> {
    document.pointer(SCHEMAS).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Visits every object.
fn visit(value: &Value, seen: &mut dyn FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(map) => {
            seen(map);
            map.values().for_each(|value| visit(value, seen));
        }
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        _ => {}
    }
}

#[test]
fn operation_ids_are_camel_case_and_unique() {
    let document = written();
    let ids: Vec<String> = operations(&document).into_iter().map(|(id, _)| id).collect();
    let unique: BTreeSet<&String> = ids.iter().collect();
    assert!(ids.len() > 90 && unique.len() == ids.len(), "{ids:?}");
    for id in &ids {
        assert!(id.starts_with(|first: char| first.is_ascii_lowercase()), "{id}");
        assert!(id.chars().all(|letter| letter.is_ascii_alphanumeric()), "{id}");
    }
    for id in [
        "listApiKeys",
        "listCertificateAuthorities",
        "createHttpsEdge",
        "replaceHttpsEdgeRouteBackend",
        "deleteHttpsEdgeRouteSaml",
        "listReconciliations",
        "getHealth",
    ] {
        assert!(ids.iter().any(|known| known == id), "{id} is missing");
    }
}

#[test]
fn every_operation_and_tag_is_described() {
    let document = written();
    let tags = document.get("tags").and_then(Value::as_array).cloned().unwrap_or_default();
    assert!(tags.iter().all(|tag| !text(tag, "description").is_empty()), "{tags:?}");
    let tags: BTreeSet<String> = tags.iter().map(|tag| text(tag, "name")).collect();
    for (id, operation) in operations(&document) {
        assert!(!text(&operation, "summary").is_empty() && !text(&operation, "description").is_empty(), "{id}");
        let tagged = operation.get("tags").and_then(Value::as_array).cloned().unwrap_or_default();
        assert!(matches!(tagged.as_slice(), [Value::String(tag)] if tags.contains(tag)), "{id}: {tagged:?}");
    }
}

#[test]
fn what_the_api_specification_lacks_is_marked() {
    let document = written();
    let is_marked = |value: &Value| value.get("x-extension") == Some(&json!(true));
    for (id, operation) in operations(&document).into_iter().filter(|(_, operation)| !is_marked(operation)) {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        for parameter in parameters.into_iter().flatten() {
            assert!(is_marked(parameter), "{id}: {parameter}");
        }
        let responses = operation.get("responses").and_then(Value::as_object);
        let headers = responses.into_iter().flatten().filter_map(|(_, response)| response.get("headers")?.as_object());
        for (name, header) in headers.flatten() {
            assert!(is_marked(header), "{id}: {name}");
        }
    }
    let schemas = Value::Object(schemas_of(&document));
    for form in ["ApiKey", "ApiKeyCreate", "ApiKeyUpdate"] {
        let scope = schemas.pointer(&format!("/{form}/properties/scope")).cloned().unwrap_or_default();
        assert!(is_marked(&scope), "{form}: {scope}");
    }
}

#[test]
fn schemas_have_the_names_of_what_users_see() {
    let document = written();
    let schemas = schemas_of(&document);
    for name in [
        "HttpsEdgeRoute",
        "HttpsEdgeRouteCreate",
        "HttpsEdgeRouteUpdate",
        "HttpsEdgeRouteList",
        "IpRestriction",
        "IpRestrictionModule",
        "IpRestrictionModuleInput",
        "MatchType",
        "ReconciliationCreate",
        "Error",
    ] {
        assert!(schemas.contains_key(name), "{name} is missing");
    }
    // Equal forms are one schema.
    assert!(!schemas.contains_key("MatchTypeInput"));
    assert!(schemas.keys().all(|name| !name.contains("View")));
    visit(&document, &mut |object| {
        if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
        }
    });
    // Names in brackets and numbers of decisions are for readers of the code.
    for (name, schema) in &schemas {
        let text = text(schema, "description");
        assert!(!text.is_empty() && !text.contains("[`") && !text.contains("(D"), "{name}: {text}");
    }
}

#[test]
fn schemas_have_no_form_that_generators_refuse() {
    let document = written();
    for (name, schema) in schemas_of(&document) {
        visit(&schema, &mut |object| {
            assert!(!object.contains_key("default"), "a default in {name}");
            let properties = object.get("properties").and_then(Value::as_object);
            let boolean = properties.into_iter().flatten().find(|(_, property)| property.is_boolean());
            assert!(boolean.is_none(), "{boolean:?} in {name}");
            let described = object.get("oneOf").and_then(Value::as_array);
            assert!(described.into_iter().flatten().all(|variant| variant.get("const").is_none()), "{name}");
        });
    }
    let schemas = schemas_of(&document);
    let of = |pointer: &str| Value::Object(schemas.clone()).pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(of("/MatchType/enum"), json!(["exact_path", "path_prefix"]));
    assert_eq!(
        of("/CompressionModuleInput/properties/enabled"),
        json!({
            "description": "Whether the module applies to traffic. Default: `true`.",
            "anyOf": [{"type": "boolean"}, {"type": "null"}],
        })
    );
    // A PATCH without a field does not change it.
    assert_eq!(of("/HttpsEdgeRouteUpdate/required"), Value::Null);
    let nullable = of("/HttpsEdgeRouteUpdate/properties/description/anyOf");
    assert_eq!(nullable, json!([{"type": "string", "maxLength": 255}, {"type": "null"}]));
}

//! Text of an export: values without defaults, names.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::manifest::load::envelope::API_VERSION;
use crate::manifest::load::kinds::{MODULE_SET, REQUIRED_MODULES};
use crate::model::{Entry, HttpsEdgeRoute, Kind};

/// Wraps a spec in a document.
pub(super) fn envelope(kind: Kind, metadata: Map<String, Value>, spec: impl Into<Value>) -> Value {
    let spec: Value = spec.into();
    json!({"apiVersion": API_VERSION, "kind": kind.info().name, "metadata": metadata, "spec": spec})
}

/// Replaces the modules that an edge requires by the name of a module set, and returns the set's document.
pub(super) fn take_required(edge: &str, spec: &mut Map<String, Value>) -> Option<Value> {
    let required = spec.remove(REQUIRED_MODULES)?;
    let Value::Object(modules) = required else { return None };
    let set = format!("required-by-{edge}");
    spec.insert(REQUIRED_MODULES.into(), json!([set]));
    Some(json!({"apiVersion": API_VERSION, "kind": MODULE_SET, "metadata": {"name": set}, "spec": modules}))
}

/// Whether a route's name is its current match.
pub(super) fn is_its_match(entry: &Entry, name: &str) -> bool {
    let route = entry.spec_as::<HttpsEdgeRoute>();
    let identity = route.and_then(|route| Some(format!("{} {}", route.match_type?.as_str(), route.r#match)));
    identity.is_some_and(|identity| identity == name)
}

/// Removes fields with default values.
pub(super) fn prune(value: &mut Value, default: &Value) {
    match (value, default) {
        (Value::Object(fields), Value::Object(defaults)) => {
            fields.retain(|field, value| defaults.get(field) != Some(&*value));
            for (field, value) in fields {
                // Fields without a default are user data, such as headers.
                if let Some(default) = defaults.get(field) {
                    prune(value, default);
                }
            }
        }
        (Value::Object(fields), Value::Null) => drop_blank(fields),
        (Value::Array(items), _) => items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_blank),
        _ => {}
    }
}

/// Removes blank fields of a value without its own default.
fn drop_blank(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    // An item's own items, such as the actions of a policy.
    for value in fields.values_mut() {
        if let Value::Array(items) = value {
            items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_blank);
        }
    }
}

/// Converts text to a name of lower-case letters, digits and dashes.
pub(super) fn slug(text: &str) -> String {
    let whole = words(text).join("-").to_ascii_lowercase();
    whole.chars().take(40).collect::<String>().trim_end_matches('-').to_owned()
}

/// The letters and digits of a text.
pub(super) fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// Takes the first name that is free, or the last one with a number.
pub(super) fn unique(taken: &mut BTreeSet<String>, names: &[String], separator: char) -> String {
    let last = names.last().cloned().unwrap_or_default();
    let others = (2..).map(|number| format!("{last}{separator}{number}"));
    let free = names.iter().cloned().chain(others).find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// `HttpsEdge` as `Https_Edge`.
pub(super) fn spaced(kind: &str) -> String {
    let mut spaced = String::new();
    for c in kind.chars() {
        if c.is_ascii_uppercase() && !spaced.is_empty() {
            spaced.push('_');
        }
        spaced.push(c);
    }
    spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_defaults_are_left_out_and_data_stays() {
        let mut value =
            json!({"enabled": true, "add": {"X-Empty": ""}, "remove": [], "provider": {"a": {"id": ""}, "b": null}});
        let default = json!({"enabled": true, "add": {}, "remove": [], "provider": {"a": null, "b": null}});
        prune(&mut value, &default);
        assert_eq!(value, json!({"add": {"X-Empty": ""}, "provider": {"a": {}}}));
        let mut list = json!([{"name": "", "actions": [{"type": "log", "config": {"Metadata": {"x": ""}}}, {"type": "deny", "config": null}]}]);
        prune(&mut list, &json!([]));
        assert_eq!(list, json!([{"actions": [{"type": "log", "config": {"Metadata": {"x": ""}}}, {"type": "deny"}]}]));
    }

    #[test]
    fn names_are_words_and_never_taken_twice() {
        let mut taken = BTreeSet::new();
        assert_eq!(slug("Tools for staff (EU)!"), "tools-for-staff-eu");
        assert_eq!(unique(&mut taken, &["a".into()], '-'), "a");
        assert_eq!(unique(&mut taken, &["a".into()], '-'), "a-2");
        assert_eq!(spaced("HttpsEdgeRoute"), "Https_Edge_Route");
    }
}

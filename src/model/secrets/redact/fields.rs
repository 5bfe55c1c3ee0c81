//! The schemas of manifests, as far as they tell whether the values at a place in a document are public.

use std::{collections::BTreeMap, ptr};

use serde_json::Value;

use crate::model::diagnostics::suggestions::nearest;
use crate::model::secrets::{secret::SECRET_SCHEMA, text::TEXT_SCHEMA};

/// Shorter names of fields are not looked for in misspelt ones: too many words are like them.
const SHORTEST_MEANT: usize = 6;
/// How much longer or shorter a misspelt name is: a letter, and separators.
const MOST_LONGER: usize = 3;

/// The fields of manifests, as their JSON Schema declares them.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    schema: Value,
    /// Each name of a field, and whether a field with this name is secret, wherever it is.
    names: BTreeMap<String, bool>,
}

/// The schemas of the value at a place: several where there is a choice of forms, or where kinds differ, and none where
/// the schemas have no field.
#[derive(Debug, Clone, Default)]
pub(super) struct SchemaPlace<'f> {
    schemas: Vec<&'f Value>,
    /// Whether one of them is that of a secret.
    pub is_secret: bool,
    /// Whether one of them is that of a certificate or another long text, in whose place a key is easily pasted.
    is_text: bool,
}

impl SchemaPlace<'_> {
    /// Whether the schemas have a field at this place.
    pub(super) fn is_known(&self) -> bool {
        !self.schemas.is_empty()
    }

    /// Whether a mapping can be at this place.
    pub(super) fn is_mapping(&self) -> bool {
        let has_members =
            |schema: &&Value| schema.get("properties").is_some() || schema.get("additionalProperties").is_some();
        self.schemas.iter().any(has_members)
    }

    /// Whether a text, a number or a boolean can be at this place.
    fn is_scalar(&self) -> bool {
        self.schemas.iter().any(|schema| {
            let named = schema.get("type").map(|it| it.as_array().map_or(std::slice::from_ref(it), Vec::as_slice));
            let is_scalar = |it: &Value| ["string", "integer", "number", "boolean"].iter().any(|name| it == name);
            named.is_some_and(|it| it.iter().any(is_scalar)) || schema.get("enum").or(schema.get("const")).is_some()
        })
    }
}

impl Fields {
    /// Creates the fields of a JSON Schema.
    pub(crate) fn new(schema: Value) -> Self {
        let mut fields = Self { schema, names: BTreeMap::new() };
        let mut names = BTreeMap::new();
        fields.collect_names(&fields.schema, &mut names);
        fields.names = names;
        fields
    }

    fn collect_names(&self, schema: &Value, names: &mut BTreeMap<String, bool>) {
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let place = self.place(property);
            *names.entry(name.clone()).or_default() |= place.is_secret || self.item(&place).is_secret;
        }
        match schema {
            Value::Array(parts) => parts.iter().for_each(|part| self.collect_names(part, names)),
            Value::Object(parts) => parts.values().for_each(|part| self.collect_names(part, names)),
            _ => {}
        }
    }

    /// The names of the secret fields.
    #[cfg(test)]
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|(_, is_secret)| **is_secret).map(|(name, _)| name.as_str())
    }

    /// Whether a field of this name exists, wherever it is.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Whether a secret field of this name exists, wherever it is.
    pub(super) fn is_secret_name(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|is_secret| *is_secret)
    }

    /// The place of a document.
    pub(super) fn document(&self) -> SchemaPlace<'_> {
        self.place(&self.schema)
    }

    /// The place of a member of a mapping. The members of free-form maps have no names in the schema, so nothing is known
    /// about their values.
    pub(super) fn member<'f>(&'f self, mapping: &SchemaPlace<'f>, name: &str) -> SchemaPlace<'f> {
        let mut found = SchemaPlace::default();
        for schema in &mapping.schemas {
            if let Some(property) = schema.get("properties").and_then(|it| it.get(name)) {
                self.expand(property, &mut found);
            }
            for (pattern, property) in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
            {
                // `^prefix` is the only form in the schemas.
                if pattern.strip_prefix('^').is_some_and(|it| name.starts_with(&it.replace('\\', ""))) {
                    self.expand(property, &mut found);
                }
            }
        }
        found
    }

    /// The public field that a misspelt name in a mapping means, with its place. A field that can be secret is never meant: what
    /// is like its name, or is in its place, is as hidden as before.
    pub(super) fn meant<'f>(&'f self, mapping: &SchemaPlace<'f>, name: &str) -> Option<(&'f str, SchemaPlace<'f>)> {
        if mapping.is_secret || mapping.is_text {
            return None;
        }
        let properties = mapping.schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
        let known = properties.flatten().map(|(known, _)| known.as_str()).find(|known| is_misspelt(name, known))?;
        let place = self.member(mapping, known);
        (self.is_public(&place) && !self.is_like_secret(name)).then_some((known, place))
    }

    /// Whether a name is like that of a secret field, wherever it is.
    fn is_like_secret(&self, name: &str) -> bool {
        let secrets = self.names.iter().filter(|(_, is_secret)| **is_secret);
        nearest(name, secrets.map(|(secret, _)| secret.as_str())).is_some()
    }

    /// The place of the items of a list.
    pub(super) fn item<'f>(&'f self, list: &SchemaPlace<'f>) -> SchemaPlace<'f> {
        let mut found = SchemaPlace::default();
        list.schemas.iter().filter_map(|schema| schema.get("items")).for_each(|items| self.expand(items, &mut found));
        found
    }

    /// Whether a scalar at a place is public. One where the schemas have a list counts as its only item.
    pub(super) fn is_public(&self, place: &SchemaPlace<'_>) -> bool {
        let item = self.item(place);
        let is_hidden = place.is_secret || place.is_text || item.is_secret || item.is_text;
        !is_hidden && (place.is_scalar() || item.is_scalar())
    }

    fn place<'f>(&'f self, schema: &'f Value) -> SchemaPlace<'f> {
        let mut place = SchemaPlace::default();
        self.expand(schema, &mut place);
        place
    }

    /// Adds a schema and those that it refers to or offers as choices. Conditions describe no fields.
    fn expand<'f>(&'f self, schema: &'f Value, place: &mut SchemaPlace<'f>) {
        if place.schemas.iter().any(|it| ptr::eq(*it, schema)) {
            return;
        }
        place.schemas.push(schema);
        if let Some(name) = schema.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix("#/$defs/")) {
            place.is_secret |= name == SECRET_SCHEMA;
            place.is_text |= name == TEXT_SCHEMA;
            if let Some(definition) = self.schema.get("$defs").and_then(|it| it.get(name)) {
                self.expand(definition, place);
            }
        }
        let choices = ["anyOf", "oneOf", "allOf"].iter().filter_map(|it| schema.get(it)?.as_array()).flatten();
        choices.for_each(|choice| self.expand(choice, place));
    }
}

/// Whether a name is that of a field but for one letter, the case of its letters, and its separators.
fn is_misspelt(name: &str, known: &str) -> bool {
    let folded = |text: &str| text.to_ascii_lowercase().replace(['_', '-'], "");
    known.len() >= SHORTEST_MEANT
        && name.len().abs_diff(known.len()) <= MOST_LONGER
        && strsim::damerau_levenshtein(&folded(name), &folded(known)) <= 1
}

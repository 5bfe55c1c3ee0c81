//! The schemas of the document: the forms of requests and responses, and their names (D68).

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::json;

use super::operation_texts::{noun, pascal};
use crate::model::json::without_nulls;
use crate::model::schema::{definition_name, inline, refine};
use crate::server::prelude::*;
use crate::syntax::text::plural;

/// Where the document has its schemas.
pub(super) const SCHEMAS: &str = "/components/schemas";
/// Where the generators put write forms and response forms until they have their names.
const REQUESTS: &str = "/requests";
const RESPONSES: &str = "/responses";

/// The schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schemas that operations reference.
pub(crate) struct Schemas {
    /// The write forms.
    requests: SchemaGenerator,
    /// The response forms, in which every key is always present (D14).
    responses: SchemaGenerator,
    /// The forms without a type, by name: the write forms of PATCH, and lists.
    derived: Map<String, Value>,
}

impl Schemas {
    /// Starts without schemas.
    pub(super) fn new() -> Self {
        let at = |path: &'static str| {
            SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = path.into())
        };
        Self {
            requests: at(REQUESTS).into_generator(),
            responses: at(RESPONSES).for_serialize().into_generator(),
            derived: Map::new(),
        }
    }

    /// References the write form of a kind or module.
    pub(super) fn request_of(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.requests).to_value()
    }

    /// References the response form of a kind or module.
    pub(super) fn response_of(&mut self, schema: SchemaOf) -> Value {
        schema(&mut self.responses).to_value()
    }

    /// References the write form of a type.
    pub(crate) fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().to_value()
    }

    /// References the response form of a type.
    pub(crate) fn response<T: JsonSchema>(&mut self) -> Value {
        self.responses.subschema_for::<T>().to_value()
    }

    /// References the write form of PATCH: without immutable fields, and without required fields or defaults, because a
    /// missing field does not change.
    pub(super) fn update_of(&mut self, info: &KindInfo) -> Value {
        let mut whole = inline(&mut self.requests, info.spec_schema);
        if let Some(properties) = whole.get_mut("properties").and_then(Value::as_object_mut) {
            properties.retain(|field, _| !info.fixed.contains(&field.as_str()));
            for field in info.blank_is_unset {
                if let Some(property) = properties.get_mut(*field) {
                    or_blank(property);
                }
            }
        }
        without_defaults(&mut whole);
        write_form(&mut whole);
        self.derive(format!("{}Update", info.name), whole)
    }

    /// References a list of a kind's resources, with the name of the array.
    pub(super) fn list(&mut self, kind: &str, array: &str, items: Value, paged: bool) -> Value {
        let next = json!({"type": ["string", "null"], "description": "URI of the next page; null on the last page."});
        let properties = without_nulls(json!({
            array: {"type": "array", "items": items},
            "uri": {"type": "string", "description": "URI of the list."},
            "next_page_uri": paged.then_some(next),
        }));
        let required: Vec<&str> = [array, "uri"].into_iter().chain(paged.then_some("next_page_uri")).collect();
        let list = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
            "description": format!("A list of {}.", plural(&noun(kind))),
        });
        self.derive(format!("{kind}List"), list)
    }

    /// Adds the schema of a page of a list that an operation returns, and returns a reference to it.
    pub(crate) fn page_of<T: JsonSchema>(&mut self, kind: &str, array: &str) -> Value {
        let items = self.response::<T>();
        self.list(kind, array, items, true)
    }

    /// Adds the schema of a whole list that an operation returns, and returns a reference to it.
    pub(crate) fn whole_list_of<T: JsonSchema>(&mut self, kind: &str, array: &str) -> Value {
        let items = self.response::<T>();
        self.list(kind, array, items, false)
    }

    fn derive(&mut self, name: String, schema: Value) -> Value {
        let reference = json!({"$ref": format!("#{SCHEMAS}/{name}")});
        self.derived.insert(name, schema);
        reference
    }

    /// Returns all schemas by name, and the references to them by those of the generators.
    pub(super) fn finish(mut self) -> (Map<String, Value>, BTreeMap<String, String>) {
        let mut requests = self.requests.take_definitions(true);
        refine(&mut requests, Kind::constraints());
        requests.values_mut().for_each(write_form);
        allow_blank_variants(&mut requests);
        let mut responses = self.responses.take_definitions(true);
        describe(&mut responses);
        for definition in responses.values_mut() {
            list_variants(definition);
            without_defaults(definition);
        }
        let names = names(&requests, &responses);
        let mut all: BTreeMap<String, Value> = self.derived.into_iter().collect();
        for (path, forms) in [(REQUESTS, requests), (RESPONSES, responses)] {
            for (definition, schema) in forms {
                let name = names.get(&format!("#{path}/{definition}")).cloned();
                all.insert(name.unwrap_or(definition), schema);
            }
        }
        let references = names.into_iter().map(|(reference, name)| (reference, format!("#{SCHEMAS}/{name}")));
        (all.into_iter().collect(), references.collect())
    }
}

/// Returns the description of a type.
pub(super) fn description_of(schema: SchemaOf) -> Option<Value> {
    inline(&mut SchemaGenerator::default(), schema).get("description").cloned()
}

/// Replaces references.
pub(crate) fn redirect(value: &mut Value, targets: &BTreeMap<String, String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value.as_str().and_then(|reference| targets.get(reference)) {
                    Some(target) if key == "$ref" => *value = json!(target),
                    _ => redirect(value, targets),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| redirect(item, targets)),
        _ => {}
    }
}

/// Names the definitions of the generators. A response form has the name of what it is. A write form has it too if both
/// are equal or there is only one; otherwise it has a suffix.
fn names(requests: &Map<String, Value>, responses: &Map<String, Value>) -> BTreeMap<String, String> {
    let modules = module_names();
    let plain = |definition: &str| {
        let definition = definition.strip_suffix("View").unwrap_or(definition);
        modules.get(definition).cloned().unwrap_or_else(|| definition.to_owned())
    };
    let mut names = BTreeMap::new();
    for definition in responses.keys() {
        names.insert(format!("#{RESPONSES}/{definition}"), plain(definition));
    }
    for (definition, form) in requests {
        let response = responses.get(definition).or_else(|| responses.get(&format!("{definition}View")));
        // A form with references can differ from another in what they reference.
        let only = response.is_none_or(|response| response == form && !form.to_string().contains("\"$ref\""));
        let name = match plain(definition) {
            name if Kind::all().any(|info| info.name == definition) => format!("{name}Create"),
            name if only => name,
            name => format!("{name}Input"),
        };
        names.insert(format!("#{REQUESTS}/{definition}"), name);
    }
    names
}

/// The names of the modules by the names of their types, which can be shorter than the name of the slot says.
fn module_names() -> BTreeMap<String, String> {
    let mut generator = SchemaGenerator::default();
    let mut names = BTreeMap::new();
    for slot in Kind::all().flat_map(|info| info.slots) {
        let reference = (slot.spec_schema)(&mut generator).to_value();
        if let Some(definition) = definition_name(&reference) {
            names.insert(definition.to_owned(), format!("{}Module", pascal(slot.name)));
        }
    }
    names
}

/// Gives the response forms of kinds and modules the descriptions of their write forms: the others are about the code.
fn describe(responses: &mut Map<String, Value>) {
    let kinds = Kind::all().map(|info| (info.spec_schema, info.view_schema));
    let modules = Kind::all().flat_map(|info| info.slots).map(|slot| (slot.spec_schema, slot.view_schema));
    let mut generator = SchemaGenerator::default();
    for (spec, view) in kinds.chain(modules) {
        let Some(text) = inline(&mut generator, spec).get("description").cloned() else { continue };
        let reference = view(&mut generator).to_value();
        let Some(definition) = definition_name(&reference) else { continue };
        if let Some(response) = responses.get_mut(definition).and_then(Value::as_object_mut) {
            response.insert("description".into(), text);
        }
    }
}

/// Allows null for optional fields, because null means "not given" in a request (D6), and puts defaults into descriptions:
/// from the keyword, generators make clients that send the default, or that require the field.
fn write_form(definition: &mut Value) {
    list_variants(definition);
    let required = required(definition);
    for (name, property) in properties(definition) {
        if let Some(map) = property.get_mut("additionalProperties").filter(|map| map.is_object()) {
            *map = or_null(map.take());
        }
        if !required.contains(&json!(name)) {
            *property = or_null(property.take());
        }
        describe_default(property);
    }
}

/// Makes an `enum` of variants with descriptions: few generators make one of `oneOf` with `const`.
fn list_variants(definition: &mut Value) {
    let Some(variants) = definition.get("oneOf").and_then(Value::as_array) else { return };
    let mut values: Vec<Value> = Vec::new();
    let mut lines: Vec<String> = Vec::new();
    for variant in variants {
        let text = variant.get("description").and_then(Value::as_str);
        match (variant.get("const"), variant.get("enum")) {
            (Some(Value::String(value)), _) => {
                values.push(json!(value));
                lines.extend(text.map(|text| format!("- `{value}`: {text}")));
            }
            (_, Some(Value::Array(undescribed))) => values.extend(undescribed.iter().cloned()),
            _ => return,
        }
    }
    let text = definition.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = format!("{text}\n\n{}", lines.join("\n"));
    *definition = json!({"type": "string", "enum": values, "description": text.trim()});
}

fn without_defaults(definition: &mut Value) {
    for (_, property) in properties(definition) {
        if let Some(property) = property.as_object_mut() {
            property.shift_remove("default");
        }
    }
}

/// The fields of a form that must be given.
fn required(definition: &Value) -> Vec<Value> {
    definition.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn properties(definition: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    definition.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
}

/// Moves a default into the description, unless it is the same as unset.
fn describe_default(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    let Some(default) = property.shift_remove("default") else { return };
    let default = match default {
        Value::Bool(true) => "true".to_owned(),
        Value::Number(number) if number.as_f64() != Some(0.0) => number.to_string(),
        Value::String(text) if !text.is_empty() => text,
        // The fields of an object have their own defaults.
        _ => return,
    };
    let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
    if !text.contains("default") {
        let text = format!("{text} Default: `{default}`.");
        property.insert("description".into(), json!(text.trim()));
    }
}

/// Allows an empty string in every optional field with variants, where it means "not given" (D62).
fn allow_blank_variants(requests: &mut Map<String, Value>) {
    let with_variants = requests.iter().filter(|(_, definition)| definition.get("enum").is_some());
    let variants: Vec<Value> = with_variants.map(|(name, _)| json!({"$ref": format!("#{REQUESTS}/{name}")})).collect();
    for definition in requests.values_mut() {
        let required = required(definition);
        let mut blank = Vec::new();
        for (name, property) in properties(definition) {
            let options = property.get("anyOf").and_then(Value::as_array);
            let has_variants = options.is_some_and(|options| options.iter().any(|option| variants.contains(option)));
            if has_variants && !required.contains(&json!(name)) {
                or_blank(property);
                blank.push(name.clone());
            }
        }
        // Where a rule wants null, a blank means null.
        let ruled = definition.pointer_mut("/then/properties").and_then(Value::as_object_mut);
        for (name, rule) in ruled.into_iter().flatten() {
            if blank.contains(name) && *rule == json!({"type": "null"}) {
                *rule = json!({"type": ["string", "null"], "maxLength": 0});
            }
        }
    }
}

/// Allows an empty string, which clients send for a field that is not given (D6).
fn or_blank(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    match property.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(options) => options.insert(options.len().saturating_sub(1), json!({"type": "string", "const": ""})),
        None => drop(property.shift_remove("minLength")),
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

//! The OpenAPI document for the pages: its references name the page that has a type.

use super::fields::{fields, list, referenced, type_of};
use super::markdown::code;
use super::resources::definitions;
use crate::cli::prelude::*;
use crate::server::openapi::document;
use crate::server::openapi::schemas::redirect;
use crate::server::{Action, endpoints};

/// The suffixes of names of write forms.
const WRITE_FORMS: [&str; 3] = ["Create", "Update", "Input"];
/// The fields that each list has beside the array.
const PAGE_FIELDS: [&str; 2] = ["uri", "next_page_uri"];

/// The document, and the types that manifests have, too.
pub(super) struct Api {
    pub(super) document: Value,
    /// The types of manifests by name.
    definitions: BTreeMap<String, Value>,
    /// The names of modules' types by those of their response forms.
    modules: BTreeMap<String, String>,
}

impl Api {
    pub(super) fn new() -> Self {
        let (document, definitions) = (document(VERSION_HEADER, ""), definitions());
        let modules = endpoints().into_iter().filter_map(|endpoint| {
            let Action::GetModule(slot) = endpoint.action else { return None };
            let operation = document.get("paths")?.get(&endpoint.path)?.get("get")?;
            let form = operation.pointer("/responses/200/content/application~1json/schema")?;
            let field = definitions.get(endpoint.kind.info().name)?.get("properties")?.get(slot.name)?;
            Some((referenced(form)?.to_owned(), referenced(field)?.to_owned()))
        });
        let mut api = Self { modules: modules.collect(), document, definitions };
        let target =
            |(name, schema): (&String, &Value)| (format!("#/components/schemas/{name}"), api.target(name, schema));
        let targets: BTreeMap<String, String> = api.schemas().map(target).collect();
        redirect(&mut api.document, &targets);
        api
    }

    /// All schemas by name.
    fn schemas(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.document.pointer("/components/schemas").and_then(Value::as_object).into_iter().flatten()
    }

    /// The schemas that the page of resources does not cover, without lists.
    pub(super) fn bodies(&self) -> impl Iterator<Item = (&String, &Value)> {
        let is_body = move |(name, schema): &(&String, &Value)| self.target(name, schema).starts_with("bodies.md");
        self.schemas().filter(is_body).filter(|(_, schema)| listed(schema).is_none())
    }

    /// The type of manifests of which a schema is a form.
    pub(super) fn definition(&self, form: &str) -> Option<(&String, &Value)> {
        let name = WRITE_FORMS.into_iter().find_map(|suffix| form.strip_suffix(suffix)).unwrap_or(form);
        self.definitions.get_key_value(self.modules.get(name).map_or(name, String::as_str))
    }

    /// The type of a body. A list is shown with the name of its array.
    pub(super) fn type_of(&self, schema: &Value) -> String {
        let name = referenced(schema).unwrap_or_default();
        let list = self.schemas().find(|(it, _)| *it == name).and_then(|(_, schema)| listed(schema));
        list.map_or_else(|| type_of(schema), |(array, items)| format!("{} in {}", type_of(items), code(array)))
    }

    /// The fields of its definition that a form lacks, as part of a sentence.
    pub(super) fn lacks(&self, form: &str) -> String {
        let schema = self.schemas().find(|(name, _)| *name == form).map_or(&Value::Null, |(_, schema)| schema);
        let all = self.definition(form).into_iter().flat_map(|(_, definition)| fields(definition));
        let lacking = all.filter(|(name, _)| fields(schema).all(|(it, _)| it != *name));
        let names: Vec<String> = lacking.map(|(name, _)| code(name)).collect();
        if names.is_empty() { String::new() } else { format!(" without {}", names.join(", ")) }
    }

    /// The page and name of a type. Its definition covers a write form, and a response form with the same fields.
    fn target(&self, form: &str, schema: &Value) -> String {
        let is_write_form = WRITE_FORMS.iter().any(|suffix| form.ends_with(suffix));
        let covers = |definition: &Value| fields(schema).all(|(field, _)| is_covered(schema, definition, field));
        match self.definition(form).filter(|(_, definition)| is_write_form || covers(definition)) {
            Some((name, _)) => format!("resources.md/{name}"),
            None => format!("bodies.md/{form}"),
        }
    }
}

/// Whether a definition says what there is to say about the field of a response form.
pub(super) fn is_covered(schema: &Value, definition: &Value, field: &str) -> bool {
    let is_required = list(schema, "required").any(|it| it == field);
    is_required && fields(definition).any(|(name, _)| name == field)
}

/// The array of a list and its name.
fn listed(schema: &Value) -> Option<(&String, &Value)> {
    let mut others = fields(schema).filter(|(name, _)| !PAGE_FIELDS.contains(&name.as_str()));
    let (name, array) = others.next().filter(|(_, field)| field.get("items").is_some())?;
    let is_list = others.next().is_none() && fields(schema).any(|(name, _)| name == "uri");
    is_list.then_some((name, array))
}

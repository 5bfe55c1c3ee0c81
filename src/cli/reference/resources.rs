//! The page of kinds and modules, from the JSON Schema of manifests.

use super::fields::{body, description, fields, list, module_names, referenced, section};
use super::markdown::{code, paragraph};
use crate::cli::prelude::*;
use crate::manifest::load::schema::{ANY, all};

/// The envelope of a manifest, whose type is described before the kinds.
const METADATA: &str = "Metadata";

const INTRODUCTION: &str = "\
# Resources

A manifest has `apiVersion: edgewright/v1`, a `kind`, `metadata` and a `spec`; [Manifests](manifests.md) describes how
they are read. The tables list the fields of `metadata`, of the `spec` of each kind, of the modules, and of all other
types. Lengths count bytes of UTF-8. A null field counts as not given. `edgewright schema KIND` prints the JSON
Schema with every pattern, and [Bodies](bodies.md) has the other fields of requests and responses.

## Metadata";

const MODULES: &str = "\
## Modules

A module is one field of a route, an edge or a `ModuleSet`, and one path segment below the resource in the API.";

/// A module: the field that has it, and the kinds with this field.
type ModuleUse<'s> = (&'s str, Vec<&'s str>);

pub(super) fn page() -> String {
    let schema = all().remove(ANY).unwrap_or_default();
    let definitions: BTreeMap<&str, &Value> = match schema.get("$defs").and_then(Value::as_object) {
        Some(definitions) => definitions.iter().map(|(name, definition)| (name.as_str(), definition)).collect(),
        None => BTreeMap::new(),
    };
    let modules = modules(&schema);
    let metadata = definitions.get(METADATA).map(|metadata| body(metadata)).unwrap_or_default();
    let kinds: String = list(&schema, "oneOf").map(of_kind).collect();
    let of_module = |(name, schema): (&&str, &&Value)| {
        let (field, kinds) = modules.get(*name)?;
        Some(section(name, &format!("Field {} of {}.", code(field), kinds.join(", ")), schema))
    };
    let of_modules: String = definitions.iter().filter_map(of_module).collect();
    let is_type = |name: &str| name != METADATA && !modules.contains_key(name);
    let types = definitions.iter().filter(|(name, _)| is_type(name));
    let types: String = types.map(|(name, schema)| section(name, "", schema)).collect();
    format!("{INTRODUCTION}\n\n{metadata}## Kinds\n\n{kinds}{MODULES}\n\n{of_modules}## Types\n\n{types}")
}

/// The types of manifests by name: of kinds their Specs.
pub(super) fn definitions() -> BTreeMap<String, Value> {
    let schema = all().remove(ANY).unwrap_or_default();
    let types = schema.get("$defs").and_then(Value::as_object).into_iter().flatten();
    let types = types.map(|(name, definition)| (name.clone(), definition.clone()));
    types.chain(list(&schema, "oneOf").map(|kind| (title(kind).to_owned(), spec(kind).clone()))).collect()
}

fn of_kind(document: &Value) -> String {
    let (name, spec) = (title(document), spec(document));
    let info = Kind::all().find(|info| info.name == name);
    let path = info.map(|info| format!("In the API: {}.", code(info.collection))).unwrap_or_default();
    let fixed: Vec<String> = info.into_iter().flat_map(|info| info.fixed).map(|field| code(field)).collect();
    let fixed = match fixed.is_empty() {
        true => String::new(),
        false => format!("Fixed at creation, so that a change replaces the resource: {}.", fixed.join(", ")),
    };
    let facts: Vec<String> = [description(spec), path, fixed].into_iter().filter(|fact| !fact.is_empty()).collect();
    format!("### {name}\n\n{}{}", paragraph(&facts.join(" ")), body(spec))
}

/// The modules by the names of their types.
fn modules(schema: &Value) -> BTreeMap<&str, ModuleUse<'_>> {
    let slots = module_names();
    let mut modules: BTreeMap<&str, ModuleUse<'_>> = BTreeMap::new();
    for document in list(schema, "oneOf") {
        for (field, property) in fields(spec(document)).filter(|(field, _)| slots.contains(field.as_str())) {
            let Some(name) = referenced(property) else { continue };
            modules.entry(name).or_insert_with(|| (field.as_str(), Vec::new())).1.push(title(document));
        }
    }
    modules
}

fn title(document: &Value) -> &str {
    document.get("title").and_then(Value::as_str).unwrap_or_default()
}

fn spec(document: &Value) -> &Value {
    document.pointer("/properties/spec").unwrap_or(&Value::Null)
}

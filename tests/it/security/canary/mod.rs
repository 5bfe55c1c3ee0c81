//! Canaries: marked secrets in every secret field, searched in everything that the product says and writes.
//!
//! The fields come from the product's own schemas, so a new secret field is part of these tests without a change here,
//! or fails one of them until it has a valid example.

mod debugging;
mod mark;
mod mistakes;
mod server;
mod world;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::{manifests::kind_schemas, program::REPOSITORY};

/// The name of the schema of a secret.
const SECRET: &str = "Secret";
/// In a path, an entry of a list.
const ENTRY: &str = "[]";

/// A field of a manifest that has a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SecretField {
    /// The kind of the manifest.
    kind: String,
    /// The names from the top of the manifest to the field; [`ENTRY`] for a list.
    path: Vec<String>,
}

impl SecretField {
    /// The name of the field.
    fn name(&self) -> &str {
        &self.path[self.path.len() - 1]
    }

    /// What is between `spec` and the field.
    fn parents(&self) -> &[String] {
        assert_eq!(self.path[0], "spec", "{self:?}");
        &self.path[1..self.path.len() - 1]
    }
}

/// Every secret field of every kind.
fn secret_fields() -> Vec<SecretField> {
    let mut found = BTreeSet::new();
    for (kind, schema) in kind_schemas() {
        let mut search = Search { kind: &kind, definitions: &schema["$defs"], found: &mut found };
        search.visit(&schema, &mut Vec::new(), &mut Vec::new());
    }
    found.into_iter().collect()
}

/// A walk through the schema of a kind.
struct Search<'s, 'f> {
    kind: &'s str,
    definitions: &'s Value,
    found: &'f mut BTreeSet<SecretField>,
}

impl<'s> Search<'s, '_> {
    fn visit(&mut self, schema: &'s Value, path: &mut Vec<String>, open: &mut Vec<&'s str>) {
        if let Some(name) = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next()) {
            if name == SECRET {
                self.found.insert(SecretField { kind: self.kind.to_owned(), path: path.clone() });
            } else if !open.contains(&name) {
                open.push(name);
                let definitions = self.definitions;
                self.visit(&definitions[name], path, open);
                open.pop();
            }
        }
        for choice in ["anyOf", "oneOf", "allOf"] {
            for choice in schema[choice].as_array().into_iter().flatten() {
                self.visit(choice, path, open);
            }
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            path.push(name.clone());
            self.visit(property, path, open);
            path.pop();
        }
        for (name, segment) in [("items", ENTRY), ("additionalProperties", "key")] {
            if schema[name].is_object() {
                path.push(segment.to_owned());
                self.visit(&schema[name], path, open);
                path.pop();
            }
        }
    }
}

#[test]
fn the_secret_fields_are_those_of_the_code() {
    let fields = secret_fields();
    let names: BTreeSet<&str> = fields.iter().map(SecretField::name).collect();
    // Each field of the type `Secret` in the Specs is in a schema of a manifest.
    let mut declared = BTreeSet::new();
    for folder in ["kind", "module"] {
        for entry in fs::read_dir(format!("{REPOSITORY}/src/model/{folder}")).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            let of_secrets = |line: &str| {
                let (name, of) = line.trim().strip_prefix("pub ")?.split_once(": ")?;
                let of = of.trim_end_matches(',');
                ["Secret", "Option<Secret>", "Vec<Secret>"].contains(&of).then(|| name.to_owned())
            };
            declared.extend(text.lines().filter_map(of_secrets));
        }
    }
    assert_eq!(names, declared.iter().map(String::as_str).collect());
    assert!(fields.len() >= 31, "{fields:?}");
}

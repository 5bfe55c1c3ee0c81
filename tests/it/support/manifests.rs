//! Manifests that many tests begin with, and the schemas of all.

use std::fs;

use serde_json::Value;

use super::program::REPOSITORY;

/// An edge with a spec. More metadata can follow its name.
pub(crate) fn edge_with(name: &str, spec: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

/// An edge with a description.
pub(crate) fn edge(name: &str, description: &str) -> String {
    edge_with(name, &format!("{{description: {description}, hostports: [\"{name}.example.com:443\"]}}"))
}

/// So many edges, one in a document; their names are a prefix and a number.
pub(crate) fn edges(prefix: &str, count: usize) -> String {
    (0..count).map(|number| format!("---\n{}", bare_edge(&format!("{prefix}{number}"), ""))).collect()
}

/// An edge without a description; `more` goes behind its name.
pub(crate) fn bare_edge(name: &str, more: &str) -> String {
    edge_with(&format!("{name}{more}"), &format!("{{hostports: [\"{name}.example.com:443\"]}}"))
}

/// The JSON Schemas of all kinds of manifests in this repository, by kind.
pub(crate) fn kind_schemas() -> Vec<(String, Value)> {
    let mut schemas = Vec::new();
    for entry in fs::read_dir(format!("{REPOSITORY}/schemas")).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.file_stem().unwrap().to_string_lossy().into_owned();
        // These have all kinds.
        if !["manifest", "openapi"].contains(&kind.as_str()) {
            schemas.push((kind, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()));
        }
    }
    schemas
}

//! Manifests that many tests begin with.

/// An edge with a description.
pub(crate) fn edge(name: &str, description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{description: {description}, hostports: [\"{name}.example.com:443\"]}}\n"
    )
}

/// So many edges, one in a document; their names are a prefix and a number.
pub(crate) fn edges(prefix: &str, count: usize) -> String {
    (0..count).map(|number| format!("---\n{}", bare_edge(&format!("{prefix}{number}"), ""))).collect()
}

/// An edge without a description; `more` goes behind its name.
pub(crate) fn bare_edge(name: &str, more: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}{more}}}\n\
         spec: {{hostports: [\"{name}.example.com:443\"]}}\n"
    )
}

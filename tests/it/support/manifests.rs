//! Manifests that many tests begin with.

/// An edge with a description.
pub(crate) fn edge(name: &str, description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{description: {description}, hostports: [\"{name}.example.com:443\"]}}\n"
    )
}

/// An edge without a description; `more` goes behind its name.
pub(crate) fn bare_edge(name: &str, more: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}{more}}}\n\
         spec: {{hostports: [\"{name}.example.com:443\"]}}\n"
    )
}

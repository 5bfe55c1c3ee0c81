//! The envelope of every manifest (D26).

use crate::manifest::prelude::*;
use schemars::JsonSchema;

/// The version of the manifest format.
pub(crate) const API_VERSION: &str = "edgewright/v1";

/// The fields of a manifest besides `spec`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Envelope {
    /// The version of the manifest format: `edgewright/v1`.
    #[serde(rename = "apiVersion")]
    pub api_version: String,
    /// The kind of resource.
    pub kind: String,
    /// The resource's name, labels and lifecycle options.
    pub metadata: Metadata,
}

/// The name, labels and lifecycle options of a resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metadata {
    /// Lower-case letters, digits, '-' and '.'; unique per kind.
    pub name: String,
    /// Custom labels.
    pub labels: BTreeMap<String, String>,
    /// Free text, except `edgewright/lint.NAME: allow|warn|deny`, also with a reason: `allow (REASON)`.
    #[schemars(extend("patternProperties" = {"^edgewright/lint\\.": {"type": "string", "pattern": "^(allow|warn|deny)( \\(.*\\))?$"}}))]
    pub annotations: BTreeMap<String, String>,
    /// Adopts the existing resource with this identifier.
    pub id: Option<String>,
    /// The former name: the resource is kept across the rename.
    pub renamed_from: Option<String>,
    /// Refuses any plan that would delete or replace the resource.
    pub prevent_destroy: bool,
    /// The source to take the resource over from; its manifest must consent with `transfer_to`.
    pub transfer_from: Option<String>,
    /// The source that may take the resource over.
    pub transfer_to: Option<String>,
}

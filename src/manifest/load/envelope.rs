//! The envelope of every manifest (D26).

use crate::manifest::prelude::*;
use schemars::JsonSchema;

/// The version of the manifest format.
pub(crate) const API_VERSION: &str = "edgewright/v1";

/// The fields of every manifest.
pub(in crate::manifest) const ENVELOPE: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

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

/// The fields of [`Metadata`] that are easily written beside it.
const OF_METADATA: [&str; 4] = ["name", "labels", "annotations", "id"];
/// The fields of [`Metadata`] that are easily written into `spec`.
const NOT_OF_SPEC: [&str; 7] =
    ["name", "labels", "annotations", "renamed_from", "prevent_destroy", "transfer_from", "transfer_to"];

/// Says where a field belongs that is beside `metadata` and `spec`, unless it is misspelt.
pub(super) fn with_place(fault: Fault) -> Fault {
    let Some(field) = fault.unknown_field() else { return fault };
    let help = if OF_METADATA.contains(&field) {
        "move it into `metadata`"
    } else {
        "use one of `apiVersion`, `kind`, `metadata`, `spec`; the fields of the resource belong in `spec`"
    };
    fault.help(help)
}

/// Says where an unknown field of `spec` belongs, or of an entry of a list in it, if that is in `metadata` or in the routes of an
/// edge. A route inside an edge has no `metadata` for it.
pub(super) fn moved_out_of_spec(kind: Kind, is_entry: bool, fault: Fault) -> Fault {
    let Some(field) = fault.unknown_field() else { return fault };
    let is_of_metadata = NOT_OF_SPEC.contains(&field);
    let is_of_routes = || {
        let slots = Kind::HttpsEdgeRoute.info().slots;
        matches!(field, "match" | "match_type" | "modules_from") || slots.iter().any(|slot| slot.name == field)
    };
    match kind {
        _ if is_of_metadata && !is_entry => fault.help("move it into `metadata`, beside `spec`"),
        Kind::HttpsEdgeRoute if is_of_metadata => fault.help(
            "write the route as a manifest of its own, of kind `HttpsEdgeRoute`, and move this field into its `metadata`",
        ),
        Kind::HttpsEdge if is_of_routes() => fault.help("move it into an entry of `routes`"),
        _ => fault,
    }
}

/// Checks the metadata of a document of a kind without a resource, which cannot adopt, rename, protect or move anything.
pub(super) fn faults_without_resource(metadata: &Metadata, kind: &str) -> Vec<Fault> {
    let copy = "copy it to the manifests of the other source";
    let of_resources = [
        ("id", metadata.id.is_some(), "remove `id`"),
        ("renamed_from", metadata.renamed_from.is_some(), "remove `renamed_from`"),
        ("prevent_destroy", metadata.prevent_destroy, "remove `prevent_destroy`"),
        ("transfer_from", metadata.transfer_from.is_some(), copy),
        ("transfer_to", metadata.transfer_to.is_some(), copy),
    ];
    let faults = of_resources.into_iter().filter(|(_, is_set, _)| *is_set).map(|(field, _, help)| {
        let fault = Fault::new(Code::NotAllowed, format!("a {kind} has no `{field}`: it exists in manifests only"));
        fault.at(["metadata", field]).help(help)
    });
    faults.collect()
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

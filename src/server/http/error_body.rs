//! The body of every error response (D9), for the server and for the command line.

use crate::server::prelude::*;

/// The body of every error.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Error", extend("example" = {
    "error_code": "ERR_EDGEWRIGHT_UNKNOWN_FIELD",
    "status_code": 400,
    "msg": "unknown field `oath`; did you mean `oauth`?",
    "details": {"operation_id": "op_2f9XkQ0000000000000000000a", "field": "/oath"},
}))]
pub(crate) struct ErrorBody {
    /// The error code; `edgewright explain CODE` explains it.
    #[schemars(regex(pattern = r"^ERR_EDGEWRIGHT_"))]
    pub error_code: String,
    /// The HTTP status.
    #[serde(default)]
    #[schemars(with = "Value", extend("type" = "integer"))]
    pub status_code: u16,
    /// The message of the first fault.
    pub msg: String,
    /// What programs need to know of the request and of the first fault.
    #[serde(default)]
    pub details: ErrorDetails,
    /// All faults, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorItem>,
    /// With `ERR_EDGEWRIGHT_MISSING_FILES`: the digests of the texts that the server lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(inner(regex(pattern = r"^[0-9a-f]{64}$")), extend("x-extension" = true))]
    pub missing: Vec<String>,
}

/// The details of an error, without those that are empty.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(inline, extend("required" = ["operation_id"], "additionalProperties" = {"type": "string"}))]
pub(crate) struct ErrorDetails {
    /// The ID of the request, as in the Request-Id header.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = r"^op_"))]
    pub operation_id: String,
    /// JSON pointer to the invalid field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
    /// With `ERR_EDGEWRIGHT_REVISION_GONE`: the current revision.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(regex(pattern = r"^[0-9]+$"), extend("x-extension" = true))]
    pub revision: String,
    /// With `ERR_EDGEWRIGHT_INVARIANT_BROKEN` or `ERR_EDGEWRIGHT_INVARIANT_UNPROVEN`: the name of the invariant, or its ID.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-extension" = true))]
    pub invariant: String,
    /// The source that owns the invariant, if one does.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-extension" = true))]
    pub invariant_source: String,
    /// The method and URL of a request that breaks the invariant, or may.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-extension" = true))]
    pub request: String,
    /// The way of this request: edge, route and modules.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(extend("x-extension" = true))]
    pub way: String,
}

/// One of several faults.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ErrorItem {
    pub error_code: String,
    /// JSON pointer to the invalid field.
    pub field: String,
    pub msg: String,
}

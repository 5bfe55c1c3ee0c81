//! The effect of a change on its resource.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// A new resource.
    Create,
    /// A new resource that replaces one with immutable differences.
    Replace,
    /// New content.
    Change,
    /// The source owns the resource from now on, with unchanged content.
    Adopt,
    /// Renamed in the manifests, with unchanged content.
    Rename,
    /// A new `prevent_destroy` or `transfer_to`, with unchanged content.
    Protect,
    /// Deleted.
    Delete,
    /// Deleted, because another resource replaces it.
    Replaced,
}

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
    /// The same content, now owned by the source.
    Adopt,
    /// The same content under a new name.
    Rename,
    /// The same content with a new `prevent_destroy` or `transfer_to`.
    Protect,
    /// Deleted.
    Delete,
    /// Deleted, because another resource replaces it.
    Replaced,
}

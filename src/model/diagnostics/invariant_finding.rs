//! The invariant that a finding is about, for programs. People read the same in its message and its help.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An invariant, and a request that breaks it or of which nobody can tell: one of those that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvariantFinding {
    /// The name in the manifests, or the ID if no source owns it.
    pub name: String,
    /// The source that owns it; null if none does.
    pub source: Option<String>,
    /// The description.
    pub description: String,
    /// Whether the request breaks the invariant for certain.
    pub certain: bool,
    /// The method of the request.
    pub method: String,
    /// The URL of the request.
    pub url: String,
    /// The action that breaks the invariant, or the condition on which it depends whether it does.
    pub reason: String,
    /// The way of the request: edge, route and modules.
    pub way: String,
}

//! References between resources of this service.

use super::{diagnostics::Path, key::Key};

/// A reference to another resource, which must exist (D20).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The referenced resource.
    pub target: Key,
    /// The path of the field in the spec or module.
    pub path: Path,
}

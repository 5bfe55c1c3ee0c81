//! The error code registry, shared by the API, manifests, plans and the command line (D10).

mod list;
mod registry;

use std::fmt;

use list::info;
pub use list::{Code, CodeInfo};
pub use registry::REGISTRY;

impl Code {
    /// Returns the registry entry.
    pub fn info(self) -> &'static CodeInfo {
        // A test keeps the registry in the enum's order.
        REGISTRY.get(self as usize).unwrap_or(&FALLBACK)
    }

    /// Finds a code by its wire name, with or without `ERR_EDGEWRIGHT_`, ignoring case.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim().to_uppercase().replace('-', "_");
        let short = name.strip_prefix(PREFIX).unwrap_or(&name);
        REGISTRY.iter().find(|info| info.name == short).map(|info| info.code)
    }
}

const PREFIX: &str = "ERR_EDGEWRIGHT_";
const FALLBACK: CodeInfo = info(Code::Internal, "INTERNAL", 500, "", "");

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.info().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_follows_the_enum() {
        for (index, info) in REGISTRY.iter().enumerate() {
            assert_eq!(info.code as usize, index, "{}", info.name);
            assert_eq!(Code::from_name(&info.code.to_string()), Some(info.code));
        }
        assert_eq!(Code::Internal as usize + 1, REGISTRY.len());
    }
}

//! The roles of owners as options.

use crate::cli::prelude::*;

/// Parses a role.
pub(super) fn role(text: &str) -> Result<Role, String> {
    let role = serde_json::from_value(text.to_lowercase().into());
    role.map_err(|_| "expected gateway, viewer, planner, editor or admin".to_owned())
}

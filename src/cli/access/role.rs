//! The roles of owners as options.

use crate::cli::input::choice::Choice;
use crate::cli::prelude::*;

/// Reads a role.
pub(super) fn role() -> Choice<Role> {
    Choice::new(parse, || Role::ALL.map(|role| role.as_str().to_owned()).to_vec())
}

fn parse(text: &str) -> Result<Role, String> {
    let role = serde_json::from_value(text.to_lowercase().into());
    role.map_err(|_| "expected gateway, viewer, planner, editor or admin".to_owned())
}

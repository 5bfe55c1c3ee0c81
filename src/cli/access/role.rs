//! The roles of owners as options.

use crate::cli::input::choice::Choice;
use crate::cli::prelude::*;

pub(super) fn role() -> Choice<Role> {
    Choice::new(parse, || Role::ALL.map(|role| role.as_str().to_owned()).to_vec())
}

/// Reads the role of a scope, which cannot be `gateway`: the scope itself is refused with a help.
pub(super) fn scope_role() -> Choice<Role> {
    Choice::new(parse, || {
        let roles = Role::ALL.into_iter().filter(|role| *role != Role::Gateway);
        roles.map(|role| role.as_str().to_owned()).collect()
    })
}

fn parse(text: &str) -> Result<Role, String> {
    let role = serde_json::from_value(text.to_lowercase().into());
    role.map_err(|_| "expected gateway, viewer, planner, editor or admin".to_owned())
}

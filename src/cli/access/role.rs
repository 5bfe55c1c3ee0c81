//! Owners and their roles as options.

use crate::cli::input::choice::Choice;
use crate::cli::prelude::*;
use crate::model::kind::owner::is_owner_id;

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

/// Parses the ID of an owner.
pub(super) fn owner_id(text: &str) -> Result<String, String> {
    let suggested = format!("bot_{text}");
    match is_owner_id(text) {
        true => Ok(text.to_owned()),
        false if is_owner_id(&suggested) => {
            Err(format!("an owner begins with usr_ or bot_; did you mean {suggested}?"))
        }
        false => Err("an owner begins with usr_ or bot_ and has no spaces or slashes, such as bot_docs".to_owned()),
    }
}

fn parse(text: &str) -> Result<Role, String> {
    let role = serde_json::from_value(text.to_lowercase().into());
    role.map_err(|_| "expected gateway, viewer, planner, editor or admin".to_owned())
}

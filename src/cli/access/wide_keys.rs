//! The warning of keys that may apply every source.

use std::collections::HashMap;

use crate::cli::prelude::*;
use crate::cli::target::ListedKey;
use crate::model::rules;

/// Warns of keys without limits, unless only admins have any.
pub(crate) fn wide_keys(snapshot: &Snapshot) -> Option<String> {
    warning(rules::keys_of_every_source(snapshot))
}

/// Warns of keys of a server without limits, by the roles of their owners.
pub(super) fn wide_keys_on_server(keys: &[ListedKey], roles: &HashMap<String, Role>) -> Option<String> {
    let role = |key: &ListedKey| {
        let owner = *roles.get(&key.owner_id)?;
        Some(key.scope.as_ref().and_then(|scope| scope.role).map_or(owner, |most| owner.min(most)))
    };
    let facts = keys.iter().filter_map(|key| Some((key.scope.as_ref(), role(key)?)));
    warning(rules::count_wide(facts))
}

fn warning((admins, others): (usize, usize)) -> Option<String> {
    let all = admins + others;
    let keys = if all == 1 { "API key" } else { "API keys" };
    (others > 0).then(|| {
        format!("{all} {keys} may apply every source, {others} without the role `admin`. Limit keys with scopes.")
    })
}

//! The warning of keys that may apply every source.

use crate::cli::prelude::*;
use crate::cli::target::ListedKey;
use crate::model::rules;

/// Warns of keys without limits, unless only admins have any.
pub(crate) fn wide_keys(snapshot: &Snapshot) -> Option<String> {
    warning(rules::keys_of_every_source(snapshot))
}

/// Warns of listed keys without limits, by the roles of their owners.
pub(super) fn wide_keys_of(keys: &[ListedKey], roles: &HashMap<String, Role>) -> Option<String> {
    warning(rules::count_wide(keys.iter().filter_map(|key| Some((key.scope.as_ref(), key.role(roles)?)))))
}

fn warning((admins, others): (usize, usize)) -> Option<String> {
    let all = admins + others;
    let keys = number_of(all, "API key");
    (others > 0)
        .then(|| format!("{keys} may apply every source, {others} without the role `admin`. Limit keys with scopes."))
}

//! The warning of keys that may apply every source.

use crate::cli::prelude::*;
use crate::cli::target::ListedKey;
use crate::model::rules;

/// The most keys that the warning names.
const MOST_NAMED: usize = 3;

/// Warns of keys without limits, unless only admins have any.
pub(crate) fn wide_keys(snapshot: &Snapshot) -> Option<String> {
    warning(rules::keys_of_every_source(snapshot))
}

/// Warns of listed keys without limits, by the roles of their owners: a line, and the IDs of those that are no admin's if they are
/// few.
pub(super) fn wide_keys_of(keys: &[ListedKey], roles: &HashMap<String, Role>) -> Vec<String> {
    let count = |keys: &[ListedKey]| {
        rules::count_wide(keys.iter().filter_map(|key| Some((key.scope.as_ref(), key.role(roles)?))))
    };
    let counted = count(keys);
    let is_meant = |key: &&ListedKey| counted.1 <= MOST_NAMED && count(std::slice::from_ref(*key)).1 > 0;
    let ids = keys.iter().filter(is_meant).map(|key| format!("  {}", key.id));
    warning(counted).into_iter().chain(ids).collect()
}

fn warning((admins, others): (usize, usize)) -> Option<String> {
    let all = admins + others;
    let keys = number_of(all, "API key");
    let advice = if others == 1 { "Give it a scope." } else { "Give them scopes." };
    (others > 0).then(|| format!("{keys} may apply every source ({others} not owned by an admin). {advice}"))
}

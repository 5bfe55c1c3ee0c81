//! The warning of keys that may apply every source.

use crate::cli::prelude::*;
use crate::cli::target::ListedKey;
use crate::model::rules;

const MOST_NAMED: usize = 3;
/// What to do about a key: no command changes the scope of one.
const REPLACE_IT: &str = "create another with --apply SOURCE, and revoke it";

/// Warns of keys without limits, unless only admins have any.
pub(crate) fn wide_keys(snapshot: &Snapshot) -> Option<String> {
    warning(rules::keys_of_every_source(snapshot))
}

/// Warns of listed keys without limits, by the roles of their owners: a line for each that is no admin's if they are few.
pub(super) fn wide_keys_of(keys: &[ListedKey], roles: &HashMap<String, Role>) -> Vec<String> {
    let is_wide = |key: &&ListedKey| {
        let limits = key.role(roles).map(|role| (key.scope.as_ref(), role));
        rules::count_wide(limits.into_iter()) > 0
    };
    let wide: Vec<&ListedKey> = keys.iter().filter(is_wide).collect();
    if wide.len() > MOST_NAMED {
        return warning(wide.len()).into_iter().collect();
    }
    let name = |key: &ListedKey| match key.description.as_str() {
        "" => key.id.clone(),
        description => format!("\"{description}\" ({})", key.id),
    };
    wide.into_iter().map(|key| format!("Key {} may apply every source: {REPLACE_IT}", name(key))).collect()
}

fn warning(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 API key of a non-admin may apply every source: {REPLACE_IT}")),
        _ => Some(format!(
            "{count} API keys of non-admins may apply every source: create others with --apply SOURCE, and revoke them"
        )),
    }
}

//! What the modules that log users in have in common (Session module fields).

use serde::{Deserialize, Deserializer};

/// Prefix of the session cookie unless a module names another (D14).
pub const COOKIE_PREFIX: &str = "edgewright.";

/// Reads a cookie prefix; an empty one is unspecified.
pub fn cookie_prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let given = String::deserialize(deserializer)?;
    Ok(if given.is_empty() { COOKIE_PREFIX.into() } else { given })
}

//! Fields that all login modules share (Session module fields).

use serde::{Deserialize, Deserializer};

/// The default prefix of session cookie names (D14).
pub(crate) const COOKIE_PREFIX: &str = "edgewright.";

/// Deserializes a cookie prefix; an empty one means the default.
pub(crate) fn cookie_prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let given = String::deserialize(deserializer)?;
    Ok(if given.is_empty() { COOKIE_PREFIX.into() } else { given })
}

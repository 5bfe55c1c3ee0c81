//! What a loop does about drift (D85).

use std::{fmt, str::FromStr};

/// The policy of a loop for drift.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DriftPolicy {
    /// Revert it.
    #[default]
    Enforce,
    /// Leave it, and report it.
    Warn,
    /// Leave it, and only count it.
    Off,
}

impl FromStr for DriftPolicy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [DriftPolicy::Enforce, DriftPolicy::Warn, DriftPolicy::Off];
        let found = all.into_iter().find(|policy| policy.to_string() == name);
        found.ok_or_else(|| "expected `enforce`, `warn` or `off`".to_owned())
    }
}

/// The name in the configuration.
impl fmt::Display for DriftPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DriftPolicy::Enforce => "enforce",
            DriftPolicy::Warn => "warn",
            DriftPolicy::Off => "off",
        })
    }
}

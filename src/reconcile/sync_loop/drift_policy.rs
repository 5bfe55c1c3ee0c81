//! What a loop does about drift (D85).

use std::{fmt, str::FromStr};

use crate::model::names::names;

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

names!(DriftPolicy: Enforce "enforce", Warn "warn", Off "off");

impl FromStr for DriftPolicy {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::from_name(name).ok_or_else(|| "expected `enforce`, `warn` or `off`".to_owned())
    }
}

/// The name in the configuration.
impl fmt::Display for DriftPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

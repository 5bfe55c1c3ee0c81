//! The sections of a configuration file: a mistake in one stops only the commands that use it.

use crate::model::{FieldPath, Segment};

/// A section of a configuration file that only some commands use. All commands use the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigSection {
    /// The rules for manifests: `lints`, `allowed_labels` and `certificate_expiry_days`.
    Lints,
    /// The keys that only `serve` uses: `sources`, `notifications`, `hooks`, `client_certificates`, `openid_connect` and
    /// `rest_writes`.
    Server,
    /// Whether the file can set what only `serve` uses.
    Trust,
}

impl ConfigSection {
    pub(crate) const ALL: [ConfigSection; 3] = [ConfigSection::Lints, ConfigSection::Server, ConfigSection::Trust];

    pub(super) fn from_path(field: &FieldPath) -> Option<Self> {
        match field.0.first() {
            Some(Segment::Key(key)) => Self::from_key(key),
            _ => None,
        }
    }

    pub(super) fn from_key(key: &str) -> Option<Self> {
        match key {
            "lints" | "allowed_labels" | "certificate_expiry_days" => Some(ConfigSection::Lints),
            "sources" | "notifications" | "hooks" | "client_certificates" | "openid_connect" | "rest_writes" => {
                Some(ConfigSection::Server)
            }
            _ => None,
        }
    }
}

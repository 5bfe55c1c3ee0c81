//! The parts of a configuration file: a mistake in one stops only the commands that use it.

use crate::model::diagnostics::fault::{Path as FieldPath, Segment};

/// A part of a configuration file that only some commands use. All commands use the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigPart {
    /// The rules for manifests: `lints`, `allowed_labels` and `certificate_expiry_days`.
    Lints,
    /// The keys that only `serve` uses: `sources`, `notifications`, `hooks`, `client_certificates` and `rest_writes`.
    Server,
    /// Whether the file can set what only `serve` uses.
    Trust,
}

impl ConfigPart {
    /// All parts.
    pub(crate) const ALL: [ConfigPart; 3] = [ConfigPart::Lints, ConfigPart::Server, ConfigPart::Trust];

    /// The part that a field belongs to.
    pub(super) fn from_path(field: &FieldPath) -> Option<Self> {
        match field.0.first() {
            Some(Segment::Key(key)) => Self::from_key(key),
            _ => None,
        }
    }

    /// The part that a key of the file belongs to.
    pub(super) fn from_key(key: &str) -> Option<Self> {
        match key {
            "lints" | "allowed_labels" | "certificate_expiry_days" => Some(ConfigPart::Lints),
            "sources" | "notifications" | "hooks" | "client_certificates" | "rest_writes" => Some(ConfigPart::Server),
            _ => None,
        }
    }
}

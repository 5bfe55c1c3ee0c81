//! The path of the configuration file.

use std::path::PathBuf;

/// The file that is read by default, if it exists.
const DEFAULT: &str = "edgewright.config.yaml";
pub(super) const VARIABLE: &str = "EDGEWRIGHT_CONFIG";

/// The path of the file, whether it exists or not.
pub(crate) fn config_path() -> PathBuf {
    named_path().unwrap_or_else(|| PathBuf::from(DEFAULT))
}

/// The path that the environment names. An empty variable is unset.
pub(super) fn named_path() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

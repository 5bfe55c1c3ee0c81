//! The security log of commands that change keys and owners of a store that no server has open (D99).

use crate::{
    cli::{prelude::*, serve::guards::unusable},
    server::telemetry::security::{LocalLog, SECURITY_LOG},
};

/// The log that a command appends to.
#[derive(Debug, clap::Args)]
pub(crate) struct LocalLogArgs {
    /// Security log of the store's server (default: `security.log` in the store's folder, if it exists).
    #[arg(help_heading = help::LOG)]
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_SECURITY_LOG", value_hint = clap::ValueHint::FilePath)]
    security_log: Option<PathBuf>,
}

impl LocalLogArgs {
    /// Opens the log of a store. This is done before the change: one that the log cannot have is not made.
    pub(super) fn open(&self, store: &StoreArgs) -> Result<LocalLog, Failure> {
        let in_folder = || {
            let path = store.folder().join(SECURITY_LOG);
            // Only a server creates it. A link is one that the log cannot have, and is refused below.
            path.symlink_metadata().is_ok().then_some(path)
        };
        let Some(path) = self.security_log.clone().or_else(in_folder) else { return Ok(LocalLog::default()) };
        LocalLog::open(&path).map_err(|error| {
            unusable(&path, &error, "set --security-log to the log of this store's server, which must not be running")
        })
    }
}

//! Changes of keys and owners in an offline store, and the security log that they append to (D99).

use crate::cli::command_prelude::*;
use crate::cli::serve::limit_args::unusable;
use crate::model::Operation;
use crate::server::telemetry::security::{LocalLog, SECURITY_LOG};

/// The store or server whose keys and owners a command changes, and the log that it appends to without a server.
#[derive(Debug, clap::Args)]
pub(crate) struct AccessChangeArgs {
    #[command(flatten)]
    pub place: StoreOrServer,
    #[command(flatten)]
    retention: RetentionArgs,
    /// Security log of the store's server (default: `security.log` in the store's folder, if it exists).
    #[arg(help_heading = help::LOG)]
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_SECURITY_LOG", value_hint = clap::ValueHint::FilePath)]
    security_log: Option<PathBuf>,
}

impl AccessChangeArgs {
    /// Opens the store, which must exist, and its log.
    pub(super) fn open_existing(&self) -> Result<(Store, LocalLog), Failure> {
        Ok((self.place.store.open_existing(&self.retention)?, self.open_log()?))
    }

    /// Opens the store, which is created if it does not exist, and its log.
    pub(super) fn open_or_create(&self) -> Result<(Store, LocalLog), Failure> {
        Ok((self.place.store.open_or_create(&self.retention)?, self.open_log()?))
    }

    /// Opens the log of the store. This is done before the change: one that the log cannot have is not made.
    fn open_log(&self) -> Result<LocalLog, Failure> {
        let in_folder = || {
            let path = self.place.store.folder().join(SECURITY_LOG);
            // Only a server creates it. A link is one that the log cannot have, and is refused below.
            path.symlink_metadata().is_ok().then_some(path)
        };
        let Some(path) = self.security_log.clone().or_else(in_folder) else { return Ok(LocalLog::default()) };
        LocalLog::open(&path).map_err(|error| {
            unusable(&path, &error, "set --security-log to the log of this store's server, which must not be running")
        })
    }
}

/// Commits changes made on the command line, and logs those of keys and owners.
pub(super) fn commit(store: &Store, mut log: LocalLog, operations: Vec<Operation>) -> Result<(), Failure> {
    let changes = operations.clone();
    // A change of keys is no plan, whose exit codes tell more.
    store.commit(Author::Local, operations).map_err(|error| ApplyError::Commit(error).diagnostic())?;
    if let Err(error) = log.append(&changes) {
        say(&format!("The change was made and is in the history, but not in the security log: {error}"));
    }
    Ok(())
}

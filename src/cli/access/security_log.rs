//! `edgewright security-log`: the security log of a server (D99).

use clap::Subcommand;

use crate::cli::command_prelude::*;
use crate::cli::serve::limit_args::unusable;
use crate::server::telemetry::security::SECURITY_LOG;
use crate::server::telemetry::security::verification::{LogError, ReadLog, read};
use crate::store::{is_in_database, shown_address};

/// Show or verify the security log of a server.
///
/// A server can keep writing to the log meanwhile.
#[derive(Debug, Subcommand)]
pub(crate) enum Args {
    /// Check that no line was changed, removed or inserted.
    Verify {
        #[command(flatten)]
        place: LogPlace,
    },
    /// Print events as JSON, one per line, oldest first.
    Show {
        #[command(flatten)]
        place: LogPlace,
        /// Print only events with this name, such as `permission_refused`. Repeatable.
        #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SECURITY_LOG_EVENT", value_delimiter = ',')]
        event: Vec<String>,
        /// Print only the last N events.
        #[arg(long, value_name = "N", env = "EDGEWRIGHT_SECURITY_LOG_LAST")]
        last: Option<usize>,
    },
}

/// The log that a command reads.
#[derive(Debug, clap::Args)]
pub(crate) struct LogPlace {
    /// Store folder of the server.
    #[arg(long, value_name = "DIR", env = "EDGEWRIGHT_STORE", default_value = "edgewright.db", hide_env_values = true)]
    store: PathBuf,
    /// Security log (default: `security.log` in the store's folder).
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_SECURITY_LOG")]
    security_log: Option<PathBuf>,
}

impl LogPlace {
    fn path(&self) -> PathBuf {
        self.security_log.clone().unwrap_or_else(|| self.store.join(SECURITY_LOG))
    }

    fn read(&self) -> Result<ReadLog, Failure> {
        if self.security_log.is_none() && is_in_database(&self.store) {
            let message = format!("{} is a database, and has no security log", shown_address(&self.store));
            let help = "set --security-log to the file that the server writes";
            return Err(Diagnostic::error(Code::Parameter, message).help(help).into());
        }
        let path = self.path();
        read(&path).map_err(|error| match error {
            LogError::Io(error) => unusable(&path, &error, "set --store or --security-log"),
            LogError::Broken(reason) => {
                let message = format!("the security log `{}` was changed or damaged: {reason}", path.display());
                let help = "keep a copy of its files, and compare them with a backup";
                Diagnostic::error(Code::StoreCorrupt, message).help(help).into()
            }
        })
    }
}

fn without_beginning(path: &Path, log: &ReadLog) -> Failure {
    let message = format!(
        "the security log `{}` begins with line {}: files with lines 1 to {} were removed or moved",
        path.display(),
        log.first,
        log.first.saturating_sub(1)
    );
    let help = "put the files back as `.1`, `.2` and so on, the newest first, or restore them from a backup";
    Diagnostic::error(Code::StoreCorrupt, message).help(help).into()
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Args::Verify { place } => {
                let log = place.read()?;
                if log.lacks_beginning() {
                    return Err(without_beginning(&place.path(), &log));
                }
                let ReadLog { first, last, files, torn, hash, is_unfinished, .. } = log;
                let files = number_of(files, "file");
                let mut text = format!("Lines {first} to {last} in {files} are unchanged.\nhash: {hash}\n");
                if torn > 0 {
                    text += &format!("lines cut off when a server stopped: {torn}\n");
                }
                if is_unfinished {
                    text += "The last line is incomplete: a server is writing it, or stopped while writing.\n";
                }
                print(text)?;
            }
            Args::Show { place, event, last } => {
                let lines = place.read()?.lines.into_iter();
                let wanted = lines.filter(|(name, _)| event.is_empty() || event.contains(name));
                let wanted: Vec<String> = wanted.map(|(_, line)| line).collect();
                let skipped = last.map_or(0, |last| wanted.len().saturating_sub(last));
                print(wanted.iter().skip(skipped).map(|line| format!("{}\n", escaped(line))).collect::<String>())?;
            }
        }
        Ok(Exit::Done)
    }
}

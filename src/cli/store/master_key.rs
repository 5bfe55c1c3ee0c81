//! The options of a store's master key (D96).

use std::ffi::OsString;

use crate::cli::output::say;
use crate::cli::prelude::*;
use crate::store::seal::{MasterKeySource, NewMaster};

/// The environment variable with the key itself. It is no option: the arguments of a process are public.
const VARIABLE: &str = "EDGEWRIGHT_MASTER_KEY";

/// The options of the master key.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct MasterKeyArgs {
    /// File with the master key, which encrypts the secrets in the store.
    ///
    /// The key has 32 bytes, raw or in base64 or hexadecimal. The default is next to the store's folder, with
    /// `.master.key` added to its name.
    #[arg(help_heading = help::STORE)]
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_MASTER_KEY_FILE", value_hint = clap::ValueHint::FilePath)]
    master_key_file: Option<OsString>,
    /// Shell command that prints the master key in base64 or hexadecimal.
    ///
    /// For example a client of a key service.
    #[arg(help_heading = help::STORE, hide_short_help = true)]
    #[arg(long, value_name = "COMMAND", env = "EDGEWRIGHT_MASTER_KEY_COMMAND", hide_env_values = true)]
    master_key_command: Option<String>,
}

impl MasterKeyArgs {
    /// The origin of the key: one of the options, EDGEWRIGHT_MASTER_KEY, or the file beside the store.
    pub(super) fn source(&self) -> Result<MasterKeySource, Failure> {
        self.source_with(std::env::var_os(VARIABLE))
    }

    /// Fails if both options are set.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.source_with(None).map(drop)
    }

    fn source_with(&self, variable: Option<OsString>) -> Result<MasterKeySource, Failure> {
        // Empty variables count as unset.
        let value = variable.filter(|value| !value.is_empty());
        let file = self.master_key_file.as_ref().filter(|file| !file.is_empty());
        let command = self.master_key_command.as_ref().filter(|command| !command.is_empty());
        match (file, command, value) {
            (None, None, None) => Ok(MasterKeySource::Beside),
            (Some(file), None, None) => Ok(MasterKeySource::File(PathBuf::from(file))),
            (None, Some(command), None) => Ok(MasterKeySource::Command(command.clone())),
            (None, None, Some(value)) => {
                Ok(MasterKeySource::Value(Secret::new(value.to_string_lossy()), VARIABLE.to_owned()))
            }
            _ => {
                let help = format!("set only one of --master-key-file, --master-key-command and {VARIABLE}");
                Err(Diagnostic::error(Code::MasterKey, "more than one master key is set").help(help).into())
            }
        }
    }
}

/// Says where a store expects its master key, if the key is in another file.
pub(super) fn say_place(verb: &str, file: &Path, expected: &Path) {
    if std::fs::canonicalize(file).ok() != std::fs::canonicalize(expected).ok() {
        let (file, expected) = (file.display(), expected.display());
        say(&format!("{verb} {file} to {expected}, or name it with --master-key-file from now on."));
    }
}

/// Says that a store has a new master key, and what that means for backups, unless that was said before.
pub(super) fn announce(store: &Store, say: impl FnOnce(&str)) {
    let Some((file, new)) = store.new_master_key() else { return };
    let verb = match new {
        NewMaster::Created => "Created",
        NewMaster::Found => "Using",
    };
    say(&format!(
        "{verb} the master key {}, which encrypts the secrets in the store. Keep it apart from backups of the store, \
         or it does not protect them. If it is lost, so are the secrets.",
        escaped(&file.display().to_string())
    ));
    // If this fails, the next start says it again.
    let _ = store.set_master_key_announced();
}

//! `edgewright store`: maintenance of a store that no server has open (D96, D100).

use std::path::PathBuf;

use clap::Subcommand;

use super::{CommandResult, Exit, Failure, StoreArgs, check, progress::during, show::say};
use crate::{
    model::{code::Code, diagnostic::Diagnostic},
    store::{Store, folder::default_master_key, seal::MasterKeySource},
    text::escaped,
};

/// What to do about a new master key that cannot be used.
const NEW_KEY: &str = "set the new key to 32 random bytes, for example with `openssl rand -base64 32`; a file must be a regular one \
                       that only its owner can read";

/// Maintain a store.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read everything in a store, or in a backup, and verify it.
    ///
    /// Changes nothing. Exits with 1 if there is a problem.
    Check {
        /// Backup to check instead of a store. Its master key is expected where that of the store is.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show what can be saved of a damaged store and what must be given up; with --apply, repair it.
    ///
    /// A copy of the store is made first, beside its folder. Without --apply, nothing is changed, and the exit code is 2 if
    /// a repair is needed.
    Repair {
        /// Carry out the repair.
        #[arg(long)]
        apply: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Encrypt the secrets in the store with a new data key and, if one is given, a new master key.
    ///
    /// The former data key decrypts the secrets of earlier revisions for 30 more days. If the command is interrupted, the
    /// store opens with the former or the new master key: run it again.
    Rekey {
        #[command(flatten)]
        store: StoreArgs,
        /// File with a new master key: 32 bytes, raw or in base64 or hexadecimal.
        #[arg(
            long,
            value_name = "FILE",
            env = "EDGEWRIGHT_NEW_MASTER_KEY_FILE",
            conflicts_with = "new_master_key_command"
        )]
        new_master_key_file: Option<PathBuf>,
        /// Shell command that prints a new master key in base64 or hexadecimal.
        #[arg(long, value_name = "COMMAND", env = "EDGEWRIGHT_NEW_MASTER_KEY_COMMAND", hide_env_values = true)]
        new_master_key_command: Option<String>,
        /// Destroy all former data keys now: earlier revisions lose their secrets, and no rollback brings them back.
        #[arg(long, env = "EDGEWRIGHT_FORGET_SECRETS")]
        forget_secrets: bool,
    },
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        match self.command {
            Command::Check { file, store } => check::check(&store, file.as_deref()),
            Command::Repair { apply, store } => check::repair(&store, apply),
            Command::Rekey { store, new_master_key_file, new_master_key_command, forget_secrets } => {
                let new_master = new_master_key_file
                    .map(MasterKeySource::File)
                    .or_else(|| new_master_key_command.map(MasterKeySource::Command));
                rekey(&store, new_master.as_ref(), forget_secrets)
            }
        }
    }
}

fn rekey(store: &StoreArgs, new_master: Option<&MasterKeySource>, forget_secrets: bool) -> CommandResult {
    let opened = open(store, new_master)?;
    let former = opened.master_key_id();
    during("Encrypting", || opened.rekey(new_master, forget_secrets)).map_err(|error| match new_master {
        // The help of this code is about the key that the store has.
        Some(_) if error.code == Code::MasterKey => Diagnostic::error(error.code, error.message).help(NEW_KEY).into(),
        _ => Failure::from(error),
    })?;
    say("Encrypted the secrets with a new data key.");
    if forget_secrets {
        say("Destroyed the former data keys: earlier revisions have no secrets any more.");
    }
    if let Some(source) = new_master {
        if opened.master_key_id() == former {
            say("The store already has this master key.");
        } else {
            say("The new master key opens the store from now on. Keep the former one as long as backups need it.");
        }
        if let (Some(default), MasterKeySource::File(file)) = (default_master_key(store.folder()), source)
            && std::fs::canonicalize(file).ok() != std::fs::canonicalize(&default).ok()
        {
            let [file, default] = [file, &default].map(|path| escaped(&path.display().to_string()).into_owned());
            say(&format!("Move {file} to {default}, or set --master-key-file from now on."));
        }
    }
    Ok(Exit::Done)
}

/// Opens the store with its master key or, if an interrupted run has replaced that already, with the new one.
fn open(store: &StoreArgs, new_master: Option<&MasterKeySource>) -> Result<Store, Failure> {
    match (store.open_existing(), new_master) {
        (Err(failure), Some(source)) if failure.has_code(Code::MasterKey) => {
            store.open_existing_with(source).map_err(|_| failure)
        }
        (opened, _) => opened,
    }
}

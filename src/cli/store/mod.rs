//! `edgewright store`: maintenance of a store (D23, D96, D100), with `backup` and `restore`. `store_args.rs` has the options of
//! a store, and opens it for all commands.

pub(crate) mod backup;
mod check;
mod copy;
mod master_key;
pub(crate) mod restore;
pub(crate) mod retention_args;
mod scrub;
pub(crate) mod store_args;

use clap::Subcommand;
use ureq::http::Method;

use crate::cli::command_prelude::*;
use crate::server::operations::rekey::{PATH, RekeyReport, RekeyRequest};
use crate::store::MasterChange;
use crate::store::folder::default_master_key;
use crate::store::seal::MasterKeySource;
use store_args::StoreArgs;

/// The help for a new master key that cannot be used.
const NEW_KEY: &str = "set the new key to 32 random bytes, for example with `openssl rand -base64 32`; a file must be a \
                       regular file that only its owner can read";

/// Maintain a store.
#[allow(clippy::large_enum_variant)] // there is one, once
#[derive(Debug, Subcommand)]
pub(super) enum Args {
    /// Read everything in a store, or in a backup, and verify it.
    ///
    /// Changes nothing. Exits with code 1 if there is a problem.
    Check {
        /// Backup to check instead of a store. Its master key is read from the same place as the store's.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show what can be recovered from a damaged store and what would be lost; with --apply, repair it.
    ///
    /// Copies the store first, next to its folder. Without --apply, changes nothing, and exits with code 2 if a repair
    /// is needed.
    Repair {
        /// Carry out the repair.
        #[arg(long)]
        apply: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show where the history contains API tokens; with --apply, remove their secret parts.
    ///
    /// Adds a record to the history that lists the changed records, so that `history verify` accepts them. Works on
    /// an offline store. Earlier backups still contain the tokens. If the command is interrupted, run it again. Without
    /// --apply, changes nothing, and exits with code 2 if there is something to remove.
    Scrub {
        /// Remove the secret parts.
        #[arg(long)]
        apply: bool,
        #[command(flatten)]
        store: StoreArgs,
        #[command(flatten)]
        retention: RetentionArgs,
    },
    /// Encrypt the secrets in the store with a new data key and, if there is one, a new master key.
    ///
    /// The former data key decrypts the secrets of earlier revisions for the number of days in --secret-days. If the
    /// command is interrupted, the store opens with the old or the new master key: run it again.
    ///
    /// Works on an offline store, or through a server with --server and the token of an admin. A server takes
    /// a new master key from where it reads its own: replace the key there first, and keep the old one until the
    /// command finishes.
    Rekey {
        #[command(flatten)]
        place: StoreOrServer,
        #[command(flatten)]
        retention: RetentionArgs,
        /// File with a new master key: 32 bytes, raw or in base64 or hexadecimal.
        #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_NEW_MASTER_KEY_FILE")]
        #[arg(conflicts_with = "new_master_key_command")]
        new_master_key_file: Option<PathBuf>,
        /// Shell command that prints a new master key in base64 or hexadecimal.
        #[arg(long, value_name = "COMMAND", env = "EDGEWRIGHT_NEW_MASTER_KEY_COMMAND", hide_env_values = true)]
        new_master_key_command: Option<String>,
        /// Destroy all former data keys now: earlier revisions lose their secrets, and no rollback brings them back.
        #[arg(long, env = "EDGEWRIGHT_FORGET_SECRETS")]
        forget_secrets: bool,
    },
    /// Copy a store into a new folder or an empty database, with its IDs, history and secrets.
    ///
    /// Verifies the history before, and compares the copy afterwards. The copy has the same master key. The store must not
    /// change meanwhile: stop its server first.
    Copy {
        /// Store to copy: a folder, or the `postgres://` URL of a database.
        #[arg(value_name = "FROM")]
        from: PathBuf,
        /// New folder, or URL of an empty database.
        #[arg(value_name = "TO")]
        to: PathBuf,
        #[command(flatten)]
        master_key: master_key::MasterKeyArgs,
    },
}

impl Args {
    /// The store or server of the subcommand, if it can be either.
    pub(super) fn place(&mut self) -> Option<&mut StoreOrServer> {
        match self {
            Args::Rekey { place, .. } => Some(place),
            Args::Check { .. } | Args::Repair { .. } | Args::Scrub { .. } | Args::Copy { .. } => None,
        }
    }

    pub(super) fn run(self) -> CommandResult {
        let (place, retention, new_master, forget_secrets) = match self {
            Args::Check { file, store } => return check::check(&store, file.as_deref()),
            Args::Repair { apply, store } => return check::repair(&store, apply),
            Args::Scrub { apply, store, retention } => return scrub::scrub(&store, &retention, apply),
            Args::Copy { from, to, master_key } => return copy::copy(&from, &to, &master_key.source()?),
            Args::Rekey { place, retention, new_master_key_file, new_master_key_command, forget_secrets } => {
                let command = || new_master_key_command.map(MasterKeySource::Command);
                (place, retention, new_master_key_file.map(MasterKeySource::File).or_else(command), forget_secrets)
            }
        };
        let report = match (place.client()?, &new_master) {
            (Some(_), Some(_)) => {
                let message = "a new master key cannot be sent to a server";
                let help = "replace the key where the server reads it, and run the command without a new master key";
                return Err(Diagnostic::error(Code::Parameter, message).help(help).into());
            }
            (Some(client), None) => rekey_on_server(&client, &RekeyRequest { forget_secrets })?,
            (None, new_master) => {
                let opened = open(&place.store, &retention, new_master.as_ref())?;
                let change = new_master.as_ref().map_or(MasterChange::Keep, MasterChange::To);
                let rekeyed = during("Encrypting", || opened.rekey(change, forget_secrets));
                RekeyReport::new(&rekeyed.map_err(|error| match new_master {
                    // The help of this code is about the key that the store has.
                    Some(_) => Failure::from(error).with_help(Code::MasterKey, NEW_KEY),
                    None => error.into(),
                })?)
            }
        };
        print_report(&report);
        if let Some(source) = &new_master {
            if !report.master_key_changed {
                say("The store already has this master key.");
            }
            if let (Some(default), MasterKeySource::File(file)) = (default_master_key(place.store.folder()), source) {
                master_key::say_place("Move", file, &default);
            }
        }
        Ok(Exit::Done)
    }
}

fn print_report(report: &RekeyReport) {
    let resources = number_of(report.encrypted_resources, "resource");
    say(&format!("Encrypted the secrets of {resources} with the new data key {}.", report.data_key_id));
    for key in &report.former_keys {
        say(&format!("The former data key {} decrypts earlier revisions until {}.", key.id, key.until));
    }
    if !report.destroyed_key_ids.is_empty() {
        say("Destroyed the former data keys: earlier revisions no longer have secrets.");
    }
    if report.master_key_changed {
        let keep = "Keep the old one as long as backups need it.";
        say(&format!("The new master key {} opens the store from now on. {keep}", report.master_key_id));
    }
}

/// Has a server encrypt its store with new keys.
fn rekey_on_server(client: &ApiClient, request: &RekeyRequest) -> Result<RekeyReport, Failure> {
    let body = json::bytes(request, Secrets::Masked)?;
    let see = "run the command again; it is safe to repeat";
    during("Encrypting", || client.change(&Method::POST, PATH, Some(&body), see))
}

/// Opens the store with its master key or, if an interrupted run has replaced that already, with the new one.
fn open(store: &StoreArgs, retention: &RetentionArgs, new_master: Option<&MasterKeySource>) -> Result<Store, Failure> {
    match (store.open_existing(retention), new_master) {
        (Err(failure), Some(source)) if failure.has_code(Code::MasterKey) => {
            store.open_with(retention, source).map_err(|_| failure)
        }
        (opened, _) => opened,
    }
}

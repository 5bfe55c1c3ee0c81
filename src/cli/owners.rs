//! `edgewright owners`: the owners of API keys and their roles (D23).

use std::sync::Arc;

use clap::Subcommand;

use super::{
    CommandResult, Exit, StoreArgs,
    keys::{commit, role},
    output::print,
};
use crate::{
    model::{
        Kind,
        id::Id,
        key::Key,
        kind::owner::{Owner, Role},
        operation::Operation,
    },
    text::escaped,
};

/// List the owners of API keys and set their roles.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List owners and their roles.
    List {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Set an owner's role.
    SetRole {
        #[command(flatten)]
        store: StoreArgs,
        /// ID of the owner, `usr_…` or `bot_…`.
        #[arg(value_name = "OWNER")]
        owner: String,
        /// New role: gateway, viewer, editor or admin.
        #[arg(value_name = "ROLE", value_parser = role)]
        role: Role,
    },
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        match self.command {
            Command::List { store } => {
                let store = store.read_existing()?;
                let mut lines = String::new();
                for entry in store.snapshot().newest_first(Kind::Owner, None, u64::MAX) {
                    let role = entry.spec_as::<Owner>().map(|owner| owner.role).unwrap_or_default();
                    lines += &format!("{}  {}\n", escaped(entry.key.id.as_str()), role.as_str());
                }
                print(lines)?;
            }
            Command::SetRole { store, owner, role } => {
                let key = Key::new(Kind::Owner, Id::new(&owner));
                let spec = Arc::new(Owner { role });
                commit(&store.open_existing()?, vec![Operation::Patch { key, spec, fields: vec!["role".into()] }])?;
            }
        }
        Ok(Exit::Done)
    }
}

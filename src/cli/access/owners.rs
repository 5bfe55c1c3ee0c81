//! `edgewright owners`: the owners of API keys and their roles (D23).

use clap::Subcommand;

use super::keys::keys_in_store;
use super::local_log::{AccessChangeArgs, commit};
use super::role::role;
use super::wide_keys::wide_keys_of;
use crate::cli::command_prelude::*;
use crate::cli::output::list::{ListArgs, ListItem};
use crate::cli::target::{list_keys, set_owner_role};
use crate::model::Owner;
use crate::server::operations::owners::{OwnerView, PATH, set_role};

/// List the owners of API keys and set their roles.
///
/// Works through a server with --server and the token of an admin, or on an offline store.
#[derive(Debug, Subcommand)]
pub(crate) enum Args {
    /// List owners and their roles.
    List {
        #[command(flatten)]
        list: ListArgs,
        #[command(flatten)]
        place: StoreOrServer,
    },
    /// Set an owner's role.
    SetRole {
        #[command(flatten)]
        change: AccessChangeArgs,
        /// ID of the owner, `usr_…` or `bot_…`.
        #[arg(value_name = "OWNER")]
        owner: String,
        /// New role: gateway, viewer, planner, editor or admin.
        #[arg(value_name = "ROLE", value_parser = role(), hide_possible_values = true)]
        role: Role,
    },
}

impl Args {
    pub(crate) fn only_reads(&self) -> bool {
        matches!(self, Args::List { .. })
    }

    pub(crate) fn place(&mut self) -> &mut StoreOrServer {
        match self {
            Args::List { place, .. } => place,
            Args::SetRole { change, .. } => &mut change.place,
        }
    }

    pub(crate) fn run(self) -> CommandResult {
        match self {
            Args::List { list, place } => {
                let (owners, keys) = match place.client()? {
                    Some(client) => (list_owners(&client)?, list_keys(&client)?),
                    None => {
                        let snapshot = place.store.read_existing()?.snapshot();
                        (owners_in_store(&snapshot), keys_in_store(&snapshot))
                    }
                };
                let warnings = wide_keys_of(&keys, &owners.iter().cloned().collect());
                print(list.render("owners", &COLUMNS, &[], owners.into_iter().map(item).collect())?)?;
                warnings.iter().for_each(|warning| say(warning));
            }
            Args::SetRole { change, owner, role } => {
                // An owner that does not exist is no mistake in the URL.
                let help = "list the owners with `edgewright owners list`";
                let unknown = |failure: Failure| failure.with_help(Code::NotFound, help);
                match change.place.client()? {
                    Some(client) => set_owner_role(&client, &owner, role).map_err(unknown)?,
                    None => {
                        let (store, log) = change.open_existing()?;
                        commit(&store, log, vec![set_role(Id::new(&owner), role)]).map_err(unknown)?;
                    }
                }
                say(&format!("Set the role of {owner} to {}.", role.as_str()));
            }
        }
        Ok(Exit::Done)
    }
}

pub(crate) const COLUMNS: [&str; 2] = ["role", "id"];

fn item((id, role): (String, Role)) -> ListItem {
    ListItem { document: json!({"id": id, "role": role.as_str()}), name: id, columns: Vec::new() }
}

/// The owners of a store with their roles, newest first.
pub(crate) fn owners_in_store(snapshot: &Snapshot) -> Vec<(String, Role)> {
    let owners = snapshot.newest_first(Kind::Owner, None, u64::MAX);
    let role = |owner: Option<&Owner>| owner.map(|owner| owner.role).unwrap_or_default();
    owners.map(|entry| (entry.key.id.to_string(), role(entry.spec_as::<Owner>()))).collect()
}

/// Lists the owners of a server with their roles.
pub(super) fn list_owners(client: &ApiClient) -> Result<Vec<(String, Role)>, Failure> {
    let owners: Vec<OwnerView> = client.list(PATH, "owners", "limit=1000")?;
    Ok(owners.into_iter().map(|owner| (owner.id, owner.role)).collect())
}

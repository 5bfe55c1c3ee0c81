//! `edgewright owners`: the owners of API keys and their roles (D23).

use std::collections::HashMap;

use clap::Subcommand;

use super::{
    keys::{commit, role, wide_keys, wide_keys_of_server},
    local_log::LocalLogArgs,
};
use crate::{
    cli::{
        CommandResult, Exit, Failure,
        output::{diagnostics::say, print},
        target::{ApiClient, Pages, SEE_ROLES, keys_of, store_or_server::StoreOrServer},
    },
    model::{
        Kind,
        diagnostics::{code::Code, diagnostic::Name},
        id::Id,
        json,
        key::segment,
        kind::owner::{Owner, Role},
        secrets::secret::Secrets,
    },
    server::operations::owners::{OwnerPage, OwnerUpdate, OwnerView, PATH, set_role},
    store::Store,
    syntax::text::escaped,
};

/// List the owners of API keys and set their roles.
///
/// Works through a server with --server and the token of an admin, or on a store that no server has open.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List owners and their roles.
    List {
        #[command(flatten)]
        place: StoreOrServer,
    },
    /// Set an owner's role.
    SetRole {
        #[command(flatten)]
        place: StoreOrServer,
        /// ID of the owner, `usr_…` or `bot_…`.
        #[arg(value_name = "OWNER")]
        owner: String,
        /// New role: gateway, viewer, planner, editor or admin.
        #[arg(value_name = "ROLE", value_parser = role)]
        role: Role,
        #[command(flatten)]
        log: LocalLogArgs,
    },
}

impl Args {
    /// Whether the subcommand changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(self.command, Command::List { .. })
    }

    /// The store or server of the subcommand.
    pub(crate) fn place(&mut self) -> &mut StoreOrServer {
        match &mut self.command {
            Command::List { place } | Command::SetRole { place, .. } => place,
        }
    }

    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        match self.command {
            Command::List { place } => {
                let (owners, warning) = match place.client()? {
                    Some(client) => {
                        let owners = of_server(&client)?;
                        let roles: HashMap<String, Role> = owners.iter().cloned().collect();
                        let warning = wide_keys_of_server(&keys_of(&client)?, &roles);
                        (owners, warning)
                    }
                    None => {
                        let store = place.store.read_existing()?;
                        (of_store(&store), wide_keys(&store.snapshot()))
                    }
                };
                let line = |(id, role): &(String, Role)| format!("{}  {}\n", escaped(id), role.as_str());
                print(owners.iter().map(line).collect::<String>())?;
                if let Some(warning) = warning {
                    say(&warning);
                }
            }
            Command::SetRole { place, owner, role, log } => {
                match place.client()? {
                    Some(client) => {
                        let body = json::bytes(&OwnerUpdate { role }, Secrets::Masked)?;
                        let path = format!("{PATH}/{}", segment(&owner));
                        client.patch::<OwnerView>(&path, &body, SEE_ROLES).map_err(unknown)?;
                    }
                    None => {
                        let store = place.store.open_existing()?;
                        commit(&store, log.open(&place.store)?, vec![set_role(Id::new(&owner), role)])?;
                    }
                }
                say(&format!("Set the role of {owner} to {}.", role.as_str()));
            }
        }
        Ok(Exit::Done)
    }
}

fn of_store(store: &Store) -> Vec<(String, Role)> {
    let snapshot = store.snapshot();
    let owners = snapshot.newest_first(Kind::Owner, None, u64::MAX);
    let role = |owner: Option<&Owner>| owner.map(|owner| owner.role).unwrap_or_default();
    owners.map(|entry| (entry.key.id.to_string(), role(entry.spec_as::<Owner>()))).collect()
}

/// Lists the owners of a server with their roles.
pub(super) fn of_server(client: &ApiClient) -> Result<Vec<(String, Role)>, Failure> {
    let mut owners = Vec::new();
    let first = "limit=1000".to_owned();
    let mut pages = Pages::of_resources(client, PATH, &first);
    let mut query = Some(first);
    while let Some(parameters) = query {
        let page: OwnerPage = client.get(&format!("{PATH}?{parameters}"))?;
        let items = page.owners.len();
        owners.extend(page.owners.into_iter().map(|owner| (owner.id, owner.role)));
        query = pages.next(items, page.next_page_uri.as_deref())?;
    }
    Ok(owners)
}

/// An owner that does not exist is no mistake in the URL.
fn unknown(mut failure: Failure) -> Failure {
    for diagnostic in failure.diagnostics.iter_mut().filter(|it| it.code == Name::Code(Code::NotFound)) {
        diagnostic.help = Some("run `edgewright owners list` to list the owners".to_owned());
    }
    failure
}

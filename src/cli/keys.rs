//! `edgewright keys`: API keys of a store that no server has open.

use std::sync::Arc;

use clap::Subcommand;

use super::{
    CommandResult, Exit, Failure, StoreArgs,
    key_scope::ScopeArgs,
    output::{hand_over, print},
    show::say,
};
use crate::{
    model::{
        Kind,
        code::Code,
        diagnostic::{Diagnostic, Name},
        fault::Check,
        id::Id,
        key::Key,
        kind::{
            api_key::ApiKey,
            owner::{Owner, Role},
        },
        operation::{Author, Operation},
        rules,
        secret::Secret,
        snapshot::Snapshot,
    },
    reconcile::ApplyError,
    store::{Commit, Store, mint},
    text::escaped,
};

/// Create, list and revoke the API keys of a store.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a key and print its token, which is shown only once.
    Create {
        #[command(flatten)]
        store: StoreArgs,
        /// Role of the key's owner: gateway, viewer, planner, editor or admin (default for a new owner: editor).
        #[arg(long, env = "EDGEWRIGHT_ROLE", value_parser = role)]
        role: Option<Role>,
        /// Owner of the key, as `usr_…` or `bot_…` (default: a new user).
        #[arg(long, value_name = "ID", env = "EDGEWRIGHT_OWNER")]
        owner: Option<String>,
        /// Description of the key.
        #[arg(long, value_name = "TEXT", env = "EDGEWRIGHT_DESCRIPTION", default_value = "")]
        description: String,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// List the keys, newest first.
    List {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Revoke a key; its token stops working immediately.
    Revoke {
        #[command(flatten)]
        store: StoreArgs,
        /// ID of the key, `ak_…`.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Parses a role.
pub(super) fn role(text: &str) -> Result<Role, String> {
    match text.to_lowercase().as_str() {
        "gateway" => Ok(Role::Gateway),
        "viewer" => Ok(Role::Viewer),
        "planner" => Ok(Role::Planner),
        "editor" => Ok(Role::Editor),
        "admin" => Ok(Role::Admin),
        _ => Err("expected gateway, viewer, planner, editor or admin".into()),
    }
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        match self.command {
            Command::Create { store, role, owner, description, scope } => {
                let mut shown = false;
                let opened = store.open().map_err(|failure| while_served(failure, "POST /api_keys"))?;
                let spec = ApiKey {
                    description,
                    owner_id: owner.unwrap_or_else(|| mint::fresh_id(Kind::Owner).to_string()),
                    scope: scope.scope().map(Arc::new),
                    ..ApiKey::default()
                };
                let (owner, is_limited) = (spec.owner_id.clone(), spec.scope.is_some());
                let created = create(&opened, role, spec, |token| {
                    hand_over(format!("{}\n", token.expose())).inspect_err(|_| say("No key was created."))?;
                    shown = true;
                    Ok(())
                });
                if created.is_err() && shown {
                    say("The key was not created: the token that was printed does not work.");
                }
                created?;
                if !is_limited && rules::role_of(&opened.snapshot(), &owner) == Some(Role::Editor) {
                    say("The key may apply every source. To limit it, create it with --apply SOURCE.");
                }
            }
            Command::List { store } => {
                let store = store.read_existing().map_err(|failure| while_served(failure, "GET /api_keys"))?;
                print(list(&store))?;
                if let Some(warning) = wide_keys(&store.snapshot()) {
                    say(&warning);
                }
            }
            Command::Revoke { store, id } => {
                let key = Key::new(Kind::ApiKey, Id::new(&id));
                let store = store.open_existing().map_err(|failure| while_served(failure, "DELETE /api_keys/ID"))?;
                commit(&store, vec![Operation::Delete { key, with_children: true }])?;
            }
        }
        Ok(Exit::Done)
    }
}

/// Names the request that works while a server has the store open: these commands have no `--server`.
fn while_served(mut failure: Failure, request: &str) -> Failure {
    for diagnostic in failure.diagnostics.iter_mut().filter(|it| it.code == Name::Code(Code::StoreLocked)) {
        diagnostic.help = Some(format!("stop the server, or send it {request} with the token of an API key"));
    }
    failure
}

/// Creates a key, and its owner if the store has none with this id. `hand_out` gets the token before the key exists, so
/// that no key is created whose token was lost.
pub(super) fn create(
    store: &Store,
    role: Option<Role>,
    spec: ApiKey,
    hand_out: impl FnOnce(&Secret) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let owner = spec.owner_id.clone();
    if let Some(fault) = spec.faults().into_iter().next() {
        let help = fault.help.unwrap_or_default();
        return Err(Diagnostic::error(fault.code, fault.message).help(help).into());
    }
    let mut operations = Vec::new();
    match (rules::role_of(&store.snapshot(), &owner), role) {
        (None, role) => {
            let key = Key::new(Kind::Owner, Id::new(&owner));
            let spec = Arc::new(Owner { role: role.unwrap_or_default() });
            operations.push(Operation::Create { key, spec, claim: None, token: None });
        }
        (Some(has), Some(wanted)) if has != wanted => {
            let fault = Diagnostic::error(Code::Conflict, format!("`{owner}` already has another role"));
            return Err(fault.help("change it with `edgewright owners set-role`").into());
        }
        (Some(_), _) => {}
    }
    let key = Key::new(Kind::ApiKey, mint::fresh_id(Kind::ApiKey));
    let (token, hash) = mint::token(&key.id);
    operations.push(Operation::Create { key, spec: Arc::new(spec), claim: None, token: Some(hash) });
    hand_out(&token)?;
    commit(store, operations)
}

/// Commits changes made on the command line.
pub(super) fn commit(store: &Store, operations: Vec<Operation>) -> Result<(), Failure> {
    let commit = Commit { base: None, operations, author: Author::Local, at: mint::now() };
    store.commit(commit).map(|_| ()).map_err(|error| ApplyError::Commit(error).diagnostic().into())
}

/// Warns of keys without limits, unless only admins have any.
pub(super) fn wide_keys(snapshot: &Snapshot) -> Option<String> {
    let (admins, others) = rules::keys_of_every_source(snapshot);
    let keys = if admins + others == 1 { "API key" } else { "API keys" };
    let warning = || {
        format!(
            "{} {keys} may apply every source, {others} without the role `admin`. Scopes limit keys.",
            admins + others
        )
    };
    (others > 0).then(warning)
}

fn list(store: &Store) -> String {
    let snapshot = store.snapshot();
    let mut lines = String::new();
    for entry in snapshot.newest_first(Kind::ApiKey, None, u64::MAX) {
        let Some(key) = entry.spec_as::<ApiKey>() else { continue };
        let role = rules::key_role(&snapshot, key).unwrap_or_default();
        let line = format!(
            "{}  {}  {:7}  {}  {}",
            entry.key.id,
            key.owner_id,
            role.as_str(),
            entry.created_at,
            key.description
        );
        lines += escaped(&line).trim_end();
        if let Some(scope) = &key.scope {
            lines += &format!("  [{}]", escaped(&scope.to_string()));
        }
        lines.push('\n');
    }
    lines
}

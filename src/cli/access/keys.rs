//! `edgewright keys`: the API keys of a store or a server.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Subcommand;

use super::{
    key_scope::{ScopeArgs, unknown_sources},
    local_log::LocalLogArgs,
    owners,
};
use crate::{
    cli::{
        CommandResult, Exit, Failure,
        config::Config,
        output::{check_not_discarded, diagnostics::say, hand_over, is_readable_by_others, print},
        target::{
            ApiClient, ApiKeyOfServer, create_through, delete_through, keys_of, role_through,
            store_or_server::StoreOrServer,
        },
    },
    model::{
        Kind,
        diagnostics::{code::Code, diagnostic::Diagnostic, fault::Faults},
        id::Id,
        key::Key,
        key_scope::KeyScope,
        kind::{
            api_key::ApiKey,
            owner::{Owner, Role},
        },
        operation::{Author, Operation},
        resource::AnyResource,
        rules,
        secrets::secret::Secret,
        snapshot::Snapshot,
    },
    reconcile::{ApplyError, run::token::write_token},
    server::{
        operations::sources::{MOST_UNFOLLOWED, view::SourceList},
        telemetry::security::{LocalChanges, LocalLog},
    },
    store::{Commit, Store, ids_and_clock},
    syntax::text::{escaped, key_of_token},
};

/// Create, list and revoke API keys.
///
/// Works through a server with --server, or on a store that no server has open.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a key and print its token, which is shown only once.
    Create {
        #[command(flatten)]
        place: StoreOrServer,
        /// Role of the key's owner: gateway, viewer, planner, editor or admin (default for a new owner: editor).
        #[arg(long, env = "EDGEWRIGHT_ROLE", value_parser = role)]
        role: Option<Role>,
        /// Owner of the key, as `usr_…` or `bot_…` (default: a new user; through a server, only admins can create one).
        #[arg(long, value_name = "ID", env = "EDGEWRIGHT_OWNER")]
        owner: Option<String>,
        /// Description of the key.
        #[arg(long, value_name = "TEXT", env = "EDGEWRIGHT_DESCRIPTION", default_value = "")]
        description: String,
        /// File to write the token to (mode 0600), instead of stdout.
        #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_TOKEN_FILE")]
        token_file: Option<PathBuf>,
        #[command(flatten)]
        scope: Box<ScopeArgs>,
        #[command(flatten)]
        log: LocalLogArgs,
    },
    /// List the keys, newest first.
    List {
        #[command(flatten)]
        place: StoreOrServer,
    },
    /// Revoke a key; its token stops working immediately.
    Revoke {
        #[command(flatten)]
        place: StoreOrServer,
        /// ID of the key, `ak_…`; of a token, its key is revoked.
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        log: LocalLogArgs,
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
    /// The store or server of the subcommand.
    pub(crate) fn place(&mut self) -> &mut StoreOrServer {
        match &mut self.command {
            Command::Create { place, .. } | Command::List { place } | Command::Revoke { place, .. } => place,
        }
    }

    /// Whether the subcommand changes nothing.
    pub(crate) fn only_reads(&self) -> bool {
        matches!(self.command, Command::List { .. })
    }

    /// Runs the command.
    pub(crate) fn run(self, config: &Config) -> CommandResult {
        match self.command {
            Command::Create { place, role, owner, description, token_file, scope, log } => {
                let show = |token: &Secret| show(token, token_file.as_deref());
                let scope = scope.scope().map(Arc::new);
                let spec = ApiKey {
                    description,
                    owner_id: owner.clone().unwrap_or_else(|| ids_and_clock::fresh_id(Kind::Owner).to_string()),
                    scope: scope.clone(),
                    ..ApiKey::default()
                };
                let (has, sources) = match place.client()? {
                    Some(client) => {
                        // A server would keep the new owner.
                        if token_file.is_none() {
                            check_not_discarded().inspect_err(|_| say("No key was created."))?;
                        }
                        let has = create_on_server(&client, role, owner.is_some(), &spec, show)?;
                        (has, scope.as_ref().and_then(|_| sources_of_server(&client)))
                    }
                    None => {
                        let owner = spec.owner_id.clone();
                        let mut shown = false;
                        let opened = place.store.open_or_create()?;
                        let log = log.open(&place.store)?;
                        let created = create(&opened, log, role, spec, |token| {
                            show(token).inspect_err(|_| say("No key was created."))?;
                            shown = true;
                            Ok(())
                        });
                        if created.is_err() && shown {
                            say("The key was not created: the token that was printed does not work.");
                        }
                        created?;
                        let snapshot = opened.snapshot();
                        (rules::role_of(&snapshot, &owner), Some(sources_of(&snapshot, config)))
                    }
                };
                if let (Some(scope), Some(sources)) = (&scope, &sources) {
                    unknown_sources(scope, sources).iter().for_each(|warning| say(warning));
                }
                if scope.is_none() && has == Some(Role::Editor) {
                    say("The key may apply every source. To limit it, create it with --apply SOURCE.");
                }
            }
            Command::List { place } => {
                print(match place.client()? {
                    Some(client) => list_of_server(&client)?,
                    None => {
                        let store = place.store.read_existing()?;
                        let listed = list(&store);
                        if let Some(warning) = wide_keys(&store.snapshot()) {
                            say(&warning);
                        }
                        listed
                    }
                })?;
            }
            Command::Revoke { place, id, log } => {
                let id = match key_of_token(&id) {
                    Some(key) => {
                        say(&format!(
                            "This is a token, which the command line shows to others. Revoking its key {key}."
                        ));
                        key.to_owned()
                    }
                    None => id,
                };
                match place.client()? {
                    Some(client) => delete_through(&client, &id)?,
                    None => {
                        let key = Key::new(Kind::ApiKey, Id::new(&id));
                        let opened = place.store.open_existing()?;
                        let log = log.open(&place.store)?;
                        commit(&opened, log, vec![Operation::Delete { key, with_children: true }])?;
                    }
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// Prints a token or writes it to a file, once.
fn show(token: &Secret, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else {
        if is_readable_by_others() {
            say("The token goes to a file that others can read. Restrict it with `chmod 600`, or use --token-file.");
        }
        return hand_over(format!("{}\n", token.expose()));
    };
    write_token(file, token.expose()).map_err(|error| {
        let message = format!("cannot write the token to {}: {error}", file.display());
        Diagnostic::error(Code::Unreadable, message).help("name a new file in a folder that you can write to").into()
    })
}

/// Refuses an invalid key.
fn check(spec: &ApiKey) -> Result<(), Failure> {
    let mut faults = Faults::new();
    AnyResource::check(spec, &mut faults);
    match faults.into_vec().into_iter().next() {
        None => Ok(()),
        Some(fault) => {
            let help = fault.help.unwrap_or_default();
            Err(Diagnostic::error(fault.code, fault.message).help(help).into())
        }
    }
}

/// The failure for an owner who has a role other than the wanted one.
fn has_another_role(owner: &str) -> Failure {
    let fault = Diagnostic::error(Code::Conflict, format!("`{owner}` already has another role"));
    fault.help("change it with `edgewright owners set-role`").into()
}

/// Creates a key on a server, as [`create`] does in a store. Returns the role of its owner, if it is known.
fn create_on_server(
    client: &ApiClient,
    role: Option<Role>,
    names_owner: bool,
    spec: &ApiKey,
    show: impl FnOnce(&Secret) -> Result<(), Failure>,
) -> Result<Option<Role>, Failure> {
    check(spec)?;
    let has = if names_owner && role.is_some() { role_through(client, &spec.owner_id)? } else { None };
    if has.is_some() && has != role {
        return Err(has_another_role(&spec.owner_id));
    }
    // A new owner has the default role first.
    let wanted = role.filter(|role| has.is_none() && *role != Role::default());
    create_through(client, spec, wanted, show)?;
    Ok(role.or((!names_owner).then(Role::default)))
}

/// The sources that own resources in a store, and those that a server with the same configuration follows.
fn sources_of(snapshot: &Snapshot, config: &Config) -> Vec<String> {
    let owning = snapshot.iter().filter_map(|entry| Some(entry.claim.as_deref()?.source.as_str()));
    let followed = config.sources.iter().map(|source| source.name.as_str());
    let names: BTreeSet<&str> = owning.chain(followed).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The sources of a server, if it lists all of them.
fn sources_of_server(client: &ApiClient) -> Option<Vec<String>> {
    let list: SourceList = client.get("/sources").ok()?;
    let unfollowed = list.sources.iter().filter(|source| !source.is_followed()).count();
    (unfollowed < MOST_UNFOLLOWED).then(|| list.sources.into_iter().map(|source| source.name).collect())
}

/// Creates a key, and its owner if the store has none with this id. `hand_out` gets the token before the key exists, so
/// that no key is created whose token was lost.
pub(crate) fn create(
    store: &Store,
    log: LocalLog,
    role: Option<Role>,
    spec: ApiKey,
    hand_out: impl FnOnce(&Secret) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let owner = spec.owner_id.clone();
    check(&spec)?;
    let mut operations = Vec::new();
    match (rules::role_of(&store.snapshot(), &owner), role) {
        (None, role) => {
            let key = Key::new(Kind::Owner, Id::new(&owner));
            let spec = Arc::new(Owner { role: role.unwrap_or_default() });
            operations.push(Operation::Create { key, spec, claim: None, token: None });
        }
        (Some(has), Some(wanted)) if has != wanted => return Err(has_another_role(&owner)),
        (Some(_), _) => {}
    }
    let key = Key::new(Kind::ApiKey, ids_and_clock::fresh_id(Kind::ApiKey));
    let (token, hash) = ids_and_clock::token(&key.id);
    operations.push(Operation::Create { key, spec: Arc::new(spec), claim: None, token: Some(hash) });
    hand_out(&token)?;
    commit(store, log, operations)
}

/// Commits changes made on the command line, and logs those of keys and owners.
pub(super) fn commit(store: &Store, mut log: LocalLog, operations: Vec<Operation>) -> Result<(), Failure> {
    let changes = LocalChanges::of(&operations);
    let commit = Commit { base: None, operations, author: Author::Local, at: ids_and_clock::now() };
    store.commit(commit).map_err(|error| ApplyError::Commit(error).diagnostic())?;
    if let Err(error) = log.append(&changes) {
        say(&format!("The change is made, and in the history, but not in the security log: {error}"));
    }
    Ok(())
}

/// Warns of keys without limits, unless only admins have any.
pub(crate) fn wide_keys(snapshot: &Snapshot) -> Option<String> {
    warning_of(rules::keys_of_every_source(snapshot))
}

/// The same for the keys of a server, with the roles of their owners.
pub(super) fn wide_keys_of_server(keys: &[ApiKeyOfServer], roles: &HashMap<String, Role>) -> Option<String> {
    let role = |key: &ApiKeyOfServer| {
        let owner = *roles.get(&key.owner_id)?;
        Some(key.scope.as_ref().and_then(|scope| scope.role).map_or(owner, |most| owner.min(most)))
    };
    let facts = keys.iter().filter_map(|key| Some((key.scope.as_ref(), role(key)?)));
    warning_of(rules::count_wide(facts))
}

fn warning_of((admins, others): (usize, usize)) -> Option<String> {
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
        let role = rules::key_role(&snapshot, key).unwrap_or_default().as_str();
        let created_at = entry.created_at.to_string();
        let facts = [entry.key.id.as_str(), &key.owner_id, role, &created_at, &key.description];
        lines += &line(facts, key.scope.as_deref());
    }
    lines
}

fn list_of_server(client: &ApiClient) -> Result<String, Failure> {
    let keys = keys_of(client)?;
    let roles: HashMap<String, Role> = match owners::of_server(client) {
        Ok(owners) => owners.into_iter().collect(),
        Err(failure) if failure.has_code(Code::Forbidden) => {
            say("Only admins can see the roles.");
            HashMap::new()
        }
        Err(failure) => return Err(failure),
    };
    if let Some(warning) = wide_keys_of_server(&keys, &roles) {
        say(&warning);
    }
    let role = |owner: &str| roles.get(owner).map_or("-", |role| role.as_str());
    let lines = keys.iter().map(|key| {
        let most = key.scope.as_ref().and_then(|scope| scope.role).filter(|most| roles.get(&key.owner_id) > Some(most));
        let role = most.map_or_else(|| role(&key.owner_id), Role::as_str);
        line([&key.id, &key.owner_id, role, &key.created_at, &key.description], key.scope.as_ref())
    });
    Ok(lines.collect())
}

/// A line of the list: the ID, the owner, the role of the key, the time of creation, the description and the scope.
fn line([id, owner, role, created_at, description]: [&str; 5], scope: Option<&KeyScope>) -> String {
    let line = format!("{id}  {owner}  {role:7}  {created_at}  {description}");
    let scope = scope.map(|scope| format!("  [{scope}]")).unwrap_or_default();
    format!("{}{}\n", escaped(&line).trim_end(), escaped(&scope))
}

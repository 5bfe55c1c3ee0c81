//! `edgewright keys`: the API keys of a store or a server.

use clap::Subcommand;

use super::key_scope::{ScopeArgs, check_usable, plans_only, unknown_sources};
use super::local_log::{AccessChangeArgs, commit};
use super::owners;
use super::role::{owner_id, role};
use super::wide_keys::wide_keys_of;
use crate::cli::command_prelude::*;
use crate::cli::config::Config;
use crate::cli::output::list::{ListArgs, ListItem};
use crate::cli::output::{check_not_discarded, is_readable_by_others, print_all};
use crate::cli::target::{ListedKey, create_key, delete_key, list_keys, sources_of_store};
use crate::model::{AnyResource, ApiKey, Entry, Faults, KeyScope, Operation, rules};
use crate::reconcile::run::token;
use crate::server::operations::sources::MOST_UNFOLLOWED;
use crate::server::telemetry::security::LocalLog;
use crate::syntax::text::key_of_token;

/// Create, list and revoke API keys.
///
/// Works through a server with --server, or on an offline store.
#[derive(Debug, Subcommand)]
pub(crate) enum Args {
    /// Create a key and print its token, which is shown only once.
    Create(CreateArgs),
    /// List the keys, newest first; `-o wide` adds the owners and the times of creation.
    List {
        #[command(flatten)]
        list: ListArgs,
        #[command(flatten)]
        place: StoreOrServer,
    },
    /// Revoke a key; its token stops working immediately.
    Revoke {
        #[command(flatten)]
        change: AccessChangeArgs,
        /// ID of the key, `ak_…`. If you pass a token, its key is revoked.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// The options of a new key.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// Role of the key's owner: gateway, viewer, planner, editor or admin (default for a new owner: editor).
    #[arg(long, env = "EDGEWRIGHT_ROLE", value_parser = role(), hide_possible_values = true)]
    role: Option<Role>,
    /// Owner of the key, as `usr_…` or `bot_…` (default: a new user; through a server, only admins can create one).
    #[arg(long, value_name = "ID", env = "EDGEWRIGHT_OWNER", value_parser = owner_id)]
    owner: Option<String>,
    /// Description of the key.
    #[arg(long, value_name = "TEXT", env = "EDGEWRIGHT_DESCRIPTION", default_value = "")]
    description: String,
    /// New file to write the token to (mode 0600), instead of stdout.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    scope: Box<ScopeArgs>,
    #[command(flatten)]
    change: AccessChangeArgs,
}

impl Args {
    pub(crate) fn place(&mut self) -> &mut StoreOrServer {
        match self {
            Args::List { place, .. } => place,
            Args::Create(CreateArgs { change, .. }) | Args::Revoke { change, .. } => &mut change.place,
        }
    }

    pub(crate) fn only_reads(&self) -> bool {
        matches!(self, Args::List { .. })
    }

    pub(crate) fn run(self, config: &Config) -> CommandResult {
        match self {
            Args::Create(create) => create.run(config)?,
            Args::List { list, place } => list_keys_and_roles(&list, &place)?,
            Args::Revoke { change, id } => revoke(&change, &id)?,
        }
        Ok(Exit::Done)
    }
}

/// Prints all keys, and warns of those that may do more than it seems.
fn list_keys_and_roles(list: &ListArgs, place: &StoreOrServer) -> Result<(), Failure> {
    let (keys, roles) = match place.client()? {
        Some(client) => (list_keys(&client)?, roles_on_server(&client)?),
        None => {
            let snapshot = place.store.read_existing()?.snapshot();
            (keys_in_store(&snapshot), owners::owners_in_store(&snapshot).into_iter().collect())
        }
    };
    wide_keys_of(&keys, &roles).iter().for_each(|warning| say(warning));
    let items = keys.into_iter().map(|key| item(key, &roles)).collect();
    print(list.render("API keys", &COLUMNS, &WIDE_COLUMNS, items)?)?;
    Ok(())
}

fn revoke(change: &AccessChangeArgs, id: &str) -> Result<(), Failure> {
    let id = match key_of_token(id) {
        Some(key) => {
            let warning = "This is a token. Other users of this machine can see it on the command line.";
            say(&format!("{warning} Revoking its key {key}."));
            key
        }
        None => id,
    };
    // A key that does not exist is no mistake in the URL.
    let unknown = |failure: Failure| failure.with_help(Code::NotFound, "list the keys with `edgewright keys list`");
    let revoked = match change.place.client()? {
        Some(client) => delete_key(&client, id).map_err(unknown)?,
        None => {
            let key = Key::new(Kind::ApiKey, Id::new(id));
            let (opened, log) = change.open_existing()?;
            let known = keys_in_store(&opened.snapshot()).into_iter().find(|known| known.id == id);
            commit(&opened, log, vec![Operation::Delete { key, with_children: true }]).map_err(unknown)?;
            known
        }
    };
    let what = match revoked {
        Some(ListedKey { description, owner_id, .. }) if description.is_empty() => {
            format!(" of {owner_id}")
        }
        Some(ListedKey { description, owner_id, .. }) => format!(" ({description}) of {owner_id}"),
        None => String::new(),
    };
    say(&format!("Revoked {id}{what}."));
    Ok(())
}

/// Says that a token that was shown does not work, unless its file could be removed.
fn say_useless(token_file: Option<&Path>) {
    let token = match token_file {
        Some(file) if fs::remove_file(file).is_ok() => return,
        Some(file) => format!("token in {}", file.display()),
        None => "printed token".to_owned(),
    };
    say(&format!("The key was not created: the {token} does not work."));
}

impl CreateArgs {
    fn run(self, config: &Config) -> Result<(), Failure> {
        let Self { change, role, owner, description, token_file, scope } = self;
        let mut id = String::new();
        let mut show = |token: &Secret| {
            key_of_token(token.expose()).unwrap_or_default().clone_into(&mut id);
            show(token, token_file.as_deref())
        };
        // Before anything is created: an offline store, or an owner on the server, would remain.
        match &token_file {
            Some(file) => token::check_new(file).map_err(unwritable)?,
            None if change.place.server.url().is_some() => {
                check_not_discarded().inspect_err(|_| say("No key was created."))?;
            }
            None => {}
        }
        let scope = scope.scope().map(Arc::new);
        if let Some(scope) = &scope {
            check_usable(scope, role)?;
        }
        let owner_id = owner.clone().unwrap_or_else(|| ids::fresh_id(Kind::Owner).to_string());
        let spec = ApiKey { description, owner_id: owner_id.clone(), scope: scope.clone(), ..ApiKey::default() };
        let (has, sources) = match change.place.client()? {
            Some(client) => {
                check(&spec)?;
                create_key(&client, &spec, role, show)?;
                // The owner of a key without one in the command is new.
                let has = role.or_else(|| owner.is_none().then(Role::default));
                (has, scope.as_ref().and_then(|_| sources_on_server(&client)))
            }
            None => {
                let (opened, log) = change.open_or_create()?;
                let hand_out = |token: &Secret| show(token).inspect_err(|_| say("No key was created."));
                create(&opened, log, role, spec, hand_out, || say_useless(token_file.as_deref()))?;
                let snapshot = opened.snapshot();
                (rules::role_of(&snapshot, &owner_id), Some(sources_in_store(&snapshot, config)))
            }
        };
        // A token on stdout has the ID in it.
        if token_file.is_some() {
            say(&format!("Created {id} of {owner_id}."));
        }
        if let (Some(scope), Some(sources)) = (&scope, &sources) {
            unknown_sources(scope, sources).iter().for_each(|warning| say(warning));
        }
        if let Some(note) = scope.as_ref().and_then(|scope| plans_only(scope, has?)) {
            say(&note);
        }
        if scope.is_none() && has == Some(Role::Editor) {
            let may = format!("The key has the role {} and may apply every source.", Role::Editor.as_str());
            say(&format!("{may} To limit it, create another with --role or --apply SOURCE, and revoke it."));
        }
        Ok(())
    }
}

/// Prints a token or writes it to a file, once.
fn show(token: &Secret, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else {
        if is_readable_by_others() {
            say("The token goes to a file that others can read. Restrict it with `chmod 600`, or use --token-file.");
        }
        return print_all(format!("{}\n", token.expose()));
    };
    token::write_new(file, token).map_err(unwritable)
}

/// The failure of a token file. It claims nothing else: on a server, the key exists by the time its token is written.
fn unwritable(error: ApplyError) -> Failure {
    let failure = Failure::from(error);
    let help = "name a new file in a folder that you can write to";
    failure.with_help(Code::Unreadable, help).with_help(Code::Conflict, help)
}

fn check(spec: &ApiKey) -> Result<(), Failure> {
    let mut faults = Faults::new();
    AnyResource::check(spec, &mut faults);
    faults.into_vec().into_iter().next().map_or(Ok(()), |fault| Err(fault.into()))
}

/// The failure for an owner who has a role other than the wanted one.
fn role_conflict(owner: &str, has: Role) -> Failure {
    let message = format!("`{}` already has the role `{}`", printable(owner), has.as_str());
    let fault = Diagnostic::error(Code::Conflict, message);
    fault.help("omit --role, or change it with `edgewright owners set-role`").into()
}

/// The sources that own resources in a store, and those that a server with the same configuration follows.
fn sources_in_store(snapshot: &Snapshot, config: &Config) -> Vec<String> {
    let mut names = sources_of_store(snapshot);
    names.extend(config.sources.iter().map(|source| source.name.clone()));
    Vec::from_iter(names)
}

/// The sources of a server, if it lists all of them.
fn sources_on_server(client: &ApiClient) -> Option<Vec<String>> {
    let list = client.sources(None).ok()?;
    let unfollowed = list.sources.iter().filter(|source| !source.is_followed()).count();
    (unfollowed < MOST_UNFOLLOWED).then(|| list.sources.into_iter().map(|source| source.name).collect())
}

/// Creates a key, and its owner if the store has none with this id. `hand_out` gets the token before the key exists, so
/// that no key is created whose token was lost; `take_back` is called if the key is not created then.
pub(crate) fn create(
    store: &Store,
    log: LocalLog,
    role: Option<Role>,
    spec: ApiKey,
    hand_out: impl FnOnce(&Secret) -> Result<(), Failure>,
    take_back: impl FnOnce(),
) -> Result<(), Failure> {
    check(&spec)?;
    let snapshot = store.snapshot();
    let owner = rules::new_owner(&snapshot, &spec.owner_id, role);
    if let Some(scope) = &spec.scope {
        check_usable(scope, rules::role_of(&snapshot, &spec.owner_id))?;
    }
    let mut operations = Vec::from_iter(owner.map_err(|has| role_conflict(&spec.owner_id, has))?);
    let key = Key::new(Kind::ApiKey, ids::fresh_id(Kind::ApiKey));
    let (token, hash) = tokens::token(&key.id);
    operations.push(Operation::Create { key, spec: Arc::new(spec), claim: None, token: Some(hash) });
    hand_out(&token)?;
    commit(store, log, operations).inspect_err(|_| take_back())
}

pub(crate) const COLUMNS: [&str; 4] = ["description", "role", "scope", "id"];
pub(crate) const WIDE_COLUMNS: [&str; 2] = ["owner", "created_at"];

fn item(key: ListedKey, roles: &HashMap<String, Role>) -> ListItem {
    let (role, columns) = (key.role(roles).map_or("", Role::as_str), columns(&key, roles));
    let ListedKey { id, owner_id, created_at, description, scope, .. } = key;
    let document = json!({
        "id": id,
        "description": description,
        "owner_id": owner_id,
        "role": role,
        "scope": scope,
        "created_at": created_at,
    });
    ListItem { name: id, document, columns }
}

/// The columns that are no field of a key, or whose text is another one.
fn columns(key: &ListedKey, roles: &HashMap<String, Role>) -> Vec<(&'static str, String)> {
    let role = key.role(roles);
    let without = || role.map_or("", Role::without_scope).to_owned();
    let scope = key.scope.as_ref().map_or_else(without, KeyScope::to_string);
    vec![("role", role.map_or("", Role::as_str).to_owned()), ("scope", scope), ("owner", key.owner_id.clone())]
}

/// Adds the columns of the list to a key as the API returns it.
pub(crate) fn add_columns(item: &mut ListItem, roles: &HashMap<String, Role>) {
    if let Ok(key) = ListedKey::deserialize(&item.document) {
        item.columns.extend(columns(&key, roles));
    }
}

pub(super) fn keys_in_store(snapshot: &Snapshot) -> Vec<ListedKey> {
    let listed = |entry: &Arc<Entry>| {
        let key = entry.spec_as::<ApiKey>()?;
        Some(ListedKey {
            id: entry.key.id.to_string(),
            owner_id: key.owner_id.clone(),
            created_at: entry.created_at.to_string(),
            description: key.description.clone(),
            scope: key.scope.as_deref().cloned(),
            token: None,
        })
    };
    snapshot.newest_first(Kind::ApiKey, None, u64::MAX).filter_map(listed).collect()
}

/// The roles of a server's owners, if the caller may see them.
pub(crate) fn roles_on_server(client: &ApiClient) -> Result<HashMap<String, Role>, Failure> {
    match owners::list_owners(client) {
        Err(failure) if failure.has_code(Code::Forbidden) => {
            say("Only admins can see the roles.");
            Ok(HashMap::new())
        }
        owners => Ok(owners?.into_iter().collect()),
    }
}

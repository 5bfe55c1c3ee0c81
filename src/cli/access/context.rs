//! `edgewright context`: the servers that a user has logged in to (D105).

use clap::Subcommand;

use super::contexts::{Contexts, ServerContext, context_name};
use crate::cli::command_prelude::*;
use crate::cli::input::option_origins::OptionOrigins;
use crate::cli::output::list::{ListArgs, ListItem};
use crate::cli::target::TOKEN;
use crate::store::{shown_address, store_exists};

/// List the saved logins, and choose the current one.
///
/// `edgewright login` saves a server and a token as a context. Commands that only read use the server of the current
/// context, unless --server, --store, EDGEWRIGHT_SERVER, EDGEWRIGHT_STORE or the configuration file says otherwise. A
/// command that changes something uses a context only if it is named with --context or EDGEWRIGHT_CONTEXT.
#[allow(clippy::large_enum_variant)] // there is one, once
#[derive(Debug, Subcommand)]
pub(crate) enum Args {
    /// List the contexts; `*` marks the current one.
    List {
        #[command(flatten)]
        list: ListArgs,
    },
    /// Make a context the current one.
    Use {
        /// Name of the context.
        #[arg(value_name = "NAME", value_parser = context_name, required_unless_present = "none")]
        name: Option<String>,
        /// Unset the current context.
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
    /// Show a context, or what a command would use; never the token.
    ///
    /// With --effective and a current context, shows both what commands that only read use, and that commands which make
    /// changes are refused.
    Show {
        /// Name of the context (default: the current one).
        #[arg(value_name = "NAME", value_parser = context_name, conflicts_with = "effective")]
        name: Option<String>,
        /// Show the configuration file, and the store or server, the token's origin and the source that a command with the
        /// same flags and variables would use, and why.
        #[arg(long)]
        effective: bool,
        /// Source that the command names.
        #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", default_value = "default", value_parser = source_name)]
        source: String,
        #[command(flatten)]
        place: StoreOrServer,
    },
}

impl Args {
    /// The store or server to show, if that is asked for.
    pub(crate) fn place(&mut self) -> Option<&mut StoreOrServer> {
        match self {
            Args::Show { effective: true, place, .. } => Some(place),
            _ => None,
        }
    }

    pub(crate) fn run(self, origins: &OptionOrigins<'_>) -> CommandResult {
        match self {
            Args::List { list } => {
                let contexts = Contexts::read()?;
                let text = list.render("contexts", &COLUMNS, &[], items(&contexts))?;
                if contexts.all.is_empty() && !list.format.is_document() {
                    say("Log in to a server with `edgewright login --server URL`.");
                }
                print(text)
            }
            Args::Show { effective: true, source, place, .. } => print(effective(&place, &source, origins)),
            Args::Show { name, .. } => {
                if let Some(flag) = EFFECTIVE_FLAGS.into_iter().find(|id| origins.is_flag(id)) {
                    let message = format!("`--{}` requires `--effective`", flag.replace('_', "-"));
                    return Err(Diagnostic::error(Code::Parameter, message)
                        .help("add --effective, or remove it")
                        .into());
                }
                let contexts = Contexts::read()?;
                let (name, context) = contexts.named_or_current(name.as_deref())?;
                print(describe(&name, context))
            }
            Args::Use { name, none } => {
                let name = name.filter(|_| !none).unwrap_or_default();
                let server = Contexts::change(|contexts| {
                    let server = if name.is_empty() { None } else { Some(contexts.get(&name)?.server.clone()) };
                    contexts.current.clone_from(&name);
                    Ok(server)
                })?;
                say(&match server {
                    Some(server) => format!("The current context is {name} ({server})."),
                    None => "There is no current context.".to_owned(),
                });
                Ok(Exit::Done)
            }
        }
    }
}

pub(crate) const COLUMNS: [&str; 5] = ["name", "current", "server", "source", "token"];

fn items(contexts: &Contexts) -> Vec<ListItem> {
    let item = |(name, context): (&String, &ServerContext)| {
        let is_current = *name == contexts.current;
        let document = json!({
            "name": name,
            "current": is_current,
            "server": context.server,
            "source": context.source,
            "token": origin_of_token(context),
        });
        let mark = if is_current { "*" } else { "" };
        ListItem { name: name.clone(), document, columns: vec![("current", mark.to_owned())] }
    };
    contexts.all.iter().map(item).collect()
}

/// The flags that only matter for what a command would use.
const EFFECTIVE_FLAGS: [&str; 5] = ["store", "server", "context", "version_header", "source"];

/// The configuration file, and the settings that a command would use, one per line with its reason. If they are those
/// of the current context, they are for commands that only read, and the last line says what all others use.
fn effective(place: &StoreOrServer, source: &str, origins: &OptionOrigins<'_>) -> String {
    let server = &place.server;
    let mut facts: Vec<(&str, String, String)> = Vec::new();
    if let Some((path, why)) = origins.config.origin() {
        facts.push(("configuration file", path.display().to_string(), why.to_owned()));
    }
    let of_context = server.used_context().map(|(name, _)| format!("context {name}")).unwrap_or_default();
    match (server.url(), server.used_context()) {
        (Some(url), Some((name, context))) => {
            let why = if origins.is_set("context") {
                origins.describe("context")
            } else {
                "current context; only for read-only commands".to_owned()
            };
            facts.push(("context", name.to_owned(), why));
            facts.push(("server", url.to_owned(), of_context.clone()));
            facts.push(("token", origin_of_token(context).to_owned(), of_context.clone()));
        }
        (Some(url), None) => {
            let is_set = std::env::var(TOKEN).is_ok_and(|token| !token.trim().is_empty());
            facts.push(("server", url.to_owned(), origins.describe("server")));
            facts.push(("token", if is_set { "set" } else { "not set" }.to_owned(), format!("variable {TOKEN}")));
        }
        (None, _) => {
            let address = place.store.folder();
            let found = if store_exists(address).unwrap_or_default() { "" } else { "; no store found there" };
            facts.push(("store", shown_address(address), origins.describe("store") + found));
        }
    }
    if server.url().is_some() {
        let header = server.version_header.as_str();
        let is_of_context = server.used_context().is_some_and(|(_, context)| context.version_header == header);
        let is_of_context = is_of_context && !origins.is_set("version_header");
        let why = if is_of_context { of_context.clone() } else { origins.describe("version_header") };
        facts.push(("version_header", header.to_owned(), why));
    }
    facts.push(match server.source() {
        Some(source) => ("source", source.to_owned(), of_context),
        None => ("source", source.to_owned(), origins.describe("source")),
    });
    if let Some((name, _)) = server.used_context().filter(|_| !origins.is_set("context")) {
        let why = format!("they do not use the current context; add --context {name}, --server or --store");
        facts.push(("commands that make changes", "refused".to_owned(), why));
    }
    facts.iter().map(|(fact, value, why)| format!("{fact}: {} ({})\n", escaped(value), escaped(why))).collect()
}

fn describe(name: &str, context: &ServerContext) -> String {
    let lines = [
        ("name", name),
        ("server", context.server.as_str()),
        ("source", context.source.as_str()),
        ("ca_file", context.ca_file.as_str()),
        ("version_header", context.version_header.as_str()),
        ("token", origin_of_token(context)),
    ];
    let lines = lines.into_iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(field, value)| format!("{field}: {}\n", escaped(value))).collect()
}

/// The origin of the token, without the command, which can have credentials.
fn origin_of_token(context: &ServerContext) -> &'static str {
    if context.token.is_empty() { "from a command" } else { "saved" }
}

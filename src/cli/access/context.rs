//! `edgewright context`: the servers that a user has logged in to (D105).

use clap::Subcommand;

use super::contexts::{ContextToken, Contexts, ServerContext, context_name};
use crate::cli::{output::table::titled, prelude::*};

/// List the saved logins, and choose the current one.
///
/// `edgewright login` saves a server and a token as a context. Commands that only read use the server of the current
/// context, unless --server, --store, EDGEWRIGHT_SERVER, EDGEWRIGHT_STORE or the configuration file says otherwise. A
/// command that changes something uses a context only if it is named with --context or EDGEWRIGHT_CONTEXT.
#[derive(Debug, Subcommand)]
pub(crate) enum Args {
    /// List the contexts; `*` marks the current one.
    List,
    /// Make a context the current one.
    Use {
        /// Name of the context.
        #[arg(value_name = "NAME", value_parser = context_name, required_unless_present = "none")]
        name: Option<String>,
        /// Have no current context.
        #[arg(long, conflicts_with = "name")]
        none: bool,
    },
    /// Show a context, without its token.
    Show {
        /// Name of the context (default: the current one).
        #[arg(value_name = "NAME", value_parser = context_name)]
        name: Option<String>,
    },
}

impl Args {
    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        match self {
            Args::List => print(list(&Contexts::read()?)),
            Args::Show { name } => {
                let contexts = Contexts::read()?;
                let (name, context) = contexts.named_or_current(name.as_deref())?;
                print(describe(&name, context))
            }
            Args::Use { name, none } => {
                let name = name.filter(|_| !none).unwrap_or_default();
                let server = Contexts::change(|contexts| {
                    let server = match name.is_empty() {
                        true => None,
                        false => Some(contexts.get(&name)?.server.clone()),
                    };
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

fn list(contexts: &Contexts) -> String {
    let row = |(name, context): (&String, &ServerContext)| {
        let mark = if *name == contexts.current { "*" } else { "" };
        [name.as_str(), mark, &context.server, &context.source, origin_of_token(context)].map(str::to_owned).to_vec()
    };
    titled(&["name", "current", "server", "source", "token"], contexts.all.iter().map(row).collect())
}

fn describe(name: &str, context: &ServerContext) -> String {
    let ca_file = context.ca_file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    let lines = [
        ("name", name),
        ("server", context.server.as_str()),
        ("source", context.source.as_str()),
        ("ca_file", ca_file.as_str()),
        ("version_header", context.version_header.as_str()),
        ("token", origin_of_token(context)),
    ];
    let lines = lines.into_iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(field, value)| format!("{field}: {}\n", escaped(value))).collect()
}

/// The origin of the token, without the command, which can have credentials.
fn origin_of_token(context: &ServerContext) -> &'static str {
    match context.token {
        ContextToken::Stored(_) => "saved",
        ContextToken::Command(_) => "from a command",
    }
}

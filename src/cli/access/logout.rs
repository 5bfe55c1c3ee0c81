//! `edgewright logout`: removes a context (D105).

use super::contexts::{Contexts, context_name};
use crate::{cli::command_prelude::*, store::tokens::split_token};

/// Remove a context and its token.
///
/// The API key stays valid until it is revoked with `edgewright keys revoke`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the context (default: the current one).
    #[arg(value_name = "NAME", value_parser = context_name)]
    name: Option<String>,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let (name, context) = Contexts::change(|contexts| {
            let (name, context) = contexts.named_or_current(self.name.as_deref())?;
            let context = context.clone();
            contexts.all.remove(&name);
            if contexts.current == name {
                contexts.current.clear();
            }
            Ok((name, context))
        })?;
        say(&format!("Removed context {name} ({}).", context.server));
        if !context.token.is_empty() {
            let key = split_token(context.token.expose()).map_or_else(|| "ID".to_owned(), |(key, _)| key.to_string());
            say(&format!("Its API key is still valid: to revoke it, run `edgewright keys revoke {key}`."));
        }
        Ok(Exit::Done)
    }
}

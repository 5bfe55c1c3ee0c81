//! The server that a command works through: of a flag, of the environment, or of a context (D105).

use clap::Arg;
use clap::builder::NonEmptyStringValueParser;

use super::client::{ApiClient, parse_server_url};
use super::credentials::Credentials;
use crate::cli::access::contexts::{Contexts, ServerContext, context_name};
use crate::cli::input::option_origins::{CurrentContext, OptionOrigins};
use crate::cli::{output::say, prelude::*};

/// The server that a command works through.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// Work through the running `edgewright serve` at this URL.
    ///
    /// Reads the token from the environment variable EDGEWRIGHT_TOKEN.
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_SERVER", value_parser = NonEmptyStringValueParser::new())]
    server: Option<String>,
    /// Work through the server of a context; see `edgewright login`.
    ///
    /// Commands that only read use the current context by default; `validate`, `test`, `diff` and `trace --manifests` read files,
    /// and use a server only with one of these flags.
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_CONTEXT", value_parser = context_name)]
    context: Option<String>,
    /// Name of the server's version header.
    #[arg(help_heading = help::CONNECTION, hide_short_help = true)]
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_VERSION_HEADER", default_value = VERSION_HEADER)]
    pub version_header: String,
    /// The context that the server comes from, with its name.
    #[arg(skip)]
    used: Option<(String, ServerContext)>,
    /// The source of the context, if the command has no other.
    #[arg(skip)]
    source: Option<String>,
}

impl ServerArgs {
    /// Takes the variables from the options that name a server, in a command that works with files unless a flag does.
    pub(crate) fn by_flag_only(argument: Arg) -> Arg {
        let names_server = matches!(argument.get_id().as_str(), "server" | "context");
        if names_server { argument.env(None::<&'static str>) } else { argument }
    }

    /// Chooses between a store, a server and a context. A flag comes before everything else; two flags are an error. Then
    /// come the server, the store and the context of the environment or the configuration file, and last the current
    /// context. A command that works with files uses flags alone.
    pub(crate) fn choose(&mut self, origins: &OptionOrigins<'_>) -> Result<(), Failure> {
        let flags: Vec<&str> = ["store", "server", "context"].into_iter().filter(|id| origins.is_flag(id)).collect();
        if let [one, other, ..] = flags.as_slice() {
            let message = format!("`--{one}` and `--{other}` cannot be used together");
            return Err(Diagnostic::error(Code::Parameter, message).help("remove one of them").into());
        }
        let (server, context) = (self.server.take(), self.context.take());
        if flags.is_empty() && origins.current_context == CurrentContext::OnlyByFlag {
            return Ok(());
        }
        match (flags.first().copied(), server, context) {
            (Some("store"), ..) => Ok(()),
            (Some("context"), _, Some(name)) => self.enter(&name, origins),
            (_, Some(url), _) => {
                self.server = Some(url);
                Ok(())
            }
            _ if origins.is_set("store") => Ok(()),
            (_, None, Some(name)) => self.enter(&name, origins),
            (_, None, None) if origins.current_context == CurrentContext::Ignored => Ok(()),
            (_, None, None) => {
                let contexts = Contexts::read()?;
                let is_allowed = origins.current_context == CurrentContext::Used;
                if let Some((name, context)) = contexts.current_for(is_allowed)? {
                    self.use_context(name, context, origins);
                }
                Ok(())
            }
        }
    }

    fn enter(&mut self, name: &str, origins: &OptionOrigins<'_>) -> Result<(), Failure> {
        let contexts = Contexts::read()?;
        self.use_context(name, contexts.get(name)?, origins);
        Ok(())
    }

    fn use_context(&mut self, name: &str, context: &ServerContext, origins: &OptionOrigins<'_>) {
        say(&format!("Using context {name} ({}).", context.server));
        self.server = Some(context.server.clone());
        if !context.version_header.is_empty() && !origins.is_set("version_header") {
            self.version_header = context.version_header.clone();
        }
        if !context.source.is_empty() && !origins.is_set("source") {
            self.source = Some(context.source.clone());
        }
        self.used = Some((name.to_owned(), context.clone()));
    }

    pub(crate) fn url(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The context that the server comes from, with its name.
    pub(crate) fn used_context(&self) -> Option<(&str, &ServerContext)> {
        self.used.as_ref().map(|(name, context)| (name.as_str(), context))
    }

    /// The source of the context, if it has one and the command names no other.
    pub(crate) fn source(&self) -> Option<&str> {
        self.source.as_deref()
    }

    /// Prepares a client of a server. Sends nothing yet.
    pub(crate) fn connect(&self, url: &str) -> Result<ApiClient, Failure> {
        // First, because a URL with a password must not be shown.
        parse_server_url(url)?;
        let credentials = match &self.used {
            Some((_, context)) => Credentials::from_context(context)?,
            None => Credentials::from_environment(url)?,
        };
        ApiClient::new(url, &self.version_header, credentials)
    }
}

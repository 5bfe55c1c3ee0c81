//! `edgewright login`: creates a context from a server and a token (D105).

use std::path::absolute;

use super::contexts::{Contexts, ServerContext, context_name};
use crate::cli::command_prelude::*;
use crate::cli::input::prompt;
use crate::cli::target::{Credentials, parse_server_url};
use crate::server::operations::whoami;

/// Log in to a server, and save it as a context.
///
/// Reads the token of an API key from standard input; a terminal does not show it. Checks the token and prints its
/// owner. The new context becomes the current one: commands that only read use it by default, unless --server or
/// --store says otherwise. A second login with the same name replaces the token, and keeps --ca-file, --source and
/// --version-header unless you set them. Contexts are in `~/.config/edgewright/contexts.yaml`, which only you can read.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the context (default: host and port of the server).
    #[arg(value_name = "NAME", value_parser = name_of_new)]
    name: Option<String>,
    /// URL of the server.
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_SERVER")]
    server: String,
    /// Shell command that prints the token, run for each use; the token is not saved.
    #[arg(long, value_name = "COMMAND", env = "EDGEWRIGHT_TOKEN_COMMAND", hide_env_values = true)]
    token_command: Option<String>,
    /// PEM file with the authorities that the server's certificate may come from (default: those of the system).
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// Default of --source with this context.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Name of the server's version header (default: Service-Version).
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_VERSION_HEADER")]
    version_header: Option<String>,
}

impl Args {
    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        let (server, uri) = parse_server_url(&self.server)?;
        let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let name = match &self.name {
            Some(name) => name.clone(),
            None => context_name(host).map_err(|reason| {
                let message = format!("`{}` is not a valid context name: {reason}", printable(host));
                Diagnostic::error(Code::Parameter, message).help("name the context: `edgewright login NAME --server …`")
            })?,
        };
        // Before the token is asked for.
        let known = Contexts::read()?;
        check_free(&known, &name, &server)?;
        let former = known.all.get(&name);
        let (token, token_command) = match &self.token_command {
            Some(command) => (Secret::default(), Secret::new(command.as_str())),
            None => (prompt::secret(&format!("Token of an API key for {}: ", printable(&server)))?, Secret::default()),
        };
        let ca_file = self.ca_file.as_deref().map(absolute_path).transpose()?;
        let kept =
            |given: &Option<String>, former: Option<&String>| given.as_ref().or(former).cloned().unwrap_or_default();
        let version_header = kept(&self.version_header, former.map(|former| &former.version_header));
        let is_default = version_header.is_empty() || version_header == VERSION_HEADER;
        let context = ServerContext {
            server: server.clone(),
            token,
            token_command,
            ca_file: kept(&ca_file, former.map(|former| &former.ca_file)),
            source: kept(&self.source, former.map(|former| &former.source)),
            version_header: if is_default { String::new() } else { version_header.clone() },
        };
        let header = if is_default { VERSION_HEADER } else { version_header.as_str() };
        let client = ApiClient::new(&server, header, Credentials::from_context(&context)?)?;
        let caller: whoami::CallerIdentity = client.get(whoami::PATH)?;
        Contexts::change(|contexts| {
            // Another process may have taken the name.
            check_free(contexts, &name, &server)?;
            contexts.all.insert(name.clone(), context);
            contexts.current = name.clone();
            Ok(())
        })?;
        let (owner, role, key) = (&caller.owner_id, caller.role.as_str(), &caller.key_id);
        say(&format!("Logged in to {server} as {owner} ({role}) with the API key {key}."));
        say(&format!("The current context is {name}. Commands that change something need --context {name}."));
        Ok(Exit::Done)
    }
}

/// Parses the name of a context. Other programs take the URL in its place.
fn name_of_new(text: &str) -> Result<String, String> {
    match text.contains("://") {
        true => Err("this is a URL: run `edgewright login --server URL`".to_owned()),
        false => context_name(text),
    }
}

/// Fails if the name is that of another server: its context must not be lost by mistake.
fn check_free(contexts: &Contexts, name: &str, server: &str) -> Result<(), Failure> {
    match contexts.all.get(name) {
        Some(other) if other.server != server => {
            let (name, other) = (printable(name), printable(&other.server));
            let message = format!("the context `{name}` already exists, for {other}");
            let help = format!("use another name, or run `edgewright logout {name}` first");
            Err(Diagnostic::error(Code::Conflict, message).help(help).into())
        }
        _ => Ok(()),
    }
}

/// The absolute path of a file: a context is used in any folder.
fn absolute_path(file: &Path) -> Result<String, Failure> {
    let unusable = |reason: String| {
        let message = format!("cannot use `--ca-file` {}: {reason}", file.display());
        Failure::from(Diagnostic::error(Code::Unreadable, message).help("use the path of a PEM file"))
    };
    let path = absolute(file).map_err(|error| unusable(error.to_string()))?;
    path.into_os_string().into_string().map_err(|_| unusable("its path is not UTF-8".to_owned()))
}

//! `edgewright login`: creates a context from a server and a token (D105), or from a sign-in through the provider of the server
//! (D117).

use std::path::absolute;
use std::thread;

use super::contexts::{Contexts, ServerContext, context_name};
use crate::cli::command_prelude::*;
use crate::cli::input::prompt;
use crate::cli::target::{Credentials, parse_server_url};
use crate::model::author::PERSON;
use crate::server::auth::oidc::device::DeviceInstructions;
use crate::server::operations::login::{DEVICE, DEVICE_TOKEN, DeviceQuestion, DeviceToken};
use crate::server::operations::whoami;

/// The most seconds to wait for somebody to enter a code, and between two questions.
const LONGEST_WAIT: u64 = 3600;
const LONGEST_INTERVAL: u64 = 60;

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
    /// Sign in through the server's OpenID Connect provider, with a code that you enter in a browser, instead of the token of
    /// an API key. The sign-in lasts for 8 hours.
    #[arg(long, conflicts_with = "token_command")]
    sso: bool,
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
            None if self.sso => (Secret::default(), Secret::default()),
            None => (prompt::secret(&format!("Token of an API key for {}: ", printable(&server)))?, Secret::default()),
        };
        let ca_file = self.ca_file.as_deref().map(absolute_path).transpose()?;
        let kept =
            |given: &Option<String>, former: Option<&String>| given.as_ref().or(former).cloned().unwrap_or_default();
        let version_header = kept(&self.version_header, former.map(|former| &former.version_header));
        let is_default = version_header.is_empty() || version_header == VERSION_HEADER;
        let mut context = ServerContext {
            server: server.clone(),
            token,
            token_command,
            ca_file: kept(&ca_file, former.map(|former| &former.ca_file)),
            source: kept(&self.source, former.map(|former| &former.source)),
            version_header: if is_default { String::new() } else { version_header.clone() },
        };
        let header = if is_default { VERSION_HEADER } else { version_header.as_str() };
        let client = match self.sso {
            true => {
                let client = ApiClient::new(&server, header, Credentials::without_token(&context)?)?;
                context.token = sign_in(&client)?;
                client.with_token(context.token.clone())
            }
            false => ApiClient::new(&server, header, Credentials::from_context(&context)?)?,
        };
        let caller: whoami::CallerIdentity = client.get(whoami::PATH)?;
        Contexts::change(|contexts| {
            // Another process may have taken the name.
            check_free(contexts, &name, &server)?;
            contexts.all.insert(name.clone(), context);
            contexts.current = name.clone();
            Ok(())
        })?;
        let (owner, role, key) = (&caller.owner_id, caller.role.as_str(), &caller.key_id);
        match key.strip_prefix(PERSON) {
            Some(name) => say(&format!("Logged in to {server} as {} ({role}).", escaped(name))),
            None => say(&format!("Logged in to {server} as {owner} ({role}) with the API key {key}.")),
        }
        say(&format!("The current context is {name}. Commands that change something need --context {name}."));
        Ok(Exit::Done)
    }
}

/// Shows where to enter which code, and waits until somebody has signed in. Returns the token.
fn sign_in(client: &ApiClient) -> Result<Secret, Failure> {
    let device: DeviceInstructions = client.query(DEVICE, b"{}")?;
    let (address, code) = (escaped(&device.verification_uri), escaped(&device.user_code));
    say(&format!("Open {address} in a browser, and enter the code {code}"));
    if !device.verification_uri_complete.is_empty() {
        say(&format!("or open {}, which has the code.", escaped(&device.verification_uri_complete)));
    }
    let until = Instant::now() + Duration::from_secs(device.expires_in.min(LONGEST_WAIT));
    let question = serde_json::to_vec(&DeviceQuestion { device_code: device.device_code }).unwrap_or_default();
    let mut interval = device.interval;
    while Instant::now() < until {
        thread::sleep(Duration::from_secs(interval.clamp(1, LONGEST_INTERVAL)));
        let answer: DeviceToken = client.query(DEVICE_TOKEN, &question)?;
        if !answer.token.is_empty() {
            return Ok(Secret::new(answer.token));
        }
        interval = answer.interval;
    }
    let fault = Diagnostic::error(Code::Timeout, "the code was not entered in time");
    Err(fault.help("run the command again").into())
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

//! Credentials of a client: the token that it sends, and the authorities that it trusts.

use ureq::tls::RootCerts;

use crate::cli::access::contexts::ServerContext;
use crate::cli::prelude::*;
use crate::http_client;
use crate::store::seal::command::output_of;

/// The environment variable with the token. A flag would expose it in the process list.
pub(crate) const TOKEN: &str = "EDGEWRIGHT_TOKEN";
/// The most bytes of a token with its line break.
const MOST_BYTES: u64 = 4096;

pub(crate) struct Credentials {
    pub(super) token: Secret,
    pub(super) authorities: RootCerts,
}

impl Credentials {
    /// Reads the token of the environment, for a server at a URL.
    pub(super) fn from_environment(url: &str) -> Result<Self, Failure> {
        let token = std::env::var(TOKEN).unwrap_or_default();
        if token.trim().is_empty() {
            let fault = Diagnostic::error(Code::Unauthenticated, format!("no token is set for {url}"));
            return Err(fault.help(format!("set {TOKEN} to the token of an API key")).into());
        }
        let token = token.trim();
        if let Some(wrong) = malformation(token) {
            let fault = Diagnostic::error(Code::Unauthenticated, format!("the token in {TOKEN} {wrong}"));
            return Err(fault.help(format!("set {TOKEN} to the token alone; tokens begin with `ew_`")).into());
        }
        Ok(Self { token: Secret::new(token), authorities: RootCerts::PlatformVerifier })
    }

    /// Reads the token of a context, or has its command print it. The variable is for other servers: it must not reach this
    /// one.
    pub(crate) fn from_context(context: &ServerContext) -> Result<Self, Failure> {
        let token = match context.token.is_empty() {
            true => run_token_command(context.token_command.expose())?,
            false => Secret::new(context.token.expose().trim()),
        };
        Ok(Self { token, ..Self::without_token(context)? })
    }

    /// The authorities of a context, for requests that need no token.
    pub(crate) fn without_token(context: &ServerContext) -> Result<Self, Failure> {
        let authorities = match context.ca_file.as_str() {
            "" => RootCerts::PlatformVerifier,
            file => read_authorities(file)?,
        };
        Ok(Self { token: Secret::default(), authorities })
    }
}

/// The mistake in a text that is a token with something else around it.
fn malformation(text: &str) -> Option<&'static str> {
    if text.starts_with(['"', '\'']) || text.ends_with(['"', '\'']) {
        return Some("is in quotes");
    }
    if text.contains(char::is_whitespace) {
        return Some("has white space in it");
    }
    (!text.bytes().all(|byte| byte.is_ascii_graphic())).then_some("has characters that no token has")
}

/// Returns the token that a command prints. No error has the output, which can be another secret.
fn run_token_command(command: &str) -> Result<Secret, Failure> {
    let failed = |reason: &str| {
        Diagnostic::error(Code::Unauthenticated, format!("the token command {reason}")).help(
            "check `token_command` of the context; the command must print the token of an API key and nothing else",
        )
    };
    let output = output_of(command, MOST_BYTES).map_err(|reason| failed(&reason))?;
    let text = std::str::from_utf8(&output).unwrap_or_default().trim();
    if text.is_empty() || text.len() as u64 > MOST_BYTES || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(failed("did not print a token").into());
    }
    Ok(Secret::new(text))
}

fn read_authorities(file: &str) -> Result<RootCerts, Failure> {
    let read = fs::read(file).map_err(|error| error.to_string());
    read.and_then(|pem| http_client::authorities(&pem)).map_err(|reason| {
        Diagnostic::error(Code::Unreadable, format!("cannot use `ca_file` {file}: {reason}"))
            .help("set it to a PEM file with the certificates of the server's authorities")
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(command: &str) -> String {
        let failure = run_token_command(command).err();
        let diagnostics = failure.into_iter().flat_map(|failure| failure.diagnostics);
        diagnostics.map(|it| format!("{} {}", it.message, it.help.unwrap_or_default())).collect()
    }

    #[test]
    fn what_is_not_a_token_alone_is_not_sent() {
        for (text, wrong) in [
            ("\"ew_ak_1_secret\"", Some("is in quotes")),
            ("'ew_ak_1_secret", Some("is in quotes")),
            ("Bearer ew_ak_1_secret", Some("has white space in it")),
            ("ew_ak_1_secr\u{e9}t", Some("has characters that no token has")),
            ("ew_ak_1_secret", None),
        ] {
            assert_eq!(malformation(text), wrong, "{text}");
        }
    }

    #[test]
    fn a_token_command_prints_one_token_and_its_output_is_never_shown() {
        let token = run_token_command("printf ' ew_ak_1_secret\\n'").map(|token| token.expose().to_owned()).ok();
        assert_eq!(token.as_deref(), Some("ew_ak_1_secret"));
        for command in ["echo hunter2; exit 3", "echo hunter2 hunter2", "echo hunter2 >&2", "true", "yes hunter2"] {
            let said = said(command);
            assert!(said.contains("token command") && !said.contains("hunter2"), "{command}: {said}");
        }
    }
}

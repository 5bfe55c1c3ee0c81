//! A client of a server's API.

use std::{
    io::{Read, Write},
    sync::OnceLock,
    thread,
    time::Duration,
};

use axum::http::Uri;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use ureq::Agent;

use super::credentials::{Credentials, TOKEN};
use crate::{
    cli::{Exit, Failure},
    model::{
        diagnostics::{code::Code, diagnostic::Diagnostic},
        secrets::secret::Secret,
    },
    server::notify::http_client,
};

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(10);
/// The response timeout.
const RESPONSE: Duration = Duration::from_secs(600);
/// How long a request is repeated that the server turns away because it has too much to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// The size of the pieces of a download.
const PIECE: usize = 256 << 10;

/// A server's error response (D9).
#[derive(Deserialize)]
struct ErrorResponse {
    error_code: String,
    msg: String,
    #[serde(default)]
    details: ErrorDetails,
    #[serde(default)]
    errors: Vec<ErrorItem>,
    #[serde(default)]
    missing: Vec<String>,
}

#[derive(Default, Deserialize)]
struct ErrorDetails {
    #[serde(default)]
    field: String,
}

#[derive(Deserialize)]
struct ErrorItem {
    error_code: String,
    msg: String,
    #[serde(default)]
    field: String,
}

/// Sends requests with the token.
pub(crate) struct ApiClient {
    agent: Agent,
    url: String,
    version_header: String,
    token: Secret,
    /// The server's OpenAPI document, once it was read.
    document: OnceLock<Value>,
}

impl ApiClient {
    /// Prepares a client. Sends nothing yet.
    pub(crate) fn new(url: &str, version_header: &str, credentials: Credentials) -> Result<Self, Failure> {
        let (url, uri) = address(url)?;
        if uri.scheme_str() == Some("http") && !is_this_machine(&uri) {
            let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
            let _ = writeln!(
                anstream::stderr(),
                "Warning: the token and all secrets are sent to {host} over unencrypted HTTP."
            );
        }
        Ok(Self {
            agent: http_client::agent_trusting(credentials.authorities, CONNECT, RESPONSE),
            url,
            version_header: version_header.to_owned(),
            token: credentials.token,
            document: OnceLock::new(),
        })
    }

    /// The URL of a path.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Posts a JSON body, and returns the status and body of the response. A server that turns it away is asked again when
    /// it says so, for a while.
    pub(crate) fn post(&self, url: &str, body: &[u8]) -> Result<(u16, Vec<u8>), MissingResponse> {
        let mut patience = PATIENCE;
        loop {
            let request = self
                .agent
                .post(url)
                .header("Authorization", format!("Bearer {}", self.token.expose()))
                .header(&self.version_header, "2")
                .header("Content-Type", "application/json");
            let response = request.send(body);
            let wait = response.as_ref().ok().and_then(retry_after);
            let (status, text) = read(response)?;
            match wait.filter(|wait| *wait <= patience && is_turned_away(&text)) {
                Some(wait) => {
                    patience = patience.saturating_sub(wait);
                    thread::sleep(wait);
                }
                None => return Ok((status, text)),
            }
        }
    }

    /// Posts a JSON body to a path, for a change that the response has. `see` tells how to find out whether it was made if
    /// there is no response.
    pub(crate) fn change<T: DeserializeOwned>(&self, path: &str, body: &[u8], see: &str) -> Result<T, Failure> {
        let url = self.address(path);
        let body = changed(&url, self.post(&url, body), 200, see)?;
        serde_json::from_slice(&body).map_err(|_| foreign_response(&url, 200))
    }

    /// Posts a JSON body to a path that changes nothing, and returns the response.
    pub(crate) fn request<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, Failure> {
        let url = self.address(path);
        let (status, body) = self.post(&url, body).map_err(|missing| missing.failure(&url))?;
        if status != 200 {
            return Err(refused(&url, status, &body));
        }
        serde_json::from_slice(&body).map_err(|_| foreign_response(&url, status))
    }

    /// Posts a JSON body to a path to create something, and returns it. See [`Self::change`].
    pub(crate) fn create<T: DeserializeOwned>(&self, path: &str, body: &[u8], see: &str) -> Result<T, Failure> {
        let url = self.address(path);
        let body = changed(&url, self.post(&url, body), 201, see)?;
        serde_json::from_slice(&body).map_err(|_| foreign_response(&url, 201))
    }

    /// Deletes what is at a path. See [`Self::change`].
    pub(crate) fn delete(&self, path: &str, see: &str) -> Result<(), Failure> {
        let url = self.address(path);
        let request = self
            .agent
            .delete(&url)
            .header("Authorization", format!("Bearer {}", self.token.expose()))
            .header(&self.version_header, "2");
        changed(&url, read(request.call()), 204, see).map(drop)
    }

    /// Patches a path with a JSON body, and returns the response. See [`Self::change`].
    pub(crate) fn patch<T: DeserializeOwned>(&self, path: &str, body: &[u8], see: &str) -> Result<T, Failure> {
        let url = self.address(path);
        let request = self
            .agent
            .patch(&url)
            .header("Authorization", format!("Bearer {}", self.token.expose()))
            .header(&self.version_header, "2")
            .header("Content-Type", "application/json");
        let body = changed(&url, read(request.send(body)), 200, see)?;
        serde_json::from_slice(&body).map_err(|_| foreign_response(&url, 200))
    }

    /// Gets a path.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let url = self.address(path);
        let request = self
            .agent
            .get(&url)
            .header("Authorization", format!("Bearer {}", self.token.expose()))
            .header(&self.version_header, "2");
        let (status, body) = read(request.call()).map_err(|missing| missing.failure(&url))?;
        if status != 200 {
            return Err(refused(&url, status, &body));
        }
        serde_json::from_slice(&body).map_err(|_| foreign_response(&url, status))
    }

    /// Gets a path, and gives the body to `sink` as it arrives. It can take as long as it needs.
    pub(crate) fn download(
        &self,
        path: &str,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let url = self.address(path);
        let request = self
            .agent
            .get(&url)
            .header("Authorization", format!("Bearer {}", self.token.expose()))
            .header(&self.version_header, "2")
            .config()
            .timeout_global(None)
            .timeout_recv_response(Some(RESPONSE))
            .build();
        let response = request.call().map_err(|error| MissingResponse::of(&error).failure(&url))?;
        let status = response.status().as_u16();
        if status != 200 {
            let (status, body) = read(Ok(response)).map_err(|missing| missing.failure(&url))?;
            return Err(refused(&url, status, &body));
        }
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; PIECE];
        loop {
            let length = body.read(&mut piece).map_err(|error| MissingResponse::partly(&error).failure(&url))?;
            match piece.get(..length) {
                Some([]) | None => return Ok(()),
                Some(bytes) => sink(bytes)?,
            }
        }
    }

    /// Checks that the list at a path of the OpenAPI document has a parameter. A server that does not know it may ignore
    /// it, and would return other resources. `lack` and `help` are for the error.
    pub(crate) fn require(&self, collection: &str, parameter: &str, lack: &str, help: &str) -> Result<(), Failure> {
        let document = match self.document.get() {
            Some(document) => document,
            None => {
                let document: Value = self.get("/openapi.json")?;
                self.document.get_or_init(|| document)
            }
        };
        let list = document.get("paths").and_then(|paths| paths.get(collection));
        let parameters = list.and_then(|list| list.pointer("/get/parameters")).and_then(Value::as_array);
        let is_it = |known: &Value| known.get("name").and_then(Value::as_str) == Some(parameter);
        if parameters.is_some_and(|parameters| parameters.iter().any(is_it)) {
            return Ok(());
        }
        Err(self.too_old(lack, help))
    }

    /// The failure for a server that lacks a feature.
    pub(crate) fn too_old(&self, lack: &str, help: &str) -> Failure {
        let message = format!("the server at {} is too old: {lack}", self.url);
        Diagnostic::error(Code::Parameter, message).help(help).into()
    }
}

/// Why there is no whole response.
pub(crate) struct MissingResponse {
    reason: String,
    /// Whether the server may have got the request.
    pub may_be_sent: bool,
}

impl MissingResponse {
    fn of(error: &ureq::Error) -> Self {
        Self { reason: http_client::reason_with_url(error), may_be_sent: !http_client::was_not_sent(error) }
    }

    /// Only a part of the response came.
    fn partly(error: &impl std::fmt::Display) -> Self {
        Self { reason: error.to_string(), may_be_sent: true }
    }

    /// The failure of a request that changes nothing, or was not sent (D105).
    pub(crate) fn failure(&self, at: &str) -> Failure {
        if self.may_be_sent {
            return Diagnostic::error(Code::Unreadable, no_response(at, &self.reason))
                .help("run the command again; if that does not help, check the URL in --server and any proxy in front of the server")
                .into();
        }
        Diagnostic::error(Code::Unreadable, format!("cannot reach {at}: {}", self.reason))
            .help("check the URL in --server, and that the server is running")
            .into()
    }

    /// The message for a change that may have been made.
    pub(crate) fn message(&self, at: &str) -> String {
        no_response(at, &self.reason)
    }
}

/// The message for a response that never came, or says nothing about the request.
pub(crate) fn no_response(at: &str, reason: &str) -> String {
    format!("no usable response from {at}: {reason}")
}

/// Reads the status and body of a response.
fn read(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<(u16, Vec<u8>), MissingResponse> {
    let mut response = response.map_err(|error| MissingResponse::of(&error))?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(u64::MAX).read_to_vec();
    let body = body.map_err(|error| MissingResponse::partly(&error))?;
    Ok((status, body))
}

/// When a response says to send the request again. It is never at once.
fn retry_after(response: &ureq::http::Response<ureq::Body>) -> Option<Duration> {
    let seconds: u64 = response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.max(1)))
}

/// The body of the response to a request that changes something.
fn changed(
    at: &str,
    response: Result<(u16, Vec<u8>), MissingResponse>,
    expected: u16,
    see: &str,
) -> Result<Vec<u8>, Failure> {
    let unknown = |reason: &str| {
        let message = format!("{}; the change may have been made", no_response(at, reason));
        Failure::from(Diagnostic::error(Code::Timeout, message).help(see))
    };
    let (status, body) = response.map_err(|missing| match missing.may_be_sent {
        true => unknown(&missing.reason),
        false => missing.failure(at),
    })?;
    if status == expected {
        return Ok(body);
    }
    // A proxy does not know what the server has done.
    let is_answer = serde_json::from_slice::<ErrorResponse>(&body).is_ok();
    Err(if status >= 500 && !is_answer { unknown(&format!("status {status}")) } else { refused(at, status, &body) })
}

/// The failure for a response that is not from edgewright.
pub(crate) fn foreign_response(at: &str, status: u16) -> Failure {
    let message = format!("unexpected response from {at} (status {status}): not an edgewright server");
    let help = "check the URL in --server and any proxy in front of the server";
    Diagnostic::error(Code::Unreadable, message).help(help).into()
}

/// Converts an error response into a failure.
pub(crate) fn refused(at: &str, status: u16, text: &[u8]) -> Failure {
    let Ok(refusal) = serde_json::from_slice::<ErrorResponse>(text) else { return foreign_response(at, status) };
    let one = |code: &str, msg: &str| {
        let known = Code::from_name(code);
        let help = match known {
            Some(Code::Unauthenticated) => {
                "use the token of an API key that is not revoked: set EDGEWRIGHT_TOKEN or, for a context, run `edgewright login`"
            }
            Some(Code::VersionHeader) => "set --version-header to the name of the server's version header",
            Some(Code::NotFound) if msg.contains("no endpoint at this path") => {
                "check the path of the URL in --server, or upgrade the server"
            }
            // The message ends with the server's advice, which knows more than the code.
            Some(Code::NotFound | Code::Conflict | Code::Parameter) if msg.contains("; ") => "",
            Some(code) => code.info().cure,
            None => "use the same edgewright version as the server",
        };
        let error = Diagnostic::error(known.unwrap_or(Code::Internal), format!("rejected by the server: {msg}"));
        if help.is_empty() { error } else { error.help(help) }
    };
    let exit = match Code::from_name(&refusal.error_code) {
        Some(Code::Stale) => Exit::Stale,
        Some(Code::PreventDestroy | Code::TooManyDeletions) => Exit::Refused,
        _ => Exit::Error,
    };
    let several = refusal.errors.iter().map(|it| one(&it.error_code, &it.msg));
    let mut diagnostics: Vec<Diagnostic> = several.collect();
    if diagnostics.is_empty() {
        diagnostics.push(one(&refusal.error_code, &refusal.msg));
    }
    Failure { diagnostics, exit }
}

/// Whether the server itself turned the request away before starting on it. A proxy's 503 does not prove that.
pub(crate) fn is_turned_away(text: &[u8]) -> bool {
    let refusal = serde_json::from_slice::<ErrorResponse>(text);
    let code = refusal.ok().and_then(|refusal| Code::from_name(&refusal.error_code));
    matches!(code, Some(Code::Unavailable | Code::RateLimited))
}

/// The digests of the texts that the server lacks, if it answered that (D72).
pub(crate) fn missing_files(text: &[u8]) -> Option<Vec<String>> {
    let refusal: ErrorResponse = serde_json::from_slice(text).ok()?;
    (Code::from_name(&refusal.error_code) == Some(Code::MissingFiles)).then_some(refusal.missing)
}

/// Whether the server does not know that a file can have a digest, because it is older.
pub(crate) fn rejects_digests(text: &[u8]) -> bool {
    // A fault in a manifest has the field `/files/N/text`.
    rejects_field(text, |field| field.starts_with("/files/") && field.ends_with("/digest"))
}

/// Whether the server does not know a field of the request, because it is older.
pub(crate) fn rejects_field(text: &[u8], is_it: impl Fn(&str) -> bool) -> bool {
    let Ok(refusal) = serde_json::from_slice::<ErrorResponse>(text) else { return false };
    let rejects = |code: &str, field: &str| Code::from_name(code) == Some(Code::UnknownField) && is_it(field);
    rejects(&refusal.error_code, &refusal.details.field)
        || refusal.errors.iter().any(|it| rejects(&it.error_code, &it.field))
}

/// Validates a server URL and removes trailing slashes.
pub(super) fn address(text: &str) -> Result<(String, Uri), Failure> {
    // A password does not belong on a command line, or in the messages that show the URL.
    let text = text.trim_end_matches('/');
    let parsed = text.parse::<Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    match parsed {
        Some(uri) if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            let fault = Diagnostic::error(
                Code::InvalidFormat,
                "the URL in `--server` must not contain a user name or password",
            );
            Err(fault.help(format!("remove it, and set {TOKEN} to the token of an API key")).into())
        }
        Some(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok((text.to_owned(), uri)),
        _ => {
            let fault = Diagnostic::error(Code::InvalidFormat, format!("`{text}` is not an HTTP or HTTPS URL"));
            Err(fault.help("use a URL such as `https://edge.example.com`").into())
        }
    }
}

/// Validates a server URL, and returns it without trailing slashes, and its host and port.
pub(crate) fn host_of(text: &str) -> Result<(String, String), Failure> {
    let (url, uri) = address(text)?;
    let host = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    Ok((url, host))
}

/// Whether a server runs on this machine.
fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Uri, is_this_machine, refused};

    #[test]
    fn the_advice_of_the_server_is_not_replaced_by_a_general_one() {
        let help = |code: &str, msg: &str| {
            let body = format!(r#"{{"error_code": "ERR_EDGEWRIGHT_{code}", "msg": "{msg}"}}"#);
            let mut found = refused("http://127.0.0.1:1", 400, body.as_bytes()).diagnostics;
            found.pop().and_then(|error| error.help)
        };
        assert_eq!(help("NOT_FOUND", "this server follows no source `x`; list the sources"), None);
        assert_eq!(help("CONFLICT", "the configuration file suspends the source; remove `suspend`"), None);
        let url = help("NOT_FOUND", "not found: no endpoint at this path");
        assert!(url.is_some_and(|help| help.contains("the path of the URL in --server")));
        let other = help("NOT_FOUND", "edghts_1 does not exist");
        assert!(other.is_some_and(|help| !help.contains("--server")));
        assert!(help("REVISION_NOT_FOUND", "revision 9 does not exist; the store is at revision 3").is_some());
    }

    #[test]
    fn only_a_loopback_address_is_this_machine() {
        let is_this_machine =
            |address: &str| is_this_machine(&format!("http://{address}").parse::<Uri>().unwrap_or_default());
        for address in ["localhost", "LOCALHOST:8484", "127.0.0.1:8484/base", "127.0.0.2", "[::1]:8484"] {
            assert!(is_this_machine(address), "{address}");
        }
        for address in ["edge.example.com", "localhost.example.com:80", "10.0.0.1:8484", "[fe80::1]:80", ""] {
            assert!(!is_this_machine(address), "{address}");
        }
    }
}

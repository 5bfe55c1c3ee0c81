//! A client of a server's API.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use axum::http::Uri;
use axum::http::uri::Authority;
use serde::de::DeserializeOwned;
use ureq::http::request::Builder;
use ureq::http::{Method, Request, Response};
use ureq::{Agent, Body};

use super::api_response::{ApiResponse, RequestEffect, SendError, no_response};
use super::credentials::{Credentials, TOKEN};
use crate::{cli::prelude::*, http_client};

const CONNECT: Duration = Duration::from_secs(10);
const RESPONSE: Duration = Duration::from_secs(600);
/// The time for which a request is repeated while the server is too busy for it.
const RETRY_TIME: Duration = Duration::from_secs(60);
/// The size of the pieces of a download.
const PIECE: usize = 256 << 10;

/// Sends requests with the token.
pub(crate) struct ApiClient {
    agent: Agent,
    url: String,
    version_header: String,
    token: Secret,
    document: OnceLock<Value>,
    /// The last revision in a response to a change; 0 if there was none. Another server of the store may be behind it.
    revision: AtomicU64,
}

impl ApiClient {
    /// Prepares a client. Sends nothing yet.
    pub(crate) fn new(url: &str, version_header: &str, credentials: Credentials) -> Result<Self, Failure> {
        let (url, uri) = parse_server_url(url)?;
        if uri.scheme_str() == Some("http") && !http_client::is_this_machine(uri.host().unwrap_or_default()) {
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
            revision: AtomicU64::new(0),
        })
    }

    pub(crate) fn with_token(self, token: Secret) -> Self {
        Self { token, ..self }
    }

    pub(crate) fn address(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn request(&self, method: &Method, url: &str) -> Builder {
        let token = format!("Bearer {}", self.token.expose());
        let request = Request::builder().method(method).uri(url).header("Authorization", token);
        let request = request.header(&self.version_header, "2");
        match self.revision.load(Ordering::Relaxed) {
            0 => request,
            revision => request.header("If-Revision-At-Least", revision.to_string()),
        }
    }

    fn start(&self, method: &Method, url: &str, body: Option<&[u8]>) -> Result<Response<Body>, ureq::Error> {
        let request = self.request(method, url);
        match body {
            Some(body) => self.agent.run(request.header("Content-Type", "application/json").body(body)?),
            None => self.agent.run(request.body(())?),
        }
    }

    /// Sends a request, and returns the response. A POST that the server turns away is repeated when the server says so, for a
    /// while. Fails if nobody knows whether a change was made.
    pub(crate) fn send(
        &self,
        method: &Method,
        url: &str,
        body: Option<&[u8]>,
        effect: RequestEffect,
    ) -> Result<ApiResponse, SendError> {
        let mut remaining = RETRY_TIME;
        loop {
            let response = self.start(method, url, body);
            self.revision.fetch_max(response.as_ref().ok().and_then(revision).unwrap_or_default(), Ordering::Relaxed);
            let wait = response.as_ref().ok().and_then(retry_after).filter(|_| method == Method::POST);
            let response = read(response, url, effect)?;
            match wait.filter(|wait| *wait <= remaining && response.was_refused_before_start()) {
                Some(wait) => {
                    remaining = remaining.saturating_sub(wait);
                    thread::sleep(wait);
                }
                None => return response.with_known_outcome(),
            }
        }
    }

    /// Sends a request that changes something, and returns the response. `see` tells how to find out whether the change was
    /// made if there is no response.
    pub(crate) fn change<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        body: Option<&[u8]>,
        see: &str,
    ) -> Result<T, Failure> {
        let sent = self.send(method, &self.address(path), body, RequestEffect::Change);
        sent.and_then(|response| response.parse()).map_err(|error| error.failure(see))
    }

    /// Posts a JSON body to a path that changes nothing, and returns the response.
    pub(crate) fn query<T: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<T, Failure> {
        self.read(&Method::POST, path, Some(body))
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.read(&Method::GET, path, None)
    }

    fn read<T: DeserializeOwned>(&self, method: &Method, path: &str, body: Option<&[u8]>) -> Result<T, Failure> {
        let sent = self.send(method, &self.address(path), body, RequestEffect::None);
        sent.and_then(|response| response.parse()).map_err(|error| error.failure(""))
    }

    /// What the server says of itself and its store, which other servers may write to; nothing if it says nothing.
    pub(crate) fn notes_on_server(&self) -> Vec<String> {
        let sent = self.send(&Method::GET, &self.address("/readyz"), None, RequestEffect::None);
        sent.map_or_else(|_| Vec::new(), |response| response.notes_on_server())
    }

    /// Gets a path, and gives the body to `sink` as it arrives. It can take as long as it needs.
    pub(crate) fn download(
        &self,
        path: &str,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let url = self.address(path);
        let request = self.request(&Method::GET, &url).body(()).map_err(ureq::Error::from);
        let response = request.and_then(|request| {
            let config = self.agent.configure_request(request).timeout_global(None);
            self.agent.run(config.timeout_recv_response(Some(RESPONSE)).build())
        });
        let response = match response {
            Ok(response) if response.status().as_u16() == 200 => response,
            other => return Err(read(other, &url, RequestEffect::None).map_err(|error| error.failure(""))?.failure()),
        };
        let mut body = response.into_body().into_with_config().limit(u64::MAX).reader();
        let mut piece = vec![0; PIECE];
        loop {
            let length = body.read(&mut piece).map_err(|error| unusable(&url, &error.to_string()))?;
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
        let parameters = document.pointer(&format!("/paths/{}/get/parameters", collection.replace('/', "~1")));
        let mut names = parameters.and_then(Value::as_array).into_iter().flatten().map(|known| known.get("name"));
        if names.any(|name| name.and_then(Value::as_str) == Some(parameter)) {
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

/// The failure for a request that changes nothing and has no whole response (D105).
fn unusable(at: &str, reason: &str) -> Failure {
    Diagnostic::error(Code::Unreadable, no_response(at, reason))
        .help("run the command again; if that does not help, check the URL in --server and any proxy in front of the server")
        .into()
}

fn read(
    response: Result<Response<Body>, ureq::Error>,
    at: &str,
    effect: RequestEffect,
) -> Result<ApiResponse, SendError> {
    let missing = |reason: &str| match effect {
        RequestEffect::Change => SendError::no_response(at, reason),
        RequestEffect::None => SendError::Refused(unusable(at, reason)),
    };
    let mut response = response.map_err(|error| {
        let reason = http_client::reason_with_url(&error);
        if !http_client::was_not_sent(&error) {
            return missing(&reason);
        }
        let unreached = Diagnostic::error(Code::Unreadable, format!("cannot reach {at}: {reason}"));
        let help = match http_client::is_unknown_issuer(&error) {
            true => "set SSL_CERT_FILE to the file of its authority, or log in with `--ca-file FILE`",
            false => "check the URL in --server, and that the server is running",
        };
        SendError::Refused(unreached.help(help).into())
    })?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(u64::MAX).read_to_vec();
    let body = body.map_err(|error| missing(&error.to_string()))?;
    Ok(ApiResponse::new(at, status, body, effect))
}

/// The time after which a response says to send the request again; never none.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds: u64 = response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.max(1)))
}

/// The revision of the store that a response to a change says.
fn revision(response: &Response<Body>) -> Option<u64> {
    response.headers().get("edgewright-revision")?.to_str().ok()?.parse().ok()
}

/// Validates a server URL and removes trailing slashes.
pub(crate) fn parse_server_url(text: &str) -> Result<(String, Uri), Failure> {
    let text = text.trim_end_matches('/');
    let is_http = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    if let Some(uri) = http_client::server_url(text).ok().filter(is_http) {
        return Ok((text.to_owned(), uri));
    }
    // A password does not belong on a command line, or in the messages that show the URL.
    if text.contains('@') {
        let message = "the URL in `--server` must not contain a user name or password";
        let help = format!("remove it, and set {TOKEN} to the token of an API key");
        return Err(Diagnostic::error(Code::InvalidFormat, message).help(help).into());
    }
    let fault = Diagnostic::error(Code::InvalidFormat, format!("`{text}` is not an HTTP or HTTPS URL"));
    let help = with_scheme(text).map(|url| format!("did you mean `{}`?", printable(&url)));
    Err(fault.help(help.unwrap_or_else(|| "use a URL such as `https://edge.example.com`".to_owned())).into())
}

/// The URL of a host and port, or of a domain, without a scheme. On this machine, a server usually has no TLS.
fn with_scheme(text: &str) -> Option<String> {
    let authority = text.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let is_host = is_here || authority.parse::<Authority>().is_ok_and(|parsed| parsed.host().contains('.'));
    is_host.then(|| format!("{}://{text}", if is_here { "http" } else { "https" }))
}

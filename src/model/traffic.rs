//! Requests, and what traffic modules do with them (D42).

use std::{collections::BTreeMap, fmt, net::IpAddr};

use http::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnostics::check::parse_hostport;
use super::diagnostics::{Code, Fault};
use super::names::names;
use crate::syntax::text::printable;

/// The port of plain HTTP, where no edge terminates TLS.
pub(crate) const PLAIN_HTTP: u16 = 80;

/// A client's request.
#[derive(Debug, Clone, Default)]
pub struct TracedRequest {
    /// The method in upper case, such as `GET`.
    pub method: String,
    /// The host in lower case; an IPv6 address in canonical form without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path as written in the URL, without query and fragment.
    pub path: String,
    /// The client's IP address, if known.
    pub client_ip: Option<IpAddr>,
    /// The header names and values.
    pub headers: Vec<(String, String)>,
    /// The User-Agent, if known.
    pub user_agent: Option<String>,
    /// Whether the client presents a certificate that the edge trusts, if known.
    pub client_certificate: Option<bool>,
}

impl TracedRequest {
    /// Creates a request from the texts that people write; an empty method is `GET`, and an empty address is unknown. The
    /// path of a fault is the field with the text.
    pub(crate) fn parse(method: &str, url: &str, client_ip: &str) -> Result<Self, Fault> {
        let invalid = |field: &str, message: String| Fault::new(Code::InvalidFormat, message).at(field);
        let method = if method.is_empty() { "GET" } else { method };
        if !method.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(invalid("method", format!("`{}` is not an HTTP method", printable(method))));
        }
        let request = Self::new(method, url).map_err(|reason| {
            invalid("url", format!("invalid URL `{}`: {reason}", printable(url)))
                .help("write a host and a path, such as `https://shop.example.com/cart`")
        })?;
        let client_ip = match client_ip {
            "" => None,
            text => match text.parse::<IpAddr>() {
                Ok(ip) => Some(ip),
                Err(_) => return Err(invalid("client_ip", format!("`{}` is not an IP address", printable(text)))),
            },
        };
        Ok(Self { client_ip, ..request })
    }

    /// Creates a request for a URL; the scheme defaults to `https`.
    pub fn new(method: &str, url: &str) -> Result<Self, &'static str> {
        let has_scheme = url.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(['/', '?', '#']));
        let uri = if has_scheme { url.parse::<Uri>() } else { format!("https://{url}").parse::<Uri>() };
        let uri = uri.map_err(|_| "malformed")?;
        let default_port = match uri.scheme_str() {
            Some("https") => "443",
            Some("http") => "80",
            _ => return Err("the scheme must be https or http"),
        };
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        if authority.contains('@') {
            return Err("the URL cannot contain a user name");
        }
        let with_port = authority.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
        let (host, port) = with_port.unwrap_or((authority, default_port));
        // A full name can end with a dot.
        let whole = format!("{}:{port}", host.strip_suffix('.').unwrap_or(host));
        let (host, port) = parse_hostport(&whole)?;
        if host.starts_with('*') {
            return Err("the host cannot be a wildcard");
        }
        Ok(Self {
            method: method.to_ascii_uppercase(),
            host: host_name(host),
            port,
            path: uri.path().to_owned(),
            ..Self::default()
        })
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for TracedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{} {}{}{}:{}{}", self.method, brackets.0, self.host, brackets.1, self.port, self.path)
    }
}

/// Returns a host without the brackets around an IPv6 address.
pub(crate) fn bare_host(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Normalizes a host: names in lower case without a trailing dot, IP addresses in canonical form without brackets. An IPv4
/// address that is mapped into IPv6 is the IPv4 address: clients that connect to one by the other send either as the host.
pub(crate) fn host_name(host: &str) -> String {
    let host = host.strip_suffix('.').unwrap_or(host);
    match bare_host(host).parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().to_string(),
        Err(_) => host.to_ascii_lowercase(),
    }
}

/// Returns host and port in a normal form: equal values are the same hostport.
pub(crate) fn host_port(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    Some((host_name(host), port.parse().ok()?))
}

/// A point in the course of a request, in traffic order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The client connects.
    Connection,
    /// The source address is checked.
    Source,
    /// The client's software is checked.
    Client,
    /// The caller proves who it is.
    Authentication,
    /// Policies for requests apply.
    Inbound,
    /// The request is rewritten.
    RequestChange,
    /// The request is prepared for the backend.
    Dispatch,
    /// The backend handles the request.
    Backend,
    /// The response is rewritten.
    ResponseChange,
    /// The response is encoded.
    Encoding,
    /// Policies for responses apply.
    Outbound,
}

names! {
    Stage: Connection "connection", Source "source", Client "client", Authentication "authentication", Inbound "inbound",
    RequestChange "request_change", Dispatch "dispatch", Backend "upstream", ResponseChange "response_change",
    Encoding "encoding", Outbound "outbound"
}

/// A module's effect on a request, as far as its configuration determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepEffect {
    /// The request passes.
    Passes,
    /// The effect depends on something that the configuration and the request do not tell, such as a session.
    Depends,
    /// The request is rejected.
    Refused,
}

names!(StepEffect: Passes "passes", Depends "depends", Refused "refused");

/// The certain fate of a request at a step, for callers that must not guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepOutcome {
    /// The request goes on. What only a failing backend changes does not count.
    GoesOn,
    /// A client without a session is sent to a login.
    Login,
    /// The request is answered with a redirect.
    Redirected,
    /// The request is rejected.
    Refused,
    /// The outcome depends on something that the configuration and the request do not tell.
    Unknown,
}

/// The fate of a request, as far as the manifests determine it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestVerdict {
    /// Reaches the backend.
    Forwarded,
    /// A person without a session has to log in.
    Login,
    /// Rejected because the caller does not prove who it is: no client certificate, or no token.
    Denied,
    /// Answered with a redirect.
    Redirected,
    /// Rejected for another reason, such as its User-Agent or a policy.
    Blocked,
    /// Nothing handles it: no edge serves the host and port, no route matches, or no backend is enabled.
    Unserved,
    /// Depends on something that the manifests and the request do not tell.
    Depends,
}

names! {
    RequestVerdict: Forwarded "forwarded", Login "login", Denied "denied", Redirected "redirected", Blocked "blocked",
    Unserved "unserved", Depends "depends"
}

/// A header that a step adds or removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderChange {
    /// The name.
    pub name: String,
    /// Whether the header is added, and not removed.
    pub is_added: bool,
}

/// One step of a module in the course of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The stage. Modules of the same stage act in the order of their slots.
    pub stage: Stage,
    /// The name in a trace; `None` for the name of the slot.
    pub name: Option<&'static str>,
    /// The effect.
    pub effect: StepEffect,
    /// A short explanation.
    pub note: String,
    /// The outcome. It can be certain where the effect depends: a login always asks for a session.
    pub outcome: StepOutcome,
    /// The headers that it adds and removes, of the request or, after the backend, of the response.
    pub header_changes: Vec<HeaderChange>,
}

impl Step {
    /// Creates a step with the name of its slot, and an outcome that follows from the effect.
    pub fn new(stage: Stage, effect: StepEffect, note: impl Into<String>) -> Self {
        let outcome = match effect {
            StepEffect::Passes => StepOutcome::GoesOn,
            StepEffect::Depends => StepOutcome::Unknown,
            StepEffect::Refused => StepOutcome::Refused,
        };
        Self { stage, name: None, effect, note: note.into(), outcome, header_changes: Vec::new() }
    }

    /// Creates the step of a login, which OPTIONS requests can skip as CORS requires.
    pub fn login(request: &TracedRequest, options_passthrough: bool, with: &str) -> Self {
        if options_passthrough && request.method == "OPTIONS" {
            let note = "OPTIONS requires no login (options_passthrough)";
            Self::new(Stage::Authentication, StepEffect::Passes, note)
        } else {
            let note = format!("requires a session or a login with {with}");
            Self { outcome: StepOutcome::Login, ..Self::new(Stage::Authentication, StepEffect::Depends, note) }
        }
    }
}

/// Joins items for the note of a step.
pub(crate) fn or_none(items: &[String]) -> String {
    if items.is_empty() { "none".into() } else { items.join(", ") }
}

/// Creates the step of a module that adds and removes headers.
pub(crate) fn header_step(stage: Stage, add: &BTreeMap<String, String>, remove: &[String]) -> Step {
    let change = |name: &String, is_added: bool| HeaderChange { name: name.clone(), is_added };
    let added = add.keys().map(|name| change(name, true));
    let header_changes: Vec<HeaderChange> = added.chain(remove.iter().map(|name| change(name, false))).collect();
    let signed = |change: &HeaderChange| format!("{}{}", if change.is_added { '+' } else { '-' }, change.name);
    let note = or_none(&header_changes.iter().map(signed).collect::<Vec<_>>());
    Step { header_changes, ..Step::new(stage, StepEffect::Passes, note) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostports_are_the_same_in_any_spelling() {
        assert_eq!(host_port("Shop.Example.com.:443"), host_port("shop.example.com:443"));
        assert_eq!(host_port("[2001:DB8:0::1]:443"), host_port("[2001:db8::1]:443"));
        assert_eq!(host_port("[2001:DB8:0::1].:443"), host_port("[2001:db8::1]:443"));
        for mapped in ["[::ffff:192.0.2.1]:443", "[::FFFF:c000:201]:443", "[0:0:0:0:0:ffff:c000:201].:443"] {
            assert_eq!(host_port(mapped), host_port("192.0.2.1:443"), "{mapped}");
        }
        assert_ne!(host_port("[::192.0.2.1]:443"), host_port("192.0.2.1:443"));
        assert_ne!(host_port("shop.example.com:443"), host_port("shop.example.com:8443"));
        assert_ne!(host_port("shop.example.com..:443"), host_port("shop.example.com:443"));
        assert_eq!(host_port("shop.example.com"), None);
    }

    #[test]
    fn a_url_names_its_port_or_takes_that_of_its_scheme() {
        let port = |url: &str| TracedRequest::new("get", url).map(|it| (it.host, it.port, it.path));
        assert_eq!(port("http://a.example"), Ok(("a.example".into(), 80, "/".into())));
        assert_eq!(port("a.example/x?y=/z#w"), Ok(("a.example".into(), 443, "/x".into())));
        assert_eq!(port("https://[::1]:8443?q"), Ok(("::1".into(), 8443, "/".into())));
        assert_eq!(port("https://[2001:DB8:0::1]"), Ok(("2001:db8::1".into(), 443, "/".into())));
        assert_eq!(port("https://[::ffff:192.0.2.1]"), Ok(("192.0.2.1".into(), 443, "/".into())));
        assert_eq!(port("HTTP://A.example/%2e/../B#c"), Ok(("a.example".into(), 80, "/%2e/../B".into())));
        assert_eq!(port("a.example?from=http://b.example"), Ok(("a.example".into(), 443, "/".into())));
        assert_eq!(port("http://A.example.:8080/x"), Ok(("a.example".into(), 8080, "/x".into())));
        assert_eq!(port("a.example./x"), Ok(("a.example".into(), 443, "/x".into())));
        for bad in ["ftp://a.example", "https://user@a.example", "https://", "*.example.com/", "a.example:0"] {
            assert!(port(bad).is_err(), "{bad}");
        }
        for bad in
            ["", "/path", "a.example..", "a.example:", "a.example:x", "[::1", "a.example/x y", "https://a.example/\n"]
        {
            assert!(port(bad).is_err(), "{bad}");
        }
    }
}

//! The client for requests to other servers: webhooks, collectors of traces, other servers of edgewright, and gateways; and the one
//! parser for the URLs of servers.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ureq::config::{Config, ConfigBuilder};
use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error, Timeout};

/// The most addresses of a server that are tried: a resolver has room for no more.
const MOST_ADDRESSES: usize = 16;

/// Creates a client that trusts the authorities of the system.
pub(crate) fn agent(connect: Duration, response: Duration) -> Agent {
    agent_trusting(RootCerts::PlatformVerifier, connect, response)
}

/// Creates a client with timeouts for a connection and for a whole request. It returns responses of any status, and follows
/// no redirect, which could lead elsewhere.
pub(crate) fn agent_trusting(authorities: RootCerts, connect: Duration, response: Duration) -> Agent {
    let config = config(response).timeout_connect(Some(connect));
    config.tls_config(TlsConfig::builder().root_certs(authorities).build()).build().new_agent()
}

/// The settings of all clients, which trust the authorities of the system.
fn config(response: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .tls_config(TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build())
        .http_status_as_error(false)
        .timeout_global(Some(response))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("edgewright/", env!("CARGO_PKG_VERSION")))
}

/// Reads the authorities in a PEM file. An error states what is wrong with the file.
pub(crate) fn authorities(pem: &[u8]) -> Result<RootCerts, String> {
    let mut found = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => return Err("not valid PEM".to_owned()),
        }
    }
    if found.is_empty() { Err("no certificate found".to_owned()) } else { Ok(RootCerts::new_with_certs(&found)) }
}

/// Says why the file that SSL_CERT_FILE names has no authorities, if it has none: then no server is trusted.
fn authorities_fault(named: Option<OsString>) -> Option<String> {
    let path = PathBuf::from(named.filter(|path| !path.is_empty())?);
    let fault = match std::fs::read(&path) {
        Ok(pem) => authorities(&pem).err()?,
        Err(error) => error.to_string(),
    };
    Some(format!("SSL_CERT_FILE names {}: {fault}", path.display()))
}

/// Creates a client for requests to another server of the same store. It keeps so many idle connections.
pub(crate) fn server_agent(connect: Duration, response: Duration, connections: usize) -> Agent {
    // A proxy is for what is outside.
    let config = config(response).timeout_connect(Some(connect)).proxy(None).max_idle_connections(connections);
    config.max_idle_connections_per_host(connections).build().new_agent()
}

/// Creates a client that asks the server of this machine whether it is ready. It sends no secret, and it accepts any
/// certificate: the server's has its public name.
pub(crate) fn probe_agent(timeout: Duration) -> Agent {
    let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).disable_verification(true);
    // A proxy does not lead to this machine.
    config(timeout).proxy(None).tls_config(tls.build()).build().new_agent()
}

/// Creates a client that connects to these addresses, whatever the host of a URL is: a gateway is asked for the host of a
/// request, and has its certificate.
pub(crate) fn agent_at(addresses: Vec<SocketAddr>, timeout: Duration) -> Agent {
    let config = config(timeout).proxy(None).build();
    Agent::with_parts(config, DefaultConnector::default(), FixedAddresses(addresses))
}

/// Resolves every host to the same addresses.
#[derive(Debug)]
struct FixedAddresses(Vec<SocketAddr>);

impl Resolver for FixedAddresses {
    fn resolve(&self, _uri: &Uri, _config: &Config, _timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        if self.0.is_empty() {
            return Err(Error::HostNotFound);
        }
        let mut addresses = self.empty();
        self.0.iter().take(MOST_ADDRESSES).for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

/// Whether the answer to the beginning of TLS was no message of TLS, such as one of HTTP.
fn is_without_tls(error: &io::Error) -> bool {
    let invalid = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    tls_error(error) == Some(&invalid)
}

/// Describes why a request failed, or returns none if the error can contain the URL.
fn reason(error: &Error) -> Option<String> {
    match error {
        Error::Io(error) if is_without_tls(error) => Some("the server does not speak TLS: use http://".to_owned()),
        Error::Io(io) if is_unknown_issuer(error) => {
            let fault = authorities_fault(std::env::var_os("SSL_CERT_FILE"));
            Some(fault.map_or_else(|| io.to_string(), |fault| format!("{io} ({fault})")))
        }
        Error::Io(error) => Some(error.to_string()),
        Error::Timeout(_) => Some("no response in time".to_owned()),
        Error::HostNotFound => Some("host not found".to_owned()),
        Error::ConnectionFailed => Some("connection failed".to_owned()),
        _ => None,
    }
}

/// Describes why a request failed, for a message that shows the URL.
pub(crate) fn reason_with_url(error: &Error) -> String {
    reason(error).unwrap_or_else(|| error.to_string())
}

/// Describes why a request failed, without the URL, which can be a secret.
pub(crate) fn reason_without_url(error: &Error) -> String {
    reason(error).unwrap_or_else(|| "the request failed".to_owned())
}

/// Whether a request failed because the certificate of the server is from an authority that is not trusted.
pub(crate) fn is_unknown_issuer(error: &Error) -> bool {
    let unknown = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
    matches!(error, Error::Io(error) if tls_error(error) == Some(&unknown))
}

/// Parses the URL of a server, or says what is wrong with it: of another one, of this one as others reach it, or an origin (CORS). Which
/// schemes it can have is a rule of the caller.
pub(crate) fn server_url(text: &str) -> Result<Uri, &'static str> {
    let uri: Uri = text.parse().map_err(|_| "is not a URL")?;
    let authority = uri.authority().filter(|authority| !authority.host().is_empty()).ok_or("has no host")?;
    if authority.as_str().contains('@') {
        return Err("must not contain a user name or password");
    }
    // The parser takes any digits for a port.
    if authority.as_str() != authority.host() && authority.port_u16().is_none() {
        return Err("has no valid port");
    }
    Ok(uri)
}

/// Whether the host of a URL is this machine. Brackets can enclose an address.
pub(crate) fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a request failed before any of it was sent, so that it has had no effect.
pub(crate) fn was_not_sent(error: &Error) -> bool {
    match error {
        Error::HostNotFound | Error::ConnectionFailed | Error::BadUri(_) | Error::InvalidProxyUrl => true,
        Error::Timeout(timeout) => matches!(timeout, Timeout::Resolve | Timeout::Connect),
        // An established connection can also fail because a host or network is not reached any more.
        Error::Io(error) => match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::AddrNotAvailable => true,
            // The standard library has no kind for names that are not found.
            _ if error.to_string().starts_with("failed to lookup address information") => true,
            // The certificate is checked before the request is sent, and without TLS it cannot be sent at all.
            _ => is_without_tls(error) || matches!(tls_error(error), Some(rustls::Error::InvalidCertificate(_))),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fails_at_the_connection_was_not_sent() {
        let io = |kind: ErrorKind| Error::Io(kind.into());
        for error in [Error::HostNotFound, Error::Timeout(Timeout::Connect), io(ErrorKind::ConnectionRefused)] {
            assert!(was_not_sent(&error), "{error}");
        }
        for error in
            [Error::Timeout(Timeout::Global), io(ErrorKind::HostUnreachable), io(ErrorKind::NetworkUnreachable)]
        {
            assert!(!was_not_sent(&error), "{error}");
        }
        for error in [io(ErrorKind::ConnectionReset), io(ErrorKind::UnexpectedEof)] {
            assert!(!was_not_sent(&error), "{error}");
        }
    }

    #[test]
    fn only_a_loopback_address_is_this_machine() {
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.0.0.2", "[::1]", "::1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["edge.example.com", "localhost.example.com", "10.0.0.1", "[fe80::1]", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn authorities_are_certificates_in_pem() {
        for (text, reason) in [("", "no certificate found"), ("no PEM at all", "no certificate found")] {
            assert_eq!(authorities(text.as_bytes()).err().as_deref(), Some(reason));
        }
        let torn = "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";
        assert!(authorities(torn.as_bytes()).is_err());
    }

    #[test]
    fn a_file_of_authorities_that_is_missing_is_named() {
        let fault = |named: Option<&str>| authorities_fault(named.map(OsString::from));
        let missing = fault(Some("/nowhere/ca.pem")).unwrap_or_default();
        assert!(missing.starts_with("SSL_CERT_FILE names /nowhere/ca.pem: No such file"), "{missing}");
        assert_eq!([fault(None), fault(Some(""))], [None, None]);
    }

    #[test]
    fn a_url_is_shown_only_where_it_may_be() {
        let error = Error::BadUri("https://hooks.example.com/secret".to_owned());
        assert_eq!(reason_without_url(&error), "the request failed");
        assert!(reason_with_url(&error).contains("/secret"));
        let refused = Error::Io(std::io::Error::other("refused"));
        assert_eq!([reason_with_url(&refused), reason_without_url(&refused)], ["refused", "refused"]);
    }
}

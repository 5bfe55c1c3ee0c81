//! The options of `serve` for its listening socket: the address, TLS, and the limits of connections (D97).

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use clap::ValueEnum;

use crate::cli::input::durations::{INTERVALS, duration};
use crate::cli::prelude::*;
use crate::server::{ConnectionLimits, Server, Tls, TlsFiles, bind};

const ADDRESS: &str = "127.0.0.1:8484";

/// The options of the listening socket.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = help::CONNECTION)]
pub(super) struct ListenArgs {
    /// Address to listen on; port 0 picks a free port (default: 127.0.0.1:8484, or the address of the socket that systemd
    /// passes). Addresses other than loopback require TLS.
    #[arg(long, value_name = "ADDR", env = "EDGEWRIGHT_LISTEN")]
    listen: Option<String>,
    /// PEM file with the certificate chain for TLS, leaf first. Reloaded when it changes.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// PEM file with certificate authorities. Clients need a certificate from one of them.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_TLS_CLIENT_CA")]
    pub(super) tls_client_ca: Option<PathBuf>,
    /// Whether clients need a certificate if --tls-client-ca is set. With `optional`, those without one need a token.
    #[arg(long, value_name = "WHEN", env = "EDGEWRIGHT_TLS_CLIENT_AUTH", value_enum, default_value_t = ClientAuth::Required)]
    tls_client_auth: ClientAuth,
    /// Allow HTTP without TLS on addresses other than loopback. Tokens and secrets can then be read on the network.
    #[arg(long, env = "EDGEWRIGHT_INSECURE_HTTP")]
    insecure_http: bool,
    /// Maximum number of connections (default: from the limit of open files, at most 4096).
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_MAX_CONNECTIONS", value_parser = at_least_one)]
    max_connections: Option<usize>,
    /// Maximum number of connections of one IP address (default: half of all, and no limit for loopback).
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_MAX_CONNECTIONS_PER_ADDRESS", value_parser = at_least_one)]
    max_connections_per_address: Option<usize>,
    /// Time to receive the headers of a request, and for a TLS handshake.
    #[arg(long, value_name = "DURATION", env = "EDGEWRIGHT_HEAD_TIMEOUT", default_value = "15s", value_parser = time)]
    head_timeout: Duration,
    /// Time that a connection may stay open without a request.
    #[arg(long, value_name = "DURATION", env = "EDGEWRIGHT_IDLE_TIMEOUT", default_value = "60s", value_parser = time)]
    idle_timeout: Duration,
    /// Time that a client may stop reading a response.
    #[arg(long, value_name = "DURATION", env = "EDGEWRIGHT_STALL_TIMEOUT", default_value = "30s", value_parser = time)]
    stall_timeout: Duration,
}

/// Whether clients need a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClientAuth {
    Required,
    Optional,
}

impl ListenArgs {
    /// Binds the address, unless a service manager has passed a socket, and loads what TLS needs.
    pub(super) fn bind(&self, passed: Option<TcpListener>) -> Result<(Server, Option<Arc<Tls>>), Failure> {
        let tls = self.files()?.map(Tls::load).transpose()?;
        let mut server = match passed {
            Some(socket) => self.take_over(socket)?,
            None => {
                let listen = self.listen.as_deref().unwrap_or(ADDRESS);
                bind(listen).map_err(|error| {
                    let help = match error.kind() {
                        ErrorKind::AddrInUse => {
                            "another program uses the port, perhaps another `edgewright serve`: stop it, or set --listen to a \
                             free port; `127.0.0.1:0` picks one"
                        }
                        _ => "set --listen to an IP address and a free port; `127.0.0.1:0` picks one",
                    };
                    Diagnostic::error(Code::CannotListen, format!("cannot listen on {listen}: {error}")).help(help)
                })?
            }
        };
        let address = server.address().map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?;
        if tls.is_none() && !self.insecure_http && !address.ip().to_canonical().is_loopback() {
            let message = format!("{address} is not a loopback address, and tokens would be sent without TLS");
            let fault = Diagnostic::error(Code::InsecureTransport, message);
            return Err(fault
                .help("set --tls-cert and --tls-key, or --insecure-http if the network is trusted")
                .into());
        }
        // The limit of open files is raised by now.
        let defaults = ConnectionLimits::default();
        server.limits = ConnectionLimits {
            most: self.max_connections.unwrap_or(defaults.most),
            most_per_address: self.max_connections_per_address,
            head: self.head_timeout,
            idle: self.idle_timeout,
            stall: self.stall_timeout,
        };
        server.tls.clone_from(&tls);
        Ok((server, tls))
    }

    /// Serves on the socket of a service manager. If `--listen` is set, the operator and `edgewright healthcheck` go by it, so
    /// it must not say something else.
    fn take_over(&self, socket: TcpListener) -> Result<Server, Failure> {
        let unusable = |error: std::io::Error| {
            Diagnostic::error(Code::CannotListen, format!("cannot listen on the passed socket: {error}"))
        };
        let address = socket.local_addr().map_err(unusable)?;
        if let Some(listen) = &self.listen
            && !names(listen, address)
        {
            let message = format!("the passed socket listens on {address}, but `--listen` is {}", escaped(listen));
            return Err(Diagnostic::error(Code::CannotListen, message)
                .help("set ListenStream= of the socket unit to the same address, or unset --listen")
                .into());
        }
        tracing::info!("Using the socket that the service manager has passed.");
        Server::listening_on(socket).map_err(|error| unusable(error).into())
    }

    /// The files of TLS, if it is on. Fails if an option lacks another one.
    pub(super) fn files(&self) -> Result<Option<TlsFiles>, Failure> {
        let missing = |set: &str, missing: &str| {
            let fault = Diagnostic::error(Code::Parameter, format!("`{set}` requires `{missing}`"));
            Failure::from(fault.help("set both --tls-cert and --tls-key for TLS"))
        };
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: self.tls_client_ca.clone(),
                clients_are_optional: self.tls_client_auth == ClientAuth::Optional,
            })),
            (Some(_), None) => Err(missing("--tls-cert", "--tls-key")),
            (None, Some(_)) => Err(missing("--tls-key", "--tls-cert")),
            (None, None) if self.tls_client_ca.is_some() => Err(missing("--tls-client-ca", "--tls-cert")),
            (None, None) => Ok(None),
        }
    }
}

/// Whether `--listen` can mean an address: port 0 means any port.
fn names(listen: &str, address: SocketAddr) -> bool {
    let is_it = |named: SocketAddr| {
        named.ip().to_canonical() == address.ip().to_canonical() && [0, address.port()].contains(&named.port())
    };
    listen.to_socket_addrs().is_ok_and(|mut named| named.any(is_it))
}

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number greater than 0".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    let is_valid = INTERVALS.contains(&time);
    is_valid.then_some(time).ok_or_else(|| "expected a duration between 1 second and 24 hours".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_address_must_be_that_of_the_passed_socket() {
        let cases = [
            ("127.0.0.1:8484", "127.0.0.1:8484", true),
            ("127.0.0.1:0", "127.0.0.1:8484", true),
            ("127.0.0.1:8484", "[::ffff:127.0.0.1]:8484", true),
            ("[::1]:8484", "[::1]:8484", true),
            ("127.0.0.1:8485", "127.0.0.1:8484", false),
            ("127.0.0.1:8484", "0.0.0.0:8484", false),
            ("0.0.0.0:8484", "127.0.0.1:8484", false),
            ("8484", "127.0.0.1:8484", false),
        ];
        for (listen, address, expected) in cases {
            assert_eq!(names(listen, address.parse().unwrap()), expected, "{listen} {address}");
        }
    }
}

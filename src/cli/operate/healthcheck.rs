//! `edgewright healthcheck`: the probe of containers and scripts.

use std::net::SocketAddr;

use crate::cli::command_prelude::*;
use crate::cli::input::durations::duration;
use crate::cli::serve::on_this_machine;
use crate::http_client;

/// The most bytes of a response that are read.
const MOST_BYTES: u64 = 64 << 10;

/// Check that the server of this machine is ready.
///
/// Asks `/readyz` at the address that `serve` listens on. The options have the same names as those of `serve`, so that
/// the same variables and configuration file apply. Exits with code 0 if the server is ready, and with code 1
/// otherwise. Needs no token.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address that the server listens on; `0.0.0.0` and `[::]` stand for this machine.
    #[arg(long, value_name = "ADDR", env = "EDGEWRIGHT_LISTEN", default_value = "127.0.0.1:8484")]
    listen: String,
    /// The server's certificate. If it is set, the check uses TLS.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Time to wait for the response.
    #[arg(long, value_name = "DURATION", env = "EDGEWRIGHT_HEALTHCHECK_TIMEOUT", default_value = "5s", value_parser = duration)]
    timeout: Duration,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let scheme = if self.tls_cert.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}/readyz", reachable(&self.listen));
        let response = http_client::probe_agent(self.timeout).get(&url).call();
        let response = response.map_err(|error| {
            let reason = http_client::reason_with_url(&error);
            Failure::from(
                Diagnostic::error(Code::Unreadable, format!("cannot reach {}: {}", escaped(&url), escaped(&reason)))
                    .help("check that the server is running, and that --listen is its address"),
            )
        })?;
        let status = response.status().as_u16();
        let body = response.into_body().into_with_config().limit(MOST_BYTES).read_to_string().unwrap_or_default();
        if status == 200 {
            let lines: Vec<String> = body.lines().map(|line| format!("{}\n", escaped(line))).collect();
            return print(lines.concat());
        }
        let reason = serde_json::from_str::<Value>(&body).ok();
        let reason = reason.as_ref().and_then(|error| error.get("msg")).and_then(Value::as_str);
        let reason = reason.map_or_else(|| format!("status {status}"), |reason| escaped(reason).into_owned());
        let fault = Diagnostic::error(Code::Unavailable, format!("the server is not ready: {reason}"));
        Err(match status {
            // A port with TLS answers so to plain HTTP, and `/readyz` to nobody.
            400 => fault.help("set EDGEWRIGHT_CONFIG or --tls-cert as for `serve`").into(),
            _ => fault.into(),
        })
    }
}

/// The address at which this machine reaches a server that listens on `listen`.
fn reachable(listen: &str) -> String {
    let address = listen.parse::<SocketAddr>();
    address.map_or_else(|_| listen.to_owned(), |address| on_this_machine(address).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_stand_for_all_are_reached_at_loopback() {
        let cases = [
            ("0.0.0.0:8484", "127.0.0.1:8484"),
            ("[::]:1", "[::1]:1"),
            ("10.0.0.7:8484", "10.0.0.7:8484"),
            ("localhost:8484", "localhost:8484"),
        ];
        for (listen, expected) in cases {
            assert_eq!(reachable(listen), expected);
        }
    }
}

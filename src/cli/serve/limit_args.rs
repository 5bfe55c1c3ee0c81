//! The options of `serve` that limit requests, and its security log (D98, D99).

use super::listen::at_least_one;
use crate::cli::prelude::*;
use crate::server::http::cors::CorsOrigin;
use crate::server::http::proxy::Network;
use crate::server::limits::guards::{DEFAULT_IN_FLIGHT, GuardSettings};
use crate::server::telemetry::security::{self, SECURITY_LOG, SecurityLog, SecurityLogThread};

#[derive(Debug, clap::Args)]
pub(super) struct LimitArgs {
    /// Origin of web pages that may call the API from a browser, such as `https://console.example.com`; `*` for all.
    /// Repeatable.
    #[arg(help_heading = help::REQUESTS)]
    #[arg(long, value_name = "ORIGIN", env = "EDGEWRIGHT_CORS_ORIGIN", value_delimiter = ',')]
    cors_origin: Vec<CorsOrigin>,
    /// Maximum number of concurrent requests; further ones get 503.
    #[arg(help_heading = help::REQUESTS, value_parser = at_least_one)]
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_MAX_REQUESTS", default_value_t = DEFAULT_IN_FLIGHT)]
    max_requests: usize,
    /// Maximum number of requests per second and API key, with bursts of twice as many; further ones get 429. 0 sets no
    /// limit.
    #[arg(help_heading = help::REQUESTS, long, value_name = "N", env = "EDGEWRIGHT_RATE_LIMIT", default_value_t = 0)]
    rate_limit: u32,
    /// Address or network of a reverse proxy, such as `10.0.0.0/8`, whose `X-Forwarded-For` names the client in limits and
    /// in the security log. Repeatable.
    #[arg(help_heading = help::REQUESTS)]
    #[arg(long, value_name = "CIDR", env = "EDGEWRIGHT_TRUSTED_PROXY", value_delimiter = ',')]
    trusted_proxy: Vec<Network>,
    /// Security log (default: `security.log` in the store's folder).
    #[arg(help_heading = help::LOG, long, value_name = "FILE", env = "EDGEWRIGHT_SECURITY_LOG")]
    security_log: Option<PathBuf>,
}

impl LimitArgs {
    /// The limits of a server with so many connections. Half of these can wait for bodies: others could not connect.
    pub(super) fn settings(&self, connections: usize) -> GuardSettings {
        GuardSettings {
            cors_origins: self.cors_origin.clone(),
            most_in_flight: self.max_requests,
            most_bodies: self.max_requests.min(connections / 2),
            rate: self.rate_limit,
            slows_failures: true,
            trusted_proxies: self.trusted_proxy.clone(),
        }
    }

    /// Opens the security log. A store in memory or in a database has none by default.
    pub(super) fn open_log(&self, store: &Store) -> Result<Option<(SecurityLog, SecurityLogThread)>, Failure> {
        let in_folder = || store.sidecar_location().map(|store| store.folder.join(SECURITY_LOG));
        let Some(path) = self.security_log.clone().or_else(in_folder) else {
            if store.sidecars().is_some() {
                tracing::warn!(
                    "There is no security log: a store in a database has no folder for it. Set --security-log."
                );
            }
            return Ok(None);
        };
        security::open(&path).map(Some).map_err(|error| {
            unusable(&path, &error, "set --security-log to a file that the server can write and no other process uses")
        })
    }
}

pub(crate) fn unusable(path: &Path, error: &std::io::Error, help: &str) -> Failure {
    let message = format!("cannot open the security log `{}`: {error}", path.display());
    Diagnostic::error(Code::Unreadable, message).help(help).into()
}

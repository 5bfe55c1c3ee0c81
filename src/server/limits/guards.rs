//! Protection of the API from too many requests and from other web sites: limits, CORS and safe headers (D98).

use axum::extract::ConnectInfo;

use super::authentication_failures::Failures;
use super::bodies::{BodyLimits, MOST_BYTES};
use super::in_flight::InFlight;
use super::rate_limit::RateLimiter;
use crate::server::auth::caller::Caller;
use crate::server::http::api_error::{ApiError, REQUEST_ID};
use crate::server::http::cors::{Cors, CorsOrigin};
use crate::server::http::proxy::{ClientAddress, Network, subnet_of};
use crate::server::prelude::*;
use crate::server::replicas::forwarded_client::ForwardedClient;
use crate::server::telemetry::request_labels::known_method;
use crate::server::telemetry::security::SecurityLog;
use crate::server::telemetry::security::event::{SecurityEvent, SecurityRecord};
use crate::server::telemetry::security::note::SecurityNote;

pub(in crate::server) use super::bodies::{Reception, SHED};
pub(crate) use super::in_flight::DEFAULT_IN_FLIGHT;
pub(in crate::server) use super::in_flight::RequestPlace;

/// The counters of what is limited.
pub(crate) const RATE_LIMITED: &str = "edgewright_rate_limited_requests_total";
pub(crate) const FAILED: &str = "edgewright_authentication_failures_total";

/// The header with the address of the client, which only this process writes: every place that checks a token gets the
/// headers of the request, also long after it has begun.
pub(in crate::server) const CLIENT: &str = "edgewright-client-address";

/// The address of the client that [`Guards::note_client`] has noted, if it is known.
pub(crate) fn client_of(headers: &HeaderMap) -> Option<IpAddr> {
    headers.get(CLIENT)?.to_str().ok()?.parse().ok()
}

/// What stands for the owner of a request of which nobody knows more than its address.
pub(in crate::server) fn owner_by_address(headers: &HeaderMap) -> Option<Id> {
    client_of(headers).map(|address| Id::new(&format!("address:{}", subnet_of(address))))
}

/// The settings of a server's limits.
#[derive(Debug, Clone)]
pub(crate) struct GuardSettings {
    /// The origins of web pages that may call the API.
    pub cors_origins: Vec<CorsOrigin>,
    /// The requests that are handled at a time.
    pub most_in_flight: usize,
    /// The bodies that are received at a time.
    pub most_bodies: usize,
    /// The requests of an API key in a second; 0 for no limit.
    pub rate: u32,
    /// Whether failed authentication is slowed down per address.
    pub slows_failures: bool,
    /// The proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<Network>,
}

impl Default for GuardSettings {
    fn default() -> Self {
        Self {
            cors_origins: Vec::new(),
            most_in_flight: DEFAULT_IN_FLIGHT,
            most_bodies: DEFAULT_IN_FLIGHT,
            rate: 0,
            // Programs that embed the API may answer for many clients without their addresses.
            slows_failures: false,
            trusted_proxies: Vec::new(),
        }
    }
}

/// The refusal of a change by an owner who has filled its share of the history.
pub(crate) fn share_exhausted(caller: &Caller, wait: Duration) -> ApiError {
    let owner = &caller.owner;
    let message =
        format!("{owner} has used up its share of the history: more changes would displace the records of others");
    rate_limited(caller, "history of the owner", &message, wait.as_secs().saturating_add(1))
}

fn rate_limited(caller: &Caller, reason: &'static str, message: &str, seconds: u64) -> ApiError {
    metrics::counter!(RATE_LIMITED).increment(1);
    let note = caller.note(SecurityEvent::RateLimited, reason);
    ApiError::with_code(Code::RateLimited, message).retry_after(seconds).noted(note)
}

/// The limits of a server, and where it logs what they refuse.
pub(crate) struct Guards {
    pub(crate) cors: Cors,
    pub(crate) in_flight: Arc<InFlight>,
    failures: Option<Failures>,
    rate_limiter: RateLimiter,
    trusted: Vec<Network>,
    pub(crate) log: Option<SecurityLog>,
}

/// A request as the security log names it.
#[derive(Clone, Copy)]
pub(crate) struct RequestOrigin {
    client: Option<ClientAddress>,
    method: &'static str,
}

impl RequestOrigin {
    /// The address that the request counts for: a /64 for IPv6.
    pub(crate) fn subnet(&self) -> Option<IpAddr> {
        self.client.map(|client| subnet_of(client.address))
    }
}

impl Guards {
    /// Creates the limits.
    pub(crate) fn new(settings: GuardSettings, log: Option<SecurityLog>) -> Self {
        Self {
            cors: Cors(settings.cors_origins),
            in_flight: InFlight::new(
                settings.most_in_flight,
                BodyLimits { most: settings.most_bodies, bytes: MOST_BYTES },
            ),
            failures: settings.slows_failures.then(Failures::default),
            rate_limiter: RateLimiter::new(settings.rate),
            trusted: settings.trusted_proxies,
            log,
        }
    }

    /// Takes a request of an API key from its limit, unless it was taken before it had to wait.
    pub(crate) fn take(&self, caller: &Caller) -> Result<(), ApiError> {
        if RequestPlace::was_counted() {
            return Ok(());
        }
        let message = "too many requests with this API key";
        self.rate_limiter
            .take(&caller.identity())
            .map_err(|seconds| rate_limited(caller, "requests of the key", message, seconds))
    }

    /// Notes in a request where it comes from, whatever it says itself, and returns it.
    pub(crate) fn note_client(&self, request: &mut Request) -> RequestOrigin {
        let origin = self.origin(request);
        let noted = origin.client.and_then(|client| HeaderValue::from_str(&client.address.to_string()).ok());
        request.headers_mut().remove(CLIENT);
        if let Some(noted) = noted {
            request.headers_mut().insert(CLIENT, noted);
        }
        origin
    }

    /// Where a request comes from.
    pub(crate) fn origin(&self, request: &Request) -> RequestOrigin {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        let client = match request.extensions().get::<ForwardedClient>() {
            // The other server has the connection of the client.
            Some(ForwardedClient { address, .. }) => {
                let proxy = peer.map(|peer| peer.to_canonical());
                address.map(|address| ClientAddress { address, proxy })
            }
            None => peer.map(|peer| ClientAddress::resolve(peer, request.headers(), &self.trusted)),
        };
        RequestOrigin { client, method: known_method(request.method()) }
    }

    /// Slows down the answer to a request that failed to authenticate. Returns another answer if there were too many. A
    /// request with a valid token never gets here, whatever else comes from its address.
    pub(crate) async fn slow_down(&self, origin: &RequestOrigin) -> Option<ApiError> {
        metrics::counter!(FAILED).increment(1);
        match (&self.failures, origin.client) {
            (Some(failures), Some(client)) => failures.slow_down(client.address).await,
            _ => None,
        }
    }

    /// Logs what a request was refused, or has changed of keys and owners.
    pub(crate) fn log(&self, note: SecurityNote, origin: &RequestOrigin, response: &Response) {
        let Some(log) = &self.log else { return };
        let request_id = response.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let status = response.status().as_u16();
        for record in note.0 {
            log.write(SecurityRecord {
                at: Timestamp::now(),
                peer: origin.client.map(|client| client.address),
                through: origin.client.and_then(|client| client.proxy),
                method: Some(origin.method),
                status: Some(status),
                request_id: request_id.map(str::to_owned),
                ..record
            });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::body::Body;

    use super::*;
    use crate::server::telemetry::security;
    use crate::server::telemetry::security::verification;

    #[test]
    fn a_line_has_the_time_of_the_response() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("security.log");
        let (log, thread) = security::open(&path).unwrap();
        let guards = Guards::new(GuardSettings::default(), Some(log));
        let noted = SecurityRecord { at: Timestamp::UNIX_EPOCH, ..SecurityRecord::new(SecurityEvent::KeyDeleted) };
        let origin = guards.origin(&Request::new(Body::empty()));
        guards.log(SecurityNote(vec![noted]), &origin, &StatusCode::OK.into_response());
        drop(thread);
        let lines = verification::read(&path).unwrap().lines;
        let (_, line) = lines.iter().find(|(event, _)| event == "key_deleted").unwrap();
        assert!(!line.contains("1970-"), "{line}");
    }

    #[test]
    fn nobody_else_notes_the_address_of_a_client() {
        let guards = Guards::new(GuardSettings::default(), None);
        let mut request = Request::new(Body::empty());
        request.headers_mut().append(CLIENT, HeaderValue::from_static("10.0.0.1"));
        guards.note_client(&mut request);
        assert_eq!(client_of(request.headers()), None);
        request.headers_mut().append(CLIENT, HeaderValue::from_static("10.0.0.1"));
        request.headers_mut().append(CLIENT, HeaderValue::from_static("10.0.0.2"));
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4000))));
        guards.note_client(&mut request);
        assert_eq!(client_of(request.headers()), Some(IpAddr::from([192, 0, 2, 7])));
        assert_eq!(request.headers().get_all(CLIENT).iter().count(), 1);
    }
}

//! The header with which a server says for whom it forwards a request (D115).
//!
//! The MAC is made with a key that the servers of a store derive from its newest data key. It covers the method, the path with the
//! query, the token or the cookies and the body of the request, and the time: whoever sees the header can do nothing with it that
//! the request did not do, and only for a minute. A request with a header that does not verify is refused. If it were ignored, a
//! server with a wrong clock would make changes in the name of its own address.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;

use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use crate::server::telemetry::security::event::SecurityEvent;
use crate::server::telemetry::security::note::SecurityNote;

/// The header.
pub(super) const FORWARDED: &str = "edgewright-forwarded";
/// How many seconds the clocks of two servers may differ, with the time that a request takes.
const VALIDITY: u64 = 60;
/// Marks a cookie, which is not a token.
const COOKIE: &[u8] = b"cookie";
/// Stands for an unknown address or certificate.
const NONE: &str = "-";

/// The client of a forwarded request, as the server knows it that has the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct ForwardedClient {
    /// The address of the client.
    pub(in crate::server) address: Option<IpAddr>,
    /// The name in its certificate that stands for an owner, if it has no token.
    pub(super) certificate: Option<String>,
}

/// The key of the MACs.
pub(super) struct ForwardingKey(Arc<Store>);

impl ForwardingKey {
    /// The key of a store.
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self(store)
    }

    /// The keys, the one that signs first. A server may not have read the newest data key yet.
    fn keys(&self) -> impl Iterator<Item = [u8; 32]> {
        let derived = |secret: [u8; 32]| blake3::derive_key("edgewright 2026 forwarded requests", &secret);
        self.0.passing_secrets().into_iter().map(derived)
    }

    /// Signs a request, of which `headers` and a body with this digest are sent. Returns none if the name in the certificate cannot
    /// be part of a header.
    pub(super) fn sign(
        &self,
        (method, uri): (&Method, &Uri),
        headers: &HeaderMap,
        body: &blake3::Hash,
        client: &ForwardedClient,
        at: Timestamp,
    ) -> Option<HeaderValue> {
        let address = client.address.map_or_else(|| NONE.to_owned(), |address| address.to_string());
        let certificate = client.certificate.as_deref().unwrap_or(NONE);
        let said = format!("{} {body} {address} {certificate}", at.as_second());
        let mac = mac(&self.keys().next()?, (method, uri), headers, &said);
        let mut value = HeaderValue::from_str(&format!("{said} {mac}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Takes the header from a request, if it has one, and returns it with the digest that the body must have. Returns an error
    /// unless a server of this store has made it.
    pub(super) fn take<B>(
        &self,
        request: &mut Request<B>,
        now: Timestamp,
    ) -> Result<Option<(ForwardedClient, blake3::Hash)>, ApiError> {
        let Some(value) = request.headers_mut().remove(FORWARDED) else { return Ok(None) };
        let verified = value.to_str().ok().and_then(|text| {
            let (said, mac) = text.rsplit_once(' ')?;
            let mac = blake3::Hash::from_hex(mac).ok()?;
            // Compared in constant time.
            let what = (request.method(), request.uri());
            let is_signed = self.keys().any(|key| self::mac(&key, what, request.headers(), said) == mac);
            is_signed.then(|| ForwardedClient::parse(said, now)).flatten()
        });
        verified.map(Some).ok_or_else(forged)
    }
}

fn mac(key: &[u8; 32], (method, uri): (&Method, &Uri), headers: &HeaderMap, said: &str) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(key);
    let tokens = headers.get_all(header::AUTHORIZATION).iter().map(HeaderValue::as_bytes);
    // The session of a form of the dashboard.
    let cookies = headers.get_all(header::COOKIE).iter().flat_map(|value| [COOKIE, value.as_bytes()]);
    let parts = [method.as_str(), path_of(uri), said].map(str::as_bytes);
    for part in parts.into_iter().chain(tokens).chain(cookies) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

impl ForwardedClient {
    /// The client and the digest of the body.
    fn parse(said: &str, now: Timestamp) -> Option<(Self, blake3::Hash)> {
        let (at, rest) = said.split_once(' ')?;
        let (body, client) = rest.split_once(' ')?;
        let (address, certificate) = client.split_once(' ')?;
        let (at, body): (i64, _) = (at.parse().ok()?, blake3::Hash::from_hex(body).ok()?);
        let certificate = Some(certificate.to_owned()).filter(|name| name != NONE);
        let client = Self { address: address.parse().ok(), certificate };
        (at.abs_diff(now.as_second()) <= VALIDITY).then_some((client, body))
    }
}

/// The path of a URL with its query.
pub(super) fn path_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", PathAndQuery::as_str)
}

/// The error of a request whose header is not believed. The server that has forwarded it knows it by the header.
pub(super) fn forged() -> ApiError {
    let message = "the header `Edgewright-Forwarded` was not made by a server of this store within the last minute";
    let help = "remove the header; if a server has forwarded the request, set the clocks of both servers";
    ApiError::new(Fault::new(Code::Unauthenticated, message).help(help))
        .header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
        .header(header::HeaderName::from_static(FORWARDED), HeaderValue::from_static("refused"))
        .noted(SecurityNote::new(SecurityEvent::AuthenticationFailed, "forged forwarding", None))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::MEMORY;

    fn key() -> ForwardingKey {
        ForwardingKey::new(Arc::new(Store::open(MEMORY).unwrap()))
    }

    fn request(method: &str, uri: &str, token: Option<&str>) -> Request<()> {
        let request = Request::builder().method(method).uri(uri);
        let request = token.into_iter().fold(request, |request, token| request.header("Authorization", token));
        request.body(()).unwrap()
    }

    #[test]
    fn who_a_request_is_forwarded_for_is_known_from_the_servers_of_the_store_alone() {
        let (key, now, body) = (key(), Timestamp::now(), blake3::hash(b"{}"));
        for (address, certificate) in [
            (Some(IpAddr::from([192, 0, 2, 7])), None),
            (Some("2001:db8::1".parse().unwrap()), Some("uri:spiffe://a/b".to_owned())),
            (None, None),
        ] {
            let client = ForwardedClient { address, certificate };
            let sent = request("PATCH", "https://edge.example.com/owners/usr_a?x=1", Some("Bearer a"));
            let value = key.sign((sent.method(), sent.uri()), sent.headers(), &body, &client, now).unwrap();
            let taken = |key: &ForwardingKey, method: &str, uri: &str, token: Option<&str>, at: Timestamp| {
                let mut request = request(method, uri, token);
                request.headers_mut().insert(FORWARDED, value.clone());
                let taken = key.take(&mut request, at).map_err(|error| error.code());
                assert!(!request.headers().contains_key(FORWARDED));
                taken
            };
            let path = "/owners/usr_a?x=1";
            assert_eq!(taken(&key, "PATCH", path, Some("Bearer a"), now), Ok(Some((client, body))));
            let refused = Err(Code::Unauthenticated);
            assert_eq!(taken(&self::key(), "PATCH", path, Some("Bearer a"), now), refused);
            assert_eq!(taken(&key, "DELETE", path, Some("Bearer a"), now), refused);
            assert_eq!(taken(&key, "PATCH", "/owners/usr_b?x=1", Some("Bearer a"), now), refused);
            assert_eq!(taken(&key, "PATCH", "/owners/usr_a", Some("Bearer a"), now), refused);
            assert_eq!(taken(&key, "PATCH", path, Some("Bearer b"), now), refused);
            assert_eq!(taken(&key, "PATCH", path, None, now), refused);
            for skew in [-61, 61] {
                let at = Timestamp::from_second(now.as_second() + skew).unwrap();
                assert_eq!(taken(&key, "PATCH", path, Some("Bearer a"), at), refused, "{skew}");
            }
        }
    }

    #[test]
    fn the_session_of_a_form_is_covered_as_a_token_is() {
        let (key, now) = (key(), Timestamp::now());
        let with = |name: header::HeaderName, value: &'static str| {
            let mut request = request("POST", "/ui/sources/shop/sync", None);
            request.headers_mut().insert(name, HeaderValue::from_static(value));
            request
        };
        let sent = with(header::COOKIE, "a=b");
        let client = ForwardedClient { address: None, certificate: None };
        let body = blake3::hash(b"");
        let value = key.sign((sent.method(), sent.uri()), sent.headers(), &body, &client, now).unwrap();
        let is_taken = |mut request: Request<()>| {
            request.headers_mut().insert(FORWARDED, value.clone());
            key.take(&mut request, now).is_ok()
        };
        assert!(is_taken(with(header::COOKIE, "a=b")));
        assert!(!is_taken(with(header::COOKIE, "a=c")) && !is_taken(with(header::AUTHORIZATION, "a=b")));
        assert!(!is_taken(request("POST", "/ui/sources/shop/sync", None)));
    }

    #[test]
    fn a_header_of_a_stranger_is_refused() {
        let key = key();
        assert_eq!(key.take(&mut request("GET", "/edges/https", None), Timestamp::now()).ok(), Some(None));
        let (now, hash) = (Timestamp::now().as_second(), "0".repeat(64));
        for forged in ["", "-", "1 192.0.2.7 -", &format!("{now} {hash} 192.0.2.7 - {hash}")] {
            let mut request = request("GET", "/edges/https", None);
            request.headers_mut().insert(FORWARDED, HeaderValue::from_str(forged).unwrap());
            assert!(key.take(&mut request, Timestamp::now()).is_err(), "{forged}");
        }
    }
}

//! What stands for a token in the request of the API that a form of the dashboard means (D116).
//!
//! A form does what a request of the API does, through the same handlers, and these take who asks from the headers, some of them
//! again inside the commit. A browser sends no token. So the request gets a header that only a server of the store can write: it
//! has the session and the time, sealed for this purpose alone, is sent to nobody, and begins a request for a minute only. A cookie
//! in its place counts for nothing, so whoever has one sees what pages show, and no more.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::session::{DashboardSession, SessionSealer};
use crate::server::http::api_error::ApiError;
use crate::server::limits::guards::CLIENT;
use crate::server::prelude::*;

/// The scheme of the header.
const SCHEME: &str = "Session ";
/// The purpose of what is sealed.
const PURPOSE: &str = "edgewright 2026 requests of dashboard sessions";
/// For how many seconds the header begins a request.
const VALIDITY: u64 = 60;

/// The content of the header.
#[derive(Serialize, Deserialize)]
struct SessionRequest {
    session: DashboardSession,
    /// The Unix time at which it was written.
    at: i64,
}

/// The headers of the request of the API that a form of a session stands for: who asks, and from where.
pub(in crate::server) fn request_headers(
    sealer: &SessionSealer,
    session: &DashboardSession,
    sent: &HeaderMap,
) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(client) = sent.get(CLIENT) {
        headers.insert(CLIENT, client.clone());
    }
    let mut value = sealed(sealer, session, clock::now()).ok_or_else(ApiError::internal)?;
    value.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

fn sealed(sealer: &SessionSealer, session: &DashboardSession, now: Timestamp) -> Option<HeaderValue> {
    let request = SessionRequest { session: session.clone(), at: now.as_second() };
    let sealed = sealer.seal_for(PURPOSE, &request)?;
    HeaderValue::from_str(&format!("{SCHEME}{}", URL_SAFE_NO_PAD.encode(sealed))).ok()
}

/// The session in the headers of a request that begins, if a server of the store has just written it there.
pub(super) fn new_session_in(sealer: &SessionSealer, headers: &HeaderMap, now: Timestamp) -> Option<DashboardSession> {
    let SessionRequest { session, at } = request_in(sealer, headers)?;
    (at.abs_diff(now.as_second()) <= VALIDITY).then_some(session)
}

/// The session in the headers of a request that was admitted before: it may have waited for long.
pub(super) fn session_in(sealer: &SessionSealer, headers: &HeaderMap) -> Option<DashboardSession> {
    Some(request_in(sealer, headers)?.session)
}

fn request_in(sealer: &SessionSealer, headers: &HeaderMap) -> Option<SessionRequest> {
    let sealed = URL_SAFE_NO_PAD.decode(sealed_in(headers)?).ok()?;
    sealer.open_for(PURPOSE, &sealed)
}

/// Whether a request has a header of this kind, which no other server may get.
pub(in crate::server) fn is_internal(headers: &HeaderMap) -> bool {
    sealed_in(headers).is_some()
}

fn sealed_in(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix(SCHEME)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::Secret;
    use crate::store::MEMORY;

    #[test]
    fn only_a_server_of_the_store_writes_the_header_and_a_cookie_is_none() {
        let [sealer, other] = [(); 2].map(|()| SessionSealer::new(Arc::new(Store::open(MEMORY).unwrap())));
        let session = DashboardSession::new(Id::new("ak_1"), &Secret::new("hash"));
        let mut sent = HeaderMap::new();
        sent.insert(CLIENT, HeaderValue::from_static("192.0.2.7"));
        sent.insert(header::COOKIE, HeaderValue::from_static("a=b"));
        let headers = request_headers(&sealer, &session, &sent).unwrap();
        assert_eq!(headers.len(), 2);
        assert!(is_internal(&headers) && !is_internal(&sent));
        assert!(session_in(&sealer, &headers).is_some_and(|found| found.key == session.key));
        assert!(session_in(&other, &headers).is_none() && session_in(&sealer, &sent).is_none());
        let after = |seconds: i64| Timestamp::from_second(clock::now().as_second() + seconds).unwrap();
        assert!(new_session_in(&sealer, &headers, after(0)).is_some());
        assert!(new_session_in(&sealer, &headers, after(VALIDITY as i64 + 5)).is_none());
        let cookie = sealer.seal(&session).unwrap();
        for value in [format!("{SCHEME}{cookie}"), SCHEME.to_owned(), format!("Bearer {cookie}")] {
            let mut forged = HeaderMap::new();
            forged.insert(header::AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
            assert!(session_in(&sealer, &forged).is_none(), "{value}");
        }
    }
}

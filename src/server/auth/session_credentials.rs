//! What stands for a token in the request of the API that a form of the dashboard means (D116).
//!
//! A form does what a request of the API does, through the same handlers, and these take who asks from the headers, some of them
//! again inside the commit. A browser sends no token. So the request gets a header that only a server of the store can write: it
//! has the session, sealed for this purpose alone, and is sent to nobody. A cookie in its place counts for nothing, so whoever
//! has one sees what pages show, and no more.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::session::DashboardSession;
use crate::server::http::api_error::ApiError;
use crate::server::limits::guards::CLIENT;
use crate::server::prelude::*;
use crate::store::seal::cipher;

/// The scheme of the header.
const SCHEME: &str = "Session ";
/// The purpose of the derived key.
const PURPOSE: &str = "edgewright 2026 requests of dashboard sessions";

/// The headers of the request of the API that a form of a session stands for: who asks, and from where.
pub(in crate::server) fn request_headers(
    store: &Store,
    session: &DashboardSession,
    sent: &HeaderMap,
) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(client) = sent.get(CLIENT) {
        headers.insert(CLIENT, client.clone());
    }
    let mut value = sealed(store, session).ok_or_else(ApiError::internal)?;
    value.set_sensitive(true);
    headers.insert(header::AUTHORIZATION, value);
    Ok(headers)
}

fn sealed(store: &Store, session: &DashboardSession) -> Option<HeaderValue> {
    let text = serde_json::to_vec(session).ok()?;
    let sealed = cipher::seal(&key_of(store), &cipher::context(PURPOSE, &[]), &text)?;
    HeaderValue::from_str(&format!("{SCHEME}{}", URL_SAFE_NO_PAD.encode(sealed))).ok()
}

/// The session in the headers of a request, if a server of the store has written it there.
pub(super) fn session_in(store: &Store, headers: &HeaderMap) -> Option<DashboardSession> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix(SCHEME)?;
    let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
    let opened = cipher::open(&key_of(store), &cipher::context(PURPOSE, &[]), &sealed)?;
    serde_json::from_slice(&opened).ok()
}

fn key_of(store: &Store) -> [u8; 32] {
    blake3::derive_key(PURPOSE, &store.root_secret())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::Secret;
    use crate::server::auth::session::SessionSealer;
    use crate::store::MEMORY;

    #[test]
    fn only_a_server_of_the_store_writes_the_header_and_a_cookie_is_none() {
        let (store, other) = (Store::open(MEMORY).unwrap(), Store::open(MEMORY).unwrap());
        let session = DashboardSession::new(Id::new("ak_1"), &Secret::new("hash"));
        let mut sent = HeaderMap::new();
        sent.insert(CLIENT, HeaderValue::from_static("192.0.2.7"));
        sent.insert(header::COOKIE, HeaderValue::from_static("a=b"));
        let headers = request_headers(&store, &session, &sent).unwrap();
        assert_eq!(headers.len(), 2);
        assert!(session_in(&store, &headers).is_some_and(|found| found.key == session.key));
        assert!(session_in(&other, &headers).is_none() && session_in(&store, &sent).is_none());
        let cookie = SessionSealer::new(store.root_secret()).seal(&session).unwrap();
        for value in [format!("{SCHEME}{cookie}"), SCHEME.to_owned(), format!("Bearer {cookie}")] {
            let mut forged = HeaderMap::new();
            forged.insert(header::AUTHORIZATION, HeaderValue::from_str(&value).unwrap());
            assert!(session_in(&store, &forged).is_none(), "{value}");
        }
    }
}

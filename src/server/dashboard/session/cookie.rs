//! The cookies of a session, and of a sign-in at a provider.
//!
//! Over TLS its name begins with `__Host-`: a browser takes such a cookie only from this host itself, and sends it only over
//! TLS. A browser on the server's own machine may use plain HTTP, where there is no such name. Only there does the other name count:
//! elsewhere, a neighbouring host could give a browser such a cookie, and have somebody work in a session that is not theirs.

use axum::http::request::Parts;

use super::origin_check;
use crate::server::auth::session::{DashboardSession, SessionSealer};
use crate::server::prelude::*;
use crate::server::replicas::forwarded_client::ForwardedClient;

/// The names over TLS, and on the server's own machine.
const SECURE: &str = "__Host-edgewright";
const PLAIN: &str = "edgewright-dashboard";
/// The same for somebody who is at the provider.
const SECURE_LOGIN: &str = "__Host-edgewright-login";
const PLAIN_LOGIN: &str = "edgewright-login";
/// After how many seconds a browser forgets that somebody is at the provider.
const LOGIN_LIFE: u64 = 600;

/// The value of a cookie.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server::dashboard) struct CookieValue<'h> {
    pub text: &'h str,
    /// Whether it has the name for TLS.
    pub is_secure: bool,
}

/// The cookie that a request has. That for TLS counts first.
pub(in crate::server::dashboard) fn of(parts: &Parts) -> Option<CookieValue<'_>> {
    first_of(parts, SECURE, PLAIN)
}

/// The cookie of a sign-in at the provider that a request has.
pub(in crate::server::dashboard) fn login_of(parts: &Parts) -> Option<CookieValue<'_>> {
    first_of(parts, SECURE_LOGIN, PLAIN_LOGIN)
}

fn first_of<'p>(parts: &'p Parts, secure: &str, plain: &str) -> Option<CookieValue<'p>> {
    let cookies = || parts.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let named = |name: &str| {
        let mut pairs = cookies().flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
    };
    let secure = named(secure).map(|text| CookieValue { text, is_secure: true });
    // The server that forwards a request has the connection to the browser, and has looked.
    let may_be_plain =
        || parts.extensions.get::<ForwardedClient>().is_some() || origin_check::is_on_this_machine(parts);
    secure.or_else(|| {
        let text = named(plain).filter(|_| may_be_plain())?;
        Some(CookieValue { text, is_secure: false })
    })
}

/// The header that gives a browser the cookie of a sign-in at the provider.
pub(in crate::server::dashboard) fn set_login(value: &str, is_secure: bool) -> Option<HeaderValue> {
    let (name, attributes) = (login_name(is_secure), attributes(is_secure));
    HeaderValue::from_str(&format!("{name}={value}; Max-Age={LOGIN_LIFE}; {attributes}")).ok()
}

/// The header that takes it away.
pub(in crate::server::dashboard) fn removed_login(is_secure: bool) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{}=; Max-Age=0; {}", login_name(is_secure), attributes(is_secure))).ok()
}

fn login_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_LOGIN } else { PLAIN_LOGIN }
}

/// The header that gives a browser a session.
pub(in crate::server::dashboard) fn set(sealer: &SessionSealer, session: &DashboardSession) -> Option<HeaderValue> {
    let value = sealer.seal(session)?;
    HeaderValue::from_str(&format!("{}={value}; {}", name(session.is_secure), attributes(session.is_secure))).ok()
}

/// The header that takes the session from a browser.
pub(in crate::server::dashboard) fn removed(is_secure: bool) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{}=; Max-Age=0; {}", name(is_secure), attributes(is_secure))).ok()
}

fn name(is_secure: bool) -> &'static str {
    if is_secure { SECURE } else { PLAIN }
}

/// A link from elsewhere opens a page (`Lax`), since pages only read, and the provider sends a browser back by one. Forms are
/// checked in other ways.
fn attributes(is_secure: bool) -> &'static str {
    if is_secure { "Path=/; Secure; HttpOnly; SameSite=Lax" } else { "Path=/; HttpOnly; SameSite=Lax" }
}

#[cfg(test)]
mod tests {
    use axum::extract::ConnectInfo;

    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let found = |text: &'static str| found(text, [127, 0, 0, 1], "localhost:8080");
        assert_eq!(found("a=b; __Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found("edgewright-dashboard=y;__Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found("edgewright-dashboard=y"), Some(("y".to_owned(), false)));
        assert_eq!(found("x__Host-edgewright=x; edgewright"), None);
        assert_eq!(found("__Host-edgewright-login=x; edgewright-login=y"), None);
    }

    #[test]
    fn the_name_without_tls_counts_on_this_machine_only() {
        for (peer, host, counts) in [
            ([127, 0, 0, 1], "127.0.0.1:8080", true),
            ([127, 0, 0, 1], "[::1]:8080", true),
            ([127, 0, 0, 1], "edge.example.com", false),
            ([192, 0, 2, 1], "localhost", false),
        ] {
            assert_eq!(found("edgewright-dashboard=y", peer, host).is_some(), counts, "{host}");
            assert!(found("__Host-edgewright=x", peer, host).is_some());
        }
    }

    fn found(cookie: &'static str, peer: [u8; 4], host: &'static str) -> Option<(String, bool)> {
        let mut parts = Request::new(Body::empty()).into_parts().0;
        parts.headers.insert(header::COOKIE, HeaderValue::from_static(cookie));
        parts.headers.insert(header::HOST, HeaderValue::from_static(host));
        parts.extensions.insert(ConnectInfo(SocketAddr::from((peer, 4000))));
        of(&parts).map(|value| (value.text.to_owned(), value.is_secure))
    }
}

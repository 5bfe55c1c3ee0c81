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

/// A cookie by its two names.
pub(in crate::server::dashboard) struct CookieName {
    /// The name over TLS.
    secure: &'static str,
    /// The name on the server's own machine.
    plain: &'static str,
}

/// The cookie of a session.
pub(in crate::server::dashboard) const SESSION: CookieName =
    CookieName { secure: "__Host-edgewright", plain: "edgewright-dashboard" };
/// The cookie of somebody who is at the provider.
pub(in crate::server::dashboard) const LOGIN: CookieName =
    CookieName { secure: "__Host-edgewright-login", plain: "edgewright-login" };
/// After how many seconds a browser forgets that somebody is at the provider.
const LOGIN_LIFE: u64 = 600;

/// The value of a cookie.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server::dashboard) struct CookieValue<'h> {
    pub text: &'h str,
    /// Whether the cookie has the name for TLS.
    pub is_secure: bool,
}

impl CookieName {
    /// The cookie that a request has. That for TLS counts first.
    pub(in crate::server::dashboard) fn find_in<'p>(&self, parts: &'p Parts) -> Option<CookieValue<'p>> {
        // Another application at this host may have cookies of any bytes.
        let named = |name: &str| {
            let lines = parts.headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes);
            let mut pairs = lines.flat_map(|line| line.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
            let value = pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            value.and_then(|value| std::str::from_utf8(value).ok())
        };
        let secure = named(self.secure).map(|text| CookieValue { text, is_secure: true });
        // The server that forwards a request has the connection to the browser, and has looked.
        let may_be_plain =
            || parts.extensions.get::<ForwardedClient>().is_some() || origin_check::is_on_this_machine(parts);
        secure.or_else(|| {
            let text = named(self.plain).filter(|_| may_be_plain())?;
            Some(CookieValue { text, is_secure: false })
        })
    }

    /// Takes the cookie from a browser, whichever name it has.
    pub(super) fn remove(&self, response: &mut Response) {
        for removed in [true, false].into_iter().filter_map(|is_secure| self.header("; Max-Age=0", is_secure)) {
            response.headers_mut().append(header::SET_COOKIE, removed);
        }
    }

    /// The header with a value and attributes, and those of all cookies. A link from elsewhere opens a page (`Lax`), since pages
    /// only read, and the provider sends a browser back by one. Forms are checked in other ways.
    fn header(&self, value: &str, is_secure: bool) -> Option<HeaderValue> {
        let (name, secure) = if is_secure { (self.secure, "Secure; ") } else { (self.plain, "") };
        HeaderValue::from_str(&format!("{name}={value}; Path=/; {secure}HttpOnly; SameSite=Lax")).ok()
    }
}

/// The header that gives a browser a session.
pub(in crate::server::dashboard) fn set(sealer: &SessionSealer, session: &DashboardSession) -> Option<HeaderValue> {
    SESSION.header(&sealer.seal(session)?, session.is_secure)
}

/// The header that gives a browser the cookie of a sign-in at the provider.
pub(in crate::server::dashboard) fn set_login(value: &str, is_secure: bool) -> Option<HeaderValue> {
    LOGIN.header(&format!("{value}; Max-Age={LOGIN_LIFE}"), is_secure)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::extract::ConnectInfo;

    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let found = |cookie: &[u8]| found(cookie, [127, 0, 0, 1], "localhost:8080");
        assert_eq!(found(b"a=b; __Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found(b"edgewright-dashboard=y;__Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found(b"edgewright-dashboard=y"), Some(("y".to_owned(), false)));
        assert_eq!(found(b"x__Host-edgewright=x; edgewright"), None);
        assert_eq!(found(b"__Host-edgewright-login=x; edgewright-login=y"), None);
        assert_eq!(found(b"theme=\xe9t\xe9; __Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found(b"edgewright-dashboard=\xe9"), None);
    }

    #[test]
    fn the_name_without_tls_counts_on_this_machine_only() {
        for (peer, host, counts) in [
            ([127, 0, 0, 1], "127.0.0.1:8080", true),
            ([127, 0, 0, 1], "[::1]:8080", true),
            ([127, 0, 0, 1], "edge.example.com", false),
            ([192, 0, 2, 1], "localhost", false),
        ] {
            assert_eq!(found(b"edgewright-dashboard=y", peer, host).is_some(), counts, "{host}");
            assert!(found(b"__Host-edgewright=x", peer, host).is_some());
        }
    }

    fn found(cookie: &[u8], peer: [u8; 4], host: &'static str) -> Option<(String, bool)> {
        let mut parts = Request::new(Body::empty()).into_parts().0;
        parts.headers.insert(header::COOKIE, HeaderValue::from_bytes(cookie).unwrap());
        parts.headers.insert(header::HOST, HeaderValue::from_static(host));
        parts.extensions.insert(ConnectInfo(SocketAddr::from((peer, 4000))));
        SESSION.find_in(&parts).map(|value| (value.text.to_owned(), value.is_secure))
    }
}

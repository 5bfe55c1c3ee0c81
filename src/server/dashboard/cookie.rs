//! The cookies of a session, and of a sign-in at a provider.
//!
//! Over TLS its name begins with `__Host-`: a browser takes such a cookie only from this host itself, and sends it only over
//! TLS. A browser on the server's own machine may use plain HTTP, where there is no such name.

use crate::server::auth::session::{DashboardSession, SessionSealer};
use crate::server::prelude::*;

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
pub(super) struct CookieValue<'h> {
    pub text: &'h str,
    /// Whether it has the name for TLS.
    pub is_secure: bool,
}

/// The cookie that a request has. That for TLS counts first.
pub(super) fn of(headers: &HeaderMap) -> Option<CookieValue<'_>> {
    first_of(headers, SECURE, PLAIN)
}

/// The cookie of a sign-in at the provider that a request has.
pub(super) fn login_of(headers: &HeaderMap) -> Option<CookieValue<'_>> {
    first_of(headers, SECURE_LOGIN, PLAIN_LOGIN)
}

fn first_of<'h>(headers: &'h HeaderMap, secure: &str, plain: &str) -> Option<CookieValue<'h>> {
    let cookies = || headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let named = |name: &str| {
        let mut pairs = cookies().flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
    };
    let secure = named(secure).map(|text| CookieValue { text, is_secure: true });
    secure.or_else(|| named(plain).map(|text| CookieValue { text, is_secure: false }))
}

/// The header that gives a browser the cookie of a sign-in at the provider.
pub(super) fn set_login(value: &str, is_secure: bool) -> Option<HeaderValue> {
    let (name, attributes) = (login_name(is_secure), attributes(is_secure));
    HeaderValue::from_str(&format!("{name}={value}; Max-Age={LOGIN_LIFE}; {attributes}")).ok()
}

/// The header that takes it away.
pub(super) fn removed_login(is_secure: bool) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{}=; Max-Age=0; {}", login_name(is_secure), attributes(is_secure))).ok()
}

fn login_name(is_secure: bool) -> &'static str {
    if is_secure { SECURE_LOGIN } else { PLAIN_LOGIN }
}

/// The header that gives a browser a session.
pub(super) fn set(sealer: &SessionSealer, session: &DashboardSession) -> Option<HeaderValue> {
    let value = sealer.seal(session)?;
    HeaderValue::from_str(&format!("{}={value}; {}", name(session.is_secure), attributes(session.is_secure))).ok()
}

/// The header that takes the session from a browser.
pub(super) fn removed(is_secure: bool) -> Option<HeaderValue> {
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
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let found = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, HeaderValue::from_static(text));
            of(&headers).map(|value| (value.text.to_owned(), value.is_secure))
        };
        assert_eq!(found("a=b; __Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found("edgewright-dashboard=y;__Host-edgewright=x"), Some(("x".to_owned(), true)));
        assert_eq!(found("edgewright-dashboard=y"), Some(("y".to_owned(), false)));
        assert_eq!(found("x__Host-edgewright=x; edgewright"), None);
        assert_eq!(found("__Host-edgewright-login=x; edgewright-login=y"), None);
    }
}

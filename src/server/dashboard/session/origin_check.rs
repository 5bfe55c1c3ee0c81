//! Whether a form comes from a page of this server: another site must not make a browser send one (CSRF).
//!
//! A browser says of each form where it is from, in `Origin` and in `Sec-Fetch-Site`, and no page can change that. A form
//! without an origin is from no browser, or from one that hides it, and is refused.

use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::uri::Authority;

use crate::http_client::is_this_machine;
use crate::server::handler_prelude::*;
use crate::server::limits::guards;

/// Refuses a form of another site. Returns whether the browser came over TLS.
pub(in crate::server::dashboard) fn check(parts: &Parts, base_url: &str) -> Result<bool, ApiError> {
    let refused = |message: &str| Err(ApiError::with_code(Code::Forbidden, message.to_owned()));
    let text = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let site = parts.headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin") {
        return refused("the form was sent by another site");
    }
    let Some((scheme, authority)) = text(header::ORIGIN).and_then(|origin| origin.split_once("://")) else {
        return refused("the browser does not tell where the form is from");
    };
    let host = host_of(parts);
    let is_public = base_url.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")).is_some_and(|rest| {
        let public = rest.split('/').next().unwrap_or_default();
        public.eq_ignore_ascii_case(authority)
    });
    if !is_public && !host.is_some_and(|host| host.eq_ignore_ascii_case(authority)) {
        return refused("the form was sent by another site");
    }
    match scheme {
        "https" => Ok(true),
        "http" if is_local(parts) && is_loopback(authority) => Ok(false),
        _ => {
            let fault =
                Fault::new(Code::InsecureTransport, "signing in needs HTTPS: the token would be readable on its way");
            Err(ApiError::new(fault.help("open the page over HTTPS, or on the server's own machine")))
        }
    }
}

/// Whether a browser on this machine has reached the server by a name of the machine, as it does without TLS.
pub(in crate::server::dashboard) fn is_on_this_machine(parts: &Parts) -> bool {
    is_local(parts) && host_of(parts).is_some_and(is_loopback)
}

/// The host that a request is for, with its port.
fn host_of(parts: &Parts) -> Option<&str> {
    let host = parts.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    host.or_else(|| parts.uri.authority().map(Authority::as_str))
}

/// Whether a request comes from this machine: over its loopback interface, and not from the client of a trusted proxy on it.
fn is_local(parts: &Parts) -> bool {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    peer.is_some_and(is_loopback) && guards::client_of(&parts.headers).is_none_or(is_loopback)
}

/// Whether a browser reached the server by a name of its own machine.
fn is_loopback(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    is_this_machine(host)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn checked(peer: [u8; 4], headers: &[(&str, &str)]) -> Option<bool> {
        let mut request = axum::http::Request::builder().uri("/ui/sign-in");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(ConnectInfo(SocketAddr::from((peer, 4000))));
        check(&parts, "https://edge.example.com/admin").ok()
    }

    #[test]
    fn a_form_is_from_this_server() {
        let (here, away) = ([127, 0, 0, 1], [192, 0, 2, 1]);
        let secure = [("origin", "https://edge.example.com"), ("host", "backend:8080")];
        assert_eq!(checked(away, &secure), Some(true), "the public address behind a proxy");
        let direct =
            [("origin", "https://10.0.0.7:8443"), ("host", "10.0.0.7:8443"), ("sec-fetch-site", "same-origin")];
        assert_eq!(checked(away, &direct), Some(true));
        for local in ["localhost:8080", "127.0.0.1:8080", "[::1]:8080"] {
            let origin = format!("http://{local}");
            assert_eq!(checked(here, &[("origin", &origin), ("host", local)]), Some(false), "{local}");
            assert_eq!(checked(away, &[("origin", &origin), ("host", local)]), None, "{local}");
        }
    }

    #[test]
    fn the_client_of_a_proxy_on_this_machine_is_elsewhere() {
        let form = |client: &str| {
            let local = [("origin", "http://localhost:8080"), ("host", "localhost:8080"), (guards::CLIENT, client)];
            checked([127, 0, 0, 1], &local)
        };
        assert_eq!([form("127.0.0.1"), form("::1"), form("198.51.100.7")], [Some(false), Some(false), None]);
    }

    #[test]
    fn a_form_of_another_site_is_refused() {
        let here = [127, 0, 0, 1];
        for headers in [
            vec![("host", "localhost:8080")],
            vec![("origin", "null"), ("host", "localhost:8080")],
            vec![("origin", "https://evil.example"), ("host", "localhost:8080")],
            vec![("origin", "http://localhost:9090"), ("host", "localhost:8080")],
            vec![("origin", "http://localhost:8080"), ("host", "localhost:8080"), ("sec-fetch-site", "same-site")],
            vec![("origin", "http://edge.example.com"), ("host", "edge.example.com")],
        ] {
            assert_eq!(checked(here, &headers), None, "{headers:?}");
        }
    }
}

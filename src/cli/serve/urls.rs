//! The URLs among the options of `serve`.

use axum::http::Uri;

/// Parses a URL that others build theirs from (D13), without the slash at its end.
pub(super) fn public_url(url: &str) -> Result<String, String> {
    // The parser drops fragments.
    let url = http_url(url).filter(|_| !url.contains('#'));
    url.ok_or_else(|| "must be an http or https URL without credentials, query or fragment".to_owned())
}

/// Parses an HTTP URL without credentials and query, and removes the slash at its end.
pub(super) fn http_url(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().filter(|it| !it.as_str().is_empty() && !it.as_str().contains('@'))?;
    // The parser takes any digits for a port.
    let has_valid_port = authority.as_str() == authority.host() || authority.port_u16().is_some();
    let is_valid = is_http && !authority.host().is_empty() && has_valid_port && uri.query().is_none();
    is_valid.then(|| url.trim_end_matches('/').to_owned())
}

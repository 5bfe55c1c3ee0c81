//! The URLs among the options of `serve`.

use crate::http_client::server_url;

/// Parses a URL that others build theirs from (D13), without the slash at its end.
pub(super) fn public_url(url: &str) -> Result<String, String> {
    // The parser drops fragments.
    let url = http_url(url).filter(|_| !url.contains('#'));
    url.ok_or_else(|| "must be an http or https URL without credentials, query or fragment".to_owned())
}

/// Parses an HTTP URL without credentials and query, and removes the slash at its end.
pub(super) fn http_url(url: &str) -> Option<String> {
    let uri = server_url(url).ok()?;
    let is_valid = matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none();
    is_valid.then(|| url.trim_end_matches('/').to_owned())
}

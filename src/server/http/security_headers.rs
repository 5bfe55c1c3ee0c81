//! The headers that keep a browser from misusing a response (D98).

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers of every response. An answer may contain secrets, so no cache keeps it; ETags work without one (D25).
static ALWAYS: [(HeaderName, HeaderValue); 3] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
];
/// Headers of the pages at `/docs`: they load scripts and styles only from here, and no other page frames them. Trusted types
/// keep the script from turning a text of the document into HTML.
static PAGES: [(HeaderName, HeaderValue); 2] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        ),
    ),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];
/// Where the pages are. Those of the dashboard set a policy of their own.
const DOCS: &str = "/docs";

/// Whether a path is one of a page for browsers.
pub(in crate::server) fn is_page(path: &str) -> bool {
    path.strip_prefix(DOCS).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Adds the headers that a response does not have yet.
pub(in crate::server) fn add_security_headers(headers: &mut HeaderMap, is_page: bool) {
    let pages = if is_page { PAGES.as_slice() } else { &[] };
    for (name, value) in ALWAYS.iter().chain(pages) {
        headers.entry(name).or_insert_with(|| value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_keeps_its_own_cache_control() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        add_security_headers(&mut headers, false);
        assert_eq!(headers.get(header::CACHE_CONTROL).map(HeaderValue::as_bytes), Some(b"max-age=60".as_slice()));
        assert_eq!(headers.get(header::X_CONTENT_TYPE_OPTIONS).map(HeaderValue::as_bytes), Some(b"nosniff".as_slice()));
        assert!(!headers.contains_key(header::CONTENT_SECURITY_POLICY));
        add_security_headers(&mut headers, true);
        assert!(headers.contains_key(header::CONTENT_SECURITY_POLICY) && headers.contains_key(header::X_FRAME_OPTIONS));
    }

    #[test]
    fn only_docs_are_pages() {
        assert!(is_page("/docs") && is_page("/docs/") && is_page("/docs/style.css"));
        assert!(!is_page("/docsets") && !is_page("/openapi.json"));
    }
}

//! CORS: the web pages that may call the API from a browser (D98).

use std::str::FromStr;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, Any as AnyHeader, CorsLayer};

/// An origin that is allowed: `https://console.example.com`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CorsOrigin {
    /// Pages of any origin.
    Any,
    /// Pages of one origin.
    Named(HeaderValue),
}

impl FromStr for CorsOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(CorsOrigin::Any);
        }
        let wrong = || "expected an origin such as https://console.example.com, or `*`".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wrong()) };
        // A browser sends an origin in this form, and it is compared byte by byte.
        let origin = format!("{scheme}://{authority}").to_ascii_lowercase();
        let is_host = !authority.host().is_empty() && !authority.as_str().contains(['@', '*']);
        if text.to_ascii_lowercase() != origin || !["http", "https"].contains(&scheme) || !is_host {
            return Err(wrong());
        }
        HeaderValue::from_str(&origin).map(CorsOrigin::Named).map_err(|_| wrong())
    }
}

/// The pages that may call the API.
#[derive(Debug)]
pub(crate) enum Cors {
    /// None.
    Off,
    /// All.
    Any,
    /// Pages of some origins.
    Named(Vec<HeaderValue>),
}

/// The headers of responses that a page can read. The API needs no cookies, so `*` stands for all.
static EXPOSED: (HeaderName, HeaderValue) = (header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
static ALLOWED_ANY: (HeaderName, HeaderValue) = (header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
/// A cache must not give the response for one origin to another.
static VARY: (HeaderName, HeaderValue) = (header::VARY, HeaderValue::from_static("origin"));

impl Cors {
    /// Allows some origins.
    pub(crate) fn new(origins: Vec<CorsOrigin>) -> Self {
        let mut named = Vec::new();
        for origin in origins {
            match origin {
                CorsOrigin::Any => return Cors::Any,
                CorsOrigin::Named(origin) => named.push(origin),
            }
        }
        if named.is_empty() { Cors::Off } else { Cors::Named(named) }
    }

    /// The layer that answers preflight requests; none if no page may call the API.
    pub(in crate::server) fn preflights(&self) -> Option<CorsLayer> {
        let origin = match self {
            Cors::Off => return None,
            Cors::Any => AllowOrigin::any(),
            Cors::Named(origins) => AllowOrigin::list(origins.iter().cloned()),
        };
        let layer = CorsLayer::new()
            .allow_origin(origin)
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(AnyHeader);
        Some(layer)
    }

    /// The origin of a request, if it decides about the headers of the response.
    pub(in crate::server) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        match self {
            Cors::Named(_) => headers.get(header::ORIGIN).cloned(),
            Cors::Off | Cors::Any => None,
        }
    }

    /// Adds the headers of a response that is not the answer to a preflight request.
    pub(in crate::server) fn allow(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        let mut add = |(name, value): &(HeaderName, HeaderValue)| {
            headers.append(name, value.clone());
        };
        match self {
            Cors::Off => {}
            Cors::Any => {
                add(&ALLOWED_ANY);
                add(&EXPOSED);
            }
            Cors::Named(allowed) => {
                add(&VARY);
                if let Some(origin) = origin.filter(|origin| allowed.contains(origin)) {
                    add(&EXPOSED);
                    headers.append(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn allowed(origins: &[&str], origin: Option<&'static str>) -> (Option<String>, bool) {
        let cors = Cors::new(origins.iter().map(|origin| origin.parse().unwrap()).collect());
        let (mut request, mut response) = (HeaderMap::new(), HeaderMap::new());
        if let Some(origin) = origin {
            request.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        cors.allow(cors.origin(&request), &mut response);
        let allowed = response.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
        (allowed.map(|value| value.to_str().unwrap().to_owned()), response.contains_key(header::VARY))
    }

    #[test]
    fn a_page_may_call_if_its_origin_is_named() {
        let (one, other) = ("https://one.example.com", "https://other.example.com:8443");
        assert_eq!(allowed(&[], Some(one)), (None, false));
        assert_eq!(allowed(&["*"], Some(one)), (Some("*".into()), false));
        assert_eq!(allowed(&[one, "*"], None), (Some("*".into()), false));
        assert_eq!(allowed(&[one, other], Some(other)), (Some(other.into()), true));
        assert_eq!(allowed(&[one], Some(other)), (None, true));
        assert_eq!(allowed(&[one], None), (None, true));
        assert_eq!(allowed(&[one], Some("null")), (None, true));
        assert_eq!(allowed(&["HTTPS://One.Example.com"], Some(one)), (Some(one.into()), true));
    }

    #[test]
    fn an_origin_has_a_scheme_and_a_host_and_nothing_else() {
        let wrong =
            ["", "null", "one.example.com", "https://one.example.com/", "https://one.example.com/a", "ftp://one"];
        for wrong in wrong.into_iter().chain(["https://", "https://a@one", "https://one?x", "https://*"]) {
            let parsed = wrong.parse::<CorsOrigin>();
            assert!(parsed.is_err(), "{wrong}: {parsed:?}");
        }
    }
}

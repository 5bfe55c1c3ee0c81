//! CORS: the web pages that may call the API from a browser (D98).

use std::str::FromStr;

use axum::http::{HeaderMap, HeaderValue, header};
use tower_http::cors::{AllowHeaders, AllowMethods, AllowOrigin, Any as AnyHeader, CorsLayer};

use crate::http_client::server_url;

/// An origin that is allowed: `https://console.example.com`, or `*` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CorsOrigin(HeaderValue);

impl FromStr for CorsOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self(ANY.clone()));
        }
        let wrong = || "expected an origin such as https://console.example.com, or `*`".to_owned();
        let uri = server_url(text).map_err(|_| wrong())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wrong()) };
        // A browser sends an origin in this form, and it is compared byte by byte.
        let origin = format!("{scheme}://{authority}").to_ascii_lowercase();
        let is_pattern = authority.as_str().contains('*');
        if text.to_ascii_lowercase() != origin || !["http", "https"].contains(&scheme) || is_pattern {
            return Err(wrong());
        }
        HeaderValue::from_str(&origin).map(Self).map_err(|_| wrong())
    }
}

/// The pages that may call the API.
#[derive(Debug)]
pub(crate) struct Cors(pub(crate) Vec<CorsOrigin>);

/// All origins, or all headers: the API needs no cookies, so `*` stands for all.
static ANY: HeaderValue = HeaderValue::from_static("*");
/// A cache must not give the response for one origin to another.
static VARY: HeaderValue = HeaderValue::from_static("origin");

impl Cors {
    fn allows(&self, origin: &HeaderValue) -> bool {
        self.0.iter().any(|CorsOrigin(allowed)| allowed == origin)
    }

    /// The layer that answers preflight requests; none if no page may call the API.
    pub(in crate::server) fn preflights(&self) -> Option<CorsLayer> {
        let origin = match self.0.as_slice() {
            [] => return None,
            _ if self.allows(&ANY) => AllowOrigin::any(),
            origins => AllowOrigin::list(origins.iter().map(|CorsOrigin(origin)| origin.clone())),
        };
        let layer = CorsLayer::new()
            .allow_origin(origin)
            .allow_methods(AllowMethods::mirror_request())
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(AnyHeader);
        Some(layer)
    }

    /// The origin of a request, if it can decide about the headers of the response.
    pub(in crate::server) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.0.is_empty() { None } else { headers.get(header::ORIGIN).cloned() }
    }

    /// Adds the headers of a response that is not the answer to a preflight request.
    pub(in crate::server) fn allow(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        if self.allows(&ANY) {
            headers.append(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY.clone());
        } else {
            headers.append(header::VARY, VARY.clone());
            let Some(origin) = origin.filter(|origin| self.allows(origin)) else { return };
            headers.append(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        }
        headers.append(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANY.clone());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn allowed(origins: &[&str], origin: Option<&'static str>) -> (Option<String>, bool) {
        let cors = Cors(origins.iter().map(|origin| origin.parse().unwrap()).collect());
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

//! The endpoints by their paths. Each layer of a router allocates and moves every request and response, and reads of a
//! resource are most of what a server does, so the way to an endpoint has no layers.

use axum::body::HttpBody as _;
use matchit::{Params, Router};
use percent_encoding::percent_decode_str;

use super::api_error::ApiError;
use super::response::{TOKEN_SEEN, WARNING};
use crate::server::prelude::*;
use crate::server::resources::endpoint::{Endpoint, endpoints};
use crate::server::resources::handlers::{ServedEndpoint, handle};
use crate::server::state::AppState;
use crate::server::telemetry::metrics::Meter;
use crate::syntax::text::key_of_token;

/// Finds the endpoint of a request.
pub(super) struct EndpointPaths(Router<PathMethods>);

/// The methods of a path.
struct PathMethods {
    methods: Vec<(Method, ServedEndpoint, Meter)>,
    /// Lists the methods.
    allow: HeaderValue,
    /// Counts the requests with other methods.
    refused: Meter,
}

/// The path of a request, found in the list of endpoints.
pub(super) struct FoundPath<'p> {
    path: &'p PathMethods,
    /// The decoded parameters in order. A path that is not UTF-8 is not found.
    parameters: Result<Vec<String>, ApiError>,
    /// Whether a parameter was an API token.
    has_token: bool,
}

impl EndpointPaths {
    /// Prepares all endpoints for requests.
    pub(super) fn new(app: &AppState) -> Self {
        let mut by_path: BTreeMap<String, Vec<Endpoint>> = BTreeMap::new();
        for endpoint in endpoints() {
            by_path.entry(positional(&endpoint.path)).or_default().push(endpoint);
        }
        let mut paths = Router::new();
        for (path, endpoints) in by_path {
            let methods = PathMethods::new(app, &path, endpoints);
            let added = paths.insert(path, methods);
            debug_assert!(added.is_ok(), "two endpoints have paths that cannot be told apart");
        }
        Self(paths)
    }

    /// Finds the endpoints of a path; `path` is not decoded yet.
    pub(super) fn find(&self, path: &str) -> Option<FoundPath<'_>> {
        let found = self.0.at(path).ok()?;
        let (mut parameters, mut has_token) = (decoded(&found.params), false);
        for parameter in parameters.iter_mut().flatten() {
            // Whoever pastes a leaked token means its key, and the token goes no further.
            if let Some(key) = key_of_token(parameter).map(str::to_owned) {
                (*parameter, has_token) = (key, true);
            }
        }
        Some(FoundPath { path: found.value, parameters, has_token })
    }
}

impl PathMethods {
    fn new(app: &AppState, path: &str, endpoints: Vec<Endpoint>) -> Self {
        let mut allowed: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.method).collect();
        if allowed.contains(&"GET") {
            allowed.push("HEAD");
        }
        let allow = HeaderValue::from_str(&allowed.join(",")).unwrap_or(HeaderValue::from_static(""));
        let prepare = |endpoint: Endpoint| {
            let method = Method::from_bytes(endpoint.method.as_bytes()).unwrap_or_default();
            (method.clone(), ServedEndpoint::new(app.clone(), endpoint), Meter::new(method, path))
        };
        let methods = endpoints.into_iter().map(prepare).collect();
        Self { methods, allow, refused: Meter::new(Method::GET, path) }
    }
}

impl FoundPath<'_> {
    /// Handles a request with this path.
    pub(super) async fn answer(self, request: Request) -> Response {
        let Self { path, parameters, has_token } = self;
        let method = request.method().clone();
        let is_head = method == Method::HEAD;
        let wanted = if is_head { &Method::GET } else { &method };
        let Some((_, served, meter)) = path.methods.iter().find(|(known, ..)| known == wanted) else {
            let refusing = async {
                let mut response = ApiError::method_not_allowed().into_response();
                response.headers_mut().insert(header::ALLOW, path.allow.clone());
                response
            };
            return path.refused.observe(&method, refusing).await;
        };
        let answering = async {
            let handled = match parameters {
                Ok(parameters) => handle(served, parameters, request).await,
                Err(error) => Err(error),
            };
            handled.unwrap_or_else(IntoResponse::into_response)
        };
        let mut response = meter.observe(&method, answering).await;
        if has_token {
            response.headers_mut().append(WARNING, HeaderValue::from_static(TOKEN_SEEN));
        }
        if is_head { without_body(response) } else { response }
    }
}

/// The response to a HEAD request, which has the headers of the response to a GET.
fn without_body(mut response: Response) -> Response {
    // A 304 has the headers of the response to a client without a copy, whose length is not known here.
    let length = response.body().size_hint().exact().filter(|_| response.status() != StatusCode::NOT_MODIFIED);
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
    response
}

fn decoded(parameters: &Params<'_, '_>) -> Result<Vec<String>, ApiError> {
    let decode = |value: &str| percent_decode_str(value).decode_utf8().map(String::from);
    parameters.iter().map(|(_, value)| decode(value)).collect::<Result<_, _>>().map_err(|_| ApiError::no_endpoint())
}

/// Unifies parameter names: each segment may have one name only, but kinds use different ones.
pub(super) fn positional(path: &str) -> String {
    let mut number = 0;
    let segments = path.split('/').map(|segment| {
        if !segment.starts_with('{') {
            return segment.to_owned();
        }
        number += 1;
        format!("{{p{}}}", number - 1)
    });
    segments.collect::<Vec<_>>().join("/")
}

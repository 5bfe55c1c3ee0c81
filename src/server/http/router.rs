//! The router of the operations that no kind of resource has, and of the pages for browsers.

use axum::Router;
use axum::middleware::{self, Next};
use axum::routing::MethodFilter;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::api_error::{ApiError, REQUEST_ID};
use super::endpoint_paths::positional;
use crate::server::operations::OPERATIONS;
use crate::server::operations::checks::{OperationGate, admit};
use crate::server::prelude::*;
use crate::server::state::AppState;
use crate::server::telemetry::metrics;

/// Everything but the endpoints of resources.
pub(super) fn operation_routes(state: &AppState) -> Router {
    let mut operations = OPERATIONS;
    // `Allow` lists the methods of a path in this order.
    operations.sort_by_key(|operation| operation.method != MethodFilter::GET);
    let mut router = Router::new();
    for operation in operations {
        let gate = OperationGate::new(operation, Arc::clone(&state.access));
        let handler = (operation.handler)(operation.method).route_layer(middleware::from_fn_with_state(gate, admit));
        router = router.route(&positional(operation.path), handler);
    }
    // Relative URLs, because a reverse proxy may publish the pages below a path (D13).
    let docs: Router = SwaggerUi::new("/docs").config(Config::from("../openapi.json")).into();
    let docs = docs.layer(middleware::map_response(with_relative_location));
    router
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .with_state(state.clone())
        .merge(docs)
        .fallback(async || ApiError::no_endpoint())
        .layer(middleware::from_fn(with_one_error_body))
        .layer(middleware::from_fn(metrics::observe))
}

/// Redirects `/docs` to `docs/` beside it, wherever it is published.
async fn with_relative_location(mut response: Response) -> Response {
    if let Some(location) = response.headers_mut().get_mut(header::LOCATION) {
        *location = HeaderValue::from_static("docs/");
    }
    response
}

/// Gives errors of third-party handlers the common error body (D9).
async fn with_one_error_body(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let error = match response.status() {
        StatusCode::NOT_FOUND => ApiError::no_endpoint(),
        StatusCode::METHOD_NOT_ALLOWED => ApiError::method_not_allowed(),
        _ => return response,
    };
    if response.headers().contains_key(REQUEST_ID) {
        return response;
    }
    let mut error = error.into_response();
    if let Some(allow) = response.headers().get(header::ALLOW) {
        error.headers_mut().insert(header::ALLOW, allow.clone());
    }
    error
}

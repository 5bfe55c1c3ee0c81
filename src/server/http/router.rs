//! The router of the operations that no kind of resource has, and of the pages for browsers.

use axum::response::Redirect;
use axum::routing::MethodFilter;
use axum::{Router, middleware};

use super::api_error::ApiError;
use super::docs::page_routes;
use super::endpoint_paths::positional;
use crate::server::dashboard;
use crate::server::operations::OPERATIONS;
use crate::server::operations::checks::{OperationGate, admit};
use crate::server::prelude::*;
use crate::server::state::AppState;
use crate::server::telemetry::metrics;

/// Everything but the endpoints of resources.
pub(super) fn operation_routes(state: &AppState) -> Router {
    let mut operations = OPERATIONS.to_vec();
    // `Allow` lists the methods of a path in this order.
    operations.sort_by_key(|operation| operation.method != MethodFilter::GET);
    let mut router = Router::new();
    for operation in operations {
        let gate = OperationGate::new(operation, state.clone());
        let handler = (operation.handler)(operation.method).route_layer(middleware::from_fn_with_state(gate, admit));
        router = router.route(&positional(operation.path), handler);
    }
    if state.has_dashboard {
        router = router.merge(dashboard::routes());
    }
    let has_dashboard = state.has_dashboard;
    router
        .merge(page_routes())
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .with_state(state.clone())
        .fallback(move |request: Request| std::future::ready(no_endpoint(has_dashboard, request)))
        .layer(middleware::from_fn(metrics::observe))
}

/// The response for a path that nothing has. A browser at the root is shown the way to the dashboard, and a page inside of it.
fn no_endpoint(has_dashboard: bool, request: Request) -> Response {
    let accepts_pages = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/html"));
    let is_browser = request.headers().get_all(header::ACCEPT).iter().any(accepts_pages);
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let path = request.uri().path();
    let (is_root, is_inside) = (path == "/", path.starts_with("/ui/"));
    match has_dashboard && is_browser && is_read {
        true if is_root => Redirect::to("ui/").into_response(),
        true if is_inside => dashboard::no_page(request),
        _ => ApiError::no_endpoint().into_response(),
    }
}

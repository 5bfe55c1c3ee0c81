//! The router of the operations that no kind of resource has, and of the page for browsers.

use axum::routing::MethodFilter;
use axum::{Router, middleware};

use super::api_error::ApiError;
use super::docs::page_routes;
use super::endpoint_paths::positional;
use crate::server::operations::OPERATIONS;
use crate::server::operations::checks::{OperationGate, admit};
use crate::server::state::AppState;
use crate::server::telemetry::metrics;

/// Everything but the endpoints of resources.
pub(super) fn operation_routes(state: &AppState) -> Router {
    let mut operations = OPERATIONS;
    // `Allow` lists the methods of a path in this order.
    operations.sort_by_key(|operation| operation.method != MethodFilter::GET);
    let mut router = Router::new();
    for operation in operations {
        let gate = OperationGate::new(operation, state.clone());
        let handler = (operation.handler)(operation.method).route_layer(middleware::from_fn_with_state(gate, admit));
        router = router.route(&positional(operation.path), handler);
    }
    router
        .merge(page_routes())
        .method_not_allowed_fallback(async || ApiError::method_not_allowed())
        .with_state(state.clone())
        .fallback(async || ApiError::no_endpoint())
        .layer(middleware::from_fn(metrics::observe))
}

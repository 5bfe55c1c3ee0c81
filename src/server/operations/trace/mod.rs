//! POST `/trace`: which edge and route of the current revision take a request (D42, D105). A trace changes
//! and sends nothing, so viewers can use it.

pub(super) mod report;

use crate::{routing::trace, server::handler_prelude::*};

pub(crate) use report::{HeaderToTrace, RequestToTrace, TlsInTrace, TraceReport};

pub(crate) const PATH: &str = "/trace";
/// The methods of HTTP that people trace.
pub(crate) const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

pub(super) static CREATE: ApiOperation = ApiOperation::post(PATH, Intent::Read, |method| on(method, create))
    .named("Administration", "traceRequest", "Trace a request")
    .described("Returns which edge and route of the current revision take a request, why other routes do not, and which modules the request passes. It sends no request and changes nothing; viewers can use it.")
    .documented("400 401 403 408 413 415 429 500 503", |operation, schemas| {
        let example = json!({"method": "GET", "url": "https://shop.example.com/cart"});
        let operation = operation.body(schemas.request::<RequestToTrace>(), example);
        operation.ok(schemas.response::<TraceReport>())
    });

/// Traces a request.
async fn create(
    State(AppState { served, admissions, .. }): State<AppState>,
    caller: Caller,
    JsonBody(request): JsonBody<RequestToTrace>,
) -> ApiResult {
    let request = request.parse().map_err(ApiError::new)?;
    let place = admissions.searches.for_owner(&caller.owner)?;
    let snapshot = served.store.snapshot();
    place
        .run(move |_| {
            json_response(StatusCode::OK, &TraceReport::new(&request, &trace(&snapshot, &request), &snapshot))
        })
        .await
}

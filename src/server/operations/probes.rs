//! `/healthz`, `/metrics` and `/openapi.json`: what needs no API key. Monitors and caches may add query parameters of their own
//! to the first two, which change nothing (D56).

use crate::server::handler_prelude::*;
use crate::server::telemetry::{metrics, request_labels};

pub(super) static HEALTH: ApiOperation =
    ApiOperation::open(MethodFilter::GET, request_labels::HEALTH, |method| on(method, async || "ok\n"))
        .any_query()
        .named("Service", "getHealth", "Check that the process is alive")
        .described("Returns 200 while the process runs.")
        .documented("431", |operation, _| operation.open("text/plain"));

pub(super) static METRICS: ApiOperation =
    ApiOperation::open(MethodFilter::GET, request_labels::METRICS, |method| on(method, metrics::page))
        .any_query()
        .named("Service", "getMetrics", "Get metrics")
        .described("Returns metrics in the Prometheus text format.")
        .documented("431", |operation, _| operation.open("text/plain"));

pub(super) static DOCUMENT: ApiOperation =
    ApiOperation::open(MethodFilter::GET, "/openapi.json", |method| on(method, document))
        .named("Service", "getOpenApiDocument", "Get this document")
        .described("Returns the OpenAPI document of this server.")
        .documented("400 431", |operation, _| operation.open("application/json"));

async fn document(State(app): State<AppState>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], Bytes::clone(&app.document))
}

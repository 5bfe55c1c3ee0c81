//! POST `/trace`: which edge and route of the current revision take a request (D42, D105). It changes nothing and sends
//! nothing, so viewers can use it.

pub(super) mod report;

use axum::{
    body::Body,
    http::{Request, StatusCode},
    response::Response,
};
use serde_json::{Value, json};

use super::whoami::TAG;
use crate::{
    model::{decode::decode, diagnostics::code::Code},
    routing::trace,
    server::{
        auth::permission::Intent,
        http::{
            body::{self, Limits},
            query,
            response::{ApiError, json_response},
        },
        openapi::{extension::ExtensionOperation, schemas::Schemas},
        state::AppState,
    },
};

pub(crate) use report::{HeaderToTrace, RequestToTrace, TraceReport};

/// The path.
pub(crate) const PATH: &str = "/trace";

/// Traces a request.
pub(crate) async fn create(app: AppState, request: Request<Body>) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    app.access.admit(&app.served.store.snapshot(), &Intent::Read, &parts.headers)?;
    query::check(parts.uri.query(), &[])?;
    let (content, mut faults, _) = body::read(&parts.headers, body, Limits::RESOURCE).await?;
    if content.root().is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    let (wanted, found) = decode::<RequestToTrace>(content.root(), None);
    faults.extend(found);
    let wanted = match wanted {
        Some(wanted) if faults.is_empty() => wanted.parse().map_err(|fault| ApiError::from_faults(vec![fault]))?,
        _ => return Err(ApiError::from_faults(faults)),
    };
    // The key may have been revoked while the body was received.
    let snapshot = app.served.store.snapshot();
    let caller = app.access.admit_again(&snapshot, &Intent::Read, &parts.headers)?;
    let traced = app.admissions.renderings.of_owner(&caller.owner)?.render(move || {
        let found = trace(&snapshot, &wanted);
        Ok(json_response(StatusCode::OK, &TraceReport::of(&wanted, &found))?)
    });
    traced.await
}

/// The path with its operation.
pub(crate) fn path(schemas: &mut Schemas) -> (String, Value) {
    let post = ExtensionOperation::new(
        TAG,
        "traceRequest",
        "Trace a request",
        "Returns which edge and route of the current revision take a request, why other routes do not, and which modules the request passes. It sends no request and changes nothing; viewers can use it.",
    )
    .body(schemas.request::<RequestToTrace>(), json!({"method": "GET", "url": "https://shop.example.com/cart"}))
    .ok(schemas.response::<TraceReport>())
    .fails(&["400", "401", "403", "408", "413", "415", "429", "500"]);
    (PATH.to_owned(), json!({"post": post.build()}))
}

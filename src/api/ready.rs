//! `/readyz`: whether a load balancer should send requests to this server (D52).

use axum::response::{IntoResponse, Response};

use super::{App, answer::ApiError};
use crate::{model::code::Code, reconcile::health::Verdict};

/// Responds to a probe.
pub(super) fn page(app: &App) -> Response {
    if let Err(error) = app.store.health() {
        // The reason contains local paths, so it goes to the log and not to the client.
        tracing::error!(code = %error.code, reason = %error, "the store is not ready");
        return not_ready("cannot write to the store; restart the server");
    }
    match app.following.as_ref().map(|following| following.health.verdict()) {
        None | Some(Verdict::Ready) => "ready\n".into_response(),
        Some(Verdict::Degraded(state)) => format!("ready\nwarning: {state}\n").into_response(),
        Some(Verdict::NotReady(reason)) => not_ready(&reason),
    }
}

fn not_ready(reason: &str) -> Response {
    ApiError::of(Code::Unavailable, format!("not ready: {reason}")).into_response()
}

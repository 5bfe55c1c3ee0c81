//! `/readyz`: whether a load balancer should send requests to this server (D52).

use std::sync::Arc;

use axum::response::{IntoResponse, Response};

use super::{App, answer::ApiError};
use crate::{model::code::Code, reconcile::health::Verdict};

/// Responds to a probe. It may try a write, which can block.
pub(super) async fn page(app: Arc<App>) -> Response {
    let page = tokio::task::spawn_blocking(move || page_of(&app)).await;
    page.unwrap_or_else(|_| not_ready("the server is stopping"))
}

fn page_of(app: &App) -> Response {
    if let Err(error) = app.store.readiness() {
        // The reason contains local paths, so it goes to the log and not to the client.
        tracing::error!(code = %error.code, reason = %error, "the store is not ready");
        return not_ready(match app.store.health() {
            Ok(()) => "cannot write to the store, for example because the disk is full",
            Err(_) => "cannot write to the store; restart the server",
        });
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

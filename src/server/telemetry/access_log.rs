//! The access log: one line for each request, without anything secret of it (D87).

use std::{cell::OnceCell, net::IpAddr, sync::Arc, time::Instant};

use axum::{extract::Request, http::StatusCode, response::Response};
use hyper::body::Body as HttpBody;
use tracing::Level;

use super::{access_log_limit::AccessFloods, metrics, request_span::RequestSpan};
use crate::{model::id::Id, server::http::response::REQUEST_ID};

/// The log target of requests.
pub(super) const TARGET: &str = "edgewright::access";
/// The actor of a request without a valid token.
const ANONYMOUS: &str = "anonymous";
/// The path template of a request that no endpoint matches. Its path is not logged: it may contain anything.
pub(super) const NO_PATH: &str = "unknown";
/// Requests of probes and scrapers, which would hide all others.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// What is known about a request only while it is handled.
#[derive(Default)]
struct Noted {
    path: OnceCell<Arc<str>>,
    actor: OnceCell<Id>,
    client: OnceCell<IpAddr>,
}

tokio::task_local! {
    static NOTED: Noted;
}

/// Notes the path template of the current request.
pub(super) fn note_path(path: &Arc<str>) {
    let _ = NOTED.try_with(|noted| noted.path.set(Arc::clone(path)));
}

/// Notes the API key of the current request. Without effect outside the task of a request.
pub(crate) fn note_actor(key: &Id) {
    let _ = NOTED.try_with(|noted| noted.actor.set(key.clone()));
}

/// Notes the address of the client of the current request.
pub(crate) fn note_client(client: Option<IpAddr>) {
    if let Some(client) = client {
        let _ = NOTED.try_with(|noted| noted.client.set(client));
    }
}

/// Handles a request, logs it, and ends its span.
pub(crate) async fn logged<A>(
    request: Request,
    floods: Arc<AccessFloods>,
    handle: impl FnOnce(Request) -> A,
) -> Response
where
    A: Future<Output = Response>,
{
    let span = RequestSpan::start(&request);
    if span.is_none() && !tracing::enabled!(target: TARGET, Level::ERROR) {
        return handle(request).await;
    }
    let began = Instant::now();
    let method = metrics::known_method(request.method());
    let handling = handle(request);
    let noting = async move {
        let response = handling.await;
        let noted = NOTED
            .try_with(|noted| (noted.path.get().cloned(), noted.actor.get().cloned(), noted.client.get().copied()));
        (response, noted.unwrap_or_default())
    };
    let (response, (path, actor, client)) = NOTED.scope(Noted::default(), noting).await;
    let status = response.status();
    let path = path.as_deref().unwrap_or(NO_PATH);
    // Those of clients without a key, and those that are shed before the key is checked.
    let is_refused = actor.is_none() && (status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE);
    let actor = actor.as_ref().map_or(ANONYMOUS, Id::as_str);
    let duration_ms = (began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    let bytes = response.body().size_hint().exact();
    let request_id = response.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    if let Some(span) = span {
        span.end(path, status, request_id);
    }
    if is_refused && !PROBES.contains(&path) && !floods.add(client) {
        return response;
    }
    macro_rules! log_line {
        ($level:expr) => {
            tracing::event!(
                target: TARGET,
                $level,
                method,
                path,
                status = status.as_u16(),
                duration_ms,
                bytes,
                actor,
                request_id,
                "request"
            )
        };
    }
    let is_read = matches!(method, "GET" | "HEAD") && (status.is_success() || status == StatusCode::NOT_MODIFIED);
    // A line costs as much as the rest of a read, and dashboards read all the time.
    if PROBES.contains(&path) || is_read {
        log_line!(Level::DEBUG);
    } else if status.is_server_error() {
        log_line!(Level::ERROR);
    } else {
        log_line!(Level::INFO);
    }
    response
}

//! The access log: one line for each request, without anything secret of it (D87).
//!
//! Reads that succeed, probes and scrapes are below the default level: they would hide everything else, and writing a
//! line costs a third of the requests that a server can answer.

use hyper::body::Body as HttpBody;
use tracing::Level;

use super::access_log_limit::{AccessLogLimit, TARGET};
use super::request_labels::{NO_PATH, PROBES, known_method, labelled};
use super::request_span::RequestSpan;
use crate::server::prelude::*;
use crate::{model::id::Id, server::http::api_error::REQUEST_ID};

/// The actor of a request without a valid token.
const ANONYMOUS: &str = "anonymous";

/// Handles a request, logs it, and ends its span.
pub(crate) async fn logged<A>(
    request: Request,
    floods: Arc<AccessLogLimit>,
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
    let method = known_method(request.method());
    let (response, labels) = labelled(handle(request)).await;
    let status = response.status();
    let path = labels.path.get().map_or(NO_PATH, |path| &**path);
    let (actor, client) = (labels.actor.get(), labels.client.get().copied());
    // Requests of clients without a key, and requests that are shed before the key is checked.
    let is_refused = actor.is_none() && (status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE);
    let actor = actor.map_or(ANONYMOUS, Id::as_str);
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

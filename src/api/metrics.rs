//! `/metrics`, in the Prometheus text format (D24, D33).

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, OnceLock},
    task::Poll,
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::{App, answer::ApiError};
use crate::{
    model::{Kind, code::Code},
    reconcile::{health::Status, watch::Following},
};

/// Bucket bounds in seconds, from a read from memory to a commit on a slow disk.
const BUCKETS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

const UPKEEP: Duration = Duration::from_secs(5);

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The recorder of the process, created on first use.
fn recorder() -> Option<&'static PrometheusHandle> {
    RECORDER
        .get_or_init(|| {
            let seconds = Matcher::Suffix("_seconds".into());
            let builder = PrometheusBuilder::new().set_buckets_for_metric(seconds, BUCKETS).ok()?;
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            metrics::set_global_recorder(recorder).ok()?;
            metrics::describe_histogram!("edgewright_http_request_duration_seconds", "Duration of requests.");
            metrics::describe_counter!("edgewright_http_requests_total", "Handled requests.");
            metrics::describe_histogram!(
                "edgewright_reconcile_duration_seconds",
                "Duration of runs of the reconcile loop."
            );
            metrics::describe_counter!("edgewright_reconcile_total", "Runs of the reconcile loop by outcome.");
            metrics::describe_counter!(
                "edgewright_reconciliation_request_bytes_total",
                "Size of the received bodies of POST /reconciliations."
            );
            metrics::describe_gauge!("edgewright_file_cache_bytes", "Memory for the texts of sent files.");
            metrics::describe_gauge!("edgewright_file_cache_files", "Texts of sent files in memory.");
            metrics::describe_counter!(
                "edgewright_file_cache_hits_total",
                "Texts that requests referred to by digest and the server had."
            );
            metrics::describe_counter!(
                "edgewright_file_cache_misses_total",
                "Texts that requests referred to by digest and the server lacked."
            );
            metrics::describe_gauge!("edgewright_watchers", "Clients that watch changes.");
            metrics::describe_counter!("edgewright_notifications_sent_total", "Delivered notifications.");
            metrics::describe_counter!(
                "edgewright_notifications_failed_total",
                "Failed attempts to deliver a notification."
            );
            metrics::describe_gauge!(
                "edgewright_notification_lag_revisions",
                "Revisions that a target has not been notified of."
            );
            metrics::describe_gauge!("edgewright_resources", "Resources of each kind.");
            metrics::describe_gauge!("edgewright_revision", "The current revision of the store.");
            metrics::describe_gauge!("edgewright_drift", "1 while the store does not match a source's manifests.");
            metrics::describe_gauge!(
                "edgewright_reconcile_loop_up",
                "1 while a source's reconcile loop is running and not stuck."
            );
            metrics::describe_gauge!(
                "edgewright_reconcile_last_attempt_timestamp_seconds",
                "Start time of the reconcile loop's last run."
            );
            metrics::describe_gauge!(
                "edgewright_reconcile_last_success_timestamp_seconds",
                "Last time that the store matched the manifests."
            );
            Some(handle)
        })
        .as_ref()
}

/// Starts recording. Earlier events are not counted, so call it before the reconcile loop starts.
pub(crate) fn install() {
    let _ = recorder();
}

/// Periodically runs the recorder's upkeep, because samples would accumulate until the next scrape, and logs when the
/// reconcile loop is stuck.
pub(super) async fn keep_up(following: Option<Arc<Following>>) {
    let mut interval = tokio::time::interval(UPKEEP);
    let mut was_up = true;
    loop {
        interval.tick().await;
        if let Some(recorder) = recorder() {
            // It sorts the samples of all requests since the last time, which must not hold up others.
            let _ = tokio::task::spawn_blocking(move || recorder.run_upkeep()).await;
        }
        let Some(following) = &following else { continue };
        let is_up = following.health.is_up();
        if was_up && !is_up {
            tracing::error!(source = following.source, "{}", following.health.trouble().unwrap_or_default());
        }
        if is_up && !was_up {
            tracing::info!(source = following.source, "the reconcile loop runs again");
        }
        was_up = is_up;
    }
}

/// The series of one method, path template and status.
struct Series {
    seconds: metrics::Histogram,
    handled: metrics::Counter,
}

impl Series {
    /// Looks up the series, which copies and hashes all labels twice.
    fn new(method: &Method, path: &str, status: StatusCode) -> Self {
        // A client can send any method, and each would create a series.
        let method = match *method {
            Method::GET
            | Method::HEAD
            | Method::POST
            | Method::PUT
            | Method::PATCH
            | Method::DELETE
            | Method::OPTIONS => method.as_str(),
            _ => "other",
        };
        let labels = [("method", method.to_owned()), ("path", path.to_owned()), ("status", status.as_str().to_owned())];
        Self {
            seconds: metrics::histogram!("edgewright_http_request_duration_seconds", &labels),
            handled: metrics::counter!("edgewright_http_requests_total", &labels),
        }
    }

    fn add(&self, began: Instant) {
        self.seconds.record(began.elapsed().as_secs_f64());
        self.handled.increment(1);
    }
}

/// The statuses of most responses. An endpoint looks up their series once.
const FREQUENT: [StatusCode; 4] =
    [StatusCode::OK, StatusCode::CREATED, StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];

/// Counts and times the requests of an endpoint by its path template: ids would create a series per resource.
pub(super) struct Meter {
    method: Method,
    path: String,
    frequent: [OnceLock<Series>; 4],
}

impl Meter {
    /// Creates the meter of a method and a path template.
    pub(super) fn new(method: Method, path: &str) -> Self {
        Self { method, path: path.to_owned(), frequent: Default::default() }
    }

    /// Completes a request with this method, or with HEAD instead of GET.
    pub(super) async fn observe(&self, method: &Method, answering: impl Future<Output = Response>) -> Response {
        let began = Instant::now();
        let response = answered(answering).await;
        let status = response.status();
        let at = FREQUENT.iter().position(|known| *known == status && *method == self.method);
        match at.and_then(|at| self.frequent.get(at)) {
            Some(series) => series.get_or_init(|| Series::new(method, &self.path, status)).add(began),
            None => Series::new(method, &self.path, status).add(began),
        }
        response
    }
}

/// Counts and times a request that no [`Meter`] observes.
pub(super) async fn observe(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str).to_owned();
    let began = Instant::now();
    let response = answered(next.run(request)).await;
    Series::new(&method, &path, response.status()).add(began);
    response
}

/// Completes a request, also if its handler panics.
async fn answered(answering: impl Future<Output = Response>) -> Response {
    let mut answering = pin!(answering);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context))) {
        Ok(state) => state,
        // The panic's text is not sent to the client; the panic hook has logged it.
        Err(_) => {
            let error = ApiError::of(Code::Internal, "internal error in edgewright; nothing was changed");
            Poll::Ready(error.into_response())
        }
    })
    .await
}

/// Responds with the metrics page. It counts all resources, which takes long in a large store.
pub(super) async fn page(app: Arc<App>) -> Response {
    let page = tokio::task::spawn_blocking(move || page_of(&app)).await;
    page.unwrap_or_else(|_| ApiError::of(Code::Unavailable, "the server is stopping").into_response())
}

fn page_of(app: &App) -> Response {
    let snapshot = app.store.snapshot();
    metrics::gauge!("edgewright_revision").set(snapshot.revision as f64);
    for info in Kind::all() {
        metrics::gauge!("edgewright_resources", "kind" => info.name).set(snapshot.count(info.kind) as f64);
    }
    let (files, bytes) = app.files.size();
    metrics::gauge!("edgewright_watchers").set(app.watchers.count() as f64);
    metrics::gauge!("edgewright_file_cache_files").set(files as f64);
    metrics::gauge!("edgewright_file_cache_bytes").set(bytes as f64);
    if let Some(following) = &app.following {
        let (source, health) = (&following.source, &following.health);
        let flag = |state: bool| if state { 1.0 } else { 0.0 };
        let seconds = |at: Option<Timestamp>| at.map_or(0.0, |at| at.as_second() as f64);
        metrics::gauge!("edgewright_reconcile_loop_up", "source" => source.clone()).set(flag(health.is_up()));
        let drifts = health.condition().status == Status::OutOfSync;
        metrics::gauge!("edgewright_drift", "source" => source.clone()).set(flag(drifts));
        metrics::gauge!("edgewright_reconcile_last_attempt_timestamp_seconds", "source" => source.clone())
            .set(seconds(health.last_attempt()));
        metrics::gauge!("edgewright_reconcile_last_success_timestamp_seconds", "source" => source.clone())
            .set(seconds(health.last_success()));
    }
    for (target, lag) in app.outbox.iter().flat_map(|outbox| outbox.lags()) {
        metrics::gauge!("edgewright_notification_lag_revisions", "target" => target.to_owned()).set(lag as f64);
    }
    let text = recorder().map(PrometheusHandle::render).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_internal_error_and_is_counted() {
        install();
        let meter = Meter::new(Method::GET, "/panics");
        let panics = async { if FREQUENT.len() == 4 { panic!("expected by a test") } else { ().into_response() } };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let response = runtime.block_on(meter.observe(&Method::GET, panics));
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let page = recorder().unwrap().render();
        let line = r#"edgewright_http_requests_total{method="GET",path="/panics",status="500"} 1"#;
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn the_same_series_counts_all_requests_of_a_status() {
        install();
        let meter = Meter::new(Method::GET, "/counted");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for method in [Method::GET, Method::GET, Method::HEAD] {
            runtime.block_on(meter.observe(&method, async { ().into_response() }));
        }
        let page = recorder().unwrap().render();
        for (method, count) in [("GET", 2), ("HEAD", 1)] {
            let line =
                format!(r#"edgewright_http_requests_total{{method="{method}",path="/counted",status="200"}} {count}"#);
            assert!(page.contains(&line), "{page}");
        }
    }
}

//! `/metrics`, in the Prometheus text format (D24, D33).

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{
    extract::{MatchedPath, Request},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::App;
use crate::{
    model::Kind,
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
            recorder.run_upkeep();
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

/// Counts and times a request by its path template: ids would create a series per resource.
pub(super) async fn observe(request: Request, next: Next) -> Response {
    // A client can send any method, and each would create a series.
    let method = match *request.method() {
        Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::OPTIONS => {
            request.method().as_str().to_owned()
        }
        _ => "other".to_owned(),
    };
    let path = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str).to_owned();
    let began = Instant::now();
    let response = next.run(request).await;
    let labels = [("method", method), ("path", path), ("status", response.status().as_str().to_owned())];
    metrics::histogram!("edgewright_http_request_duration_seconds", &labels).record(began.elapsed().as_secs_f64());
    metrics::counter!("edgewright_http_requests_total", &labels).increment(1);
    response
}

/// Renders the metrics page.
pub(super) fn page(app: &Arc<App>) -> Response {
    let snapshot = app.store.snapshot();
    metrics::gauge!("edgewright_revision").set(snapshot.revision as f64);
    for info in Kind::all() {
        metrics::gauge!("edgewright_resources", "kind" => info.name).set(snapshot.count(info.kind) as f64);
    }
    let (files, bytes) = app.files.size();
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
    let text = recorder().map(PrometheusHandle::render).unwrap_or_default();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

//! `/metrics`, in the Prometheus text format (D24, D33, D87).
//!
//! There are two kinds. What *happens* (a request, a commit, a refusal) is counted by a recorder where it happens, because
//! nobody could count it later. What *is true* (the revision, the resources of a source, the end of a certificate) is read
//! from the server when the page is requested ([`scrape`]): a series ends with what it is about, while a recorder would
//! report a deleted certificate until the next restart. Counts of resources are made from those of an earlier revision and what
//! has changed since ([`inventory`]).
//!
//! Labels have few values, or a limit: whatever a client can choose is `other` or `unknown`. A page is large and is made anew
//! for each request; clients that ask and take nothing share one ([`pages`]).

mod exposition;
pub(crate) mod inventory;
pub(crate) mod pages;
mod process;
mod scrape;

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;

use axum::extract::{MatchedPath, State};
use axum::middleware::Next;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use super::request_labels::{NO_PATH, known_method, note_path};
use super::security;
use super::security::event::SecurityEvent;
use super::security::note::SecurityNote;
use crate::server::http::api_error::ApiError;
use crate::server::limits::guards;
use crate::server::net::connections::connection_metrics;
use crate::server::notify;
use crate::server::prelude::*;
use crate::server::state::AppState;
use crate::store::metrics::{GROUP_COMMITS, SYNC_FAILURES, SYNC_SECONDS};
use exposition::Exposition;

/// Bucket bounds in seconds, from a read from memory to a commit on a slow disk.
const BUCKETS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

const UPKEEP: Duration = Duration::from_secs(5);

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The bounds of the numbers of commits that are made durable together.
const GROUPS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// The counters and histograms, with their help. What a scrape reads from the server is described where it is written.
const HISTOGRAMS: [(&str, &str); 5] = [
    ("edgewright_http_request_duration_seconds", "Duration of requests by method, path template and status."),
    ("edgewright_reconcile_duration_seconds", "Duration of syncs and rollbacks, including those that clients send."),
    (
        "edgewright_store_commit_duration_seconds",
        "Duration of commits by result, including the wait for other commits.",
    ),
    (SYNC_SECONDS, "Duration of writing a group of commits and syncing it to disk."),
    (GROUP_COMMITS, "Commits that were made durable by one write and one sync."),
];
const LABELLED_COUNTERS: [(&str, &str); 5] = [
    ("edgewright_http_requests_total", "Handled requests by method, path template and status."),
    ("edgewright_reconcile_total", "Syncs and rollbacks by result, including those that clients send."),
    (notify::SENT, "Delivered notifications by target."),
    (notify::FAILED, "Failed attempts to deliver a notification, by target."),
    (security::EVENTS, "Events of the security log."),
];
const COUNTERS: [(&str, &str); 11] = [
    ("edgewright_reconciliation_request_bytes_total", "Size of the received bodies of POST /reconciliations."),
    ("edgewright_file_cache_hits_total", "Texts that requests referred to by digest and the server had."),
    ("edgewright_file_cache_misses_total", "Texts that requests referred to by digest and the server lacked."),
    (guards::SHED, "Requests that were refused because the server was handling too many."),
    (
        guards::RATE_LIMITED,
        "Requests that were refused because their API key had sent too many, or its owner had used up its share of the \
         history.",
    ),
    (guards::FAILED, "Requests without a valid API key or signature."),
    (security::DROPPED, "Events that are missing from the security log."),
    (SYNC_FAILURES, "Groups of commits that could not be made durable and were dropped."),
    (connection_metrics::ACCEPTED, "Accepted connections."),
    (connection_metrics::ACCEPT_FAILURES, "Failures to accept a connection, such as too many open files."),
    (connection_metrics::HANDSHAKE_FAILURES, "Failed TLS handshakes."),
];
/// The results of `edgewright_reconcile_total`.
const RESULTS: [&str; 9] =
    ["applied", "in_sync", "partly_applied", "invalid", "suspended", "rolled_back", "drifted", "failed", "panicked"];

/// The recorder of the process, created on first use.
fn recorder() -> Option<&'static PrometheusHandle> {
    RECORDER
        .get_or_init(|| {
            let seconds = Matcher::Suffix("_seconds".into());
            let builder = PrometheusBuilder::new().set_buckets_for_metric(seconds, BUCKETS).ok()?;
            let builder = builder.set_buckets_for_metric(Matcher::Full(GROUP_COMMITS.into()), GROUPS).ok()?;
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            metrics::set_global_recorder(recorder).ok()?;
            for (name, help) in HISTOGRAMS {
                metrics::describe_histogram!(name, help);
            }
            for (name, help) in LABELLED_COUNTERS {
                metrics::describe_counter!(name, help);
            }
            // A counter that appears with its first event hides that event from `increase()`.
            for (name, help) in COUNTERS {
                metrics::describe_counter!(name, help);
                metrics::counter!(name).increment(0);
            }
            for result in RESULTS {
                metrics::counter!("edgewright_reconcile_total", "result" => result).increment(0);
            }
            for event in SecurityEvent::ALL.into_iter().filter(|event| !event.is_about_log()) {
                metrics::counter!(security::EVENTS, "event" => event.as_str()).increment(0);
            }
            connection_metrics::describe();
            process::start();
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
pub(crate) async fn keep_up(registry: SourceRegistry) {
    let mut interval = tokio::time::interval(UPKEEP);
    // The sources whose loop is stuck.
    let mut down: BTreeSet<String> = BTreeSet::new();
    loop {
        interval.tick().await;
        if let Some(recorder) = recorder() {
            // Upkeep sorts the samples of all requests since the last time, which must not delay requests.
            let _ = tokio::task::spawn_blocking(move || recorder.run_upkeep()).await;
        }
        let all = registry.now();
        down.retain(|source| all.iter().any(|handle| handle.source == *source));
        for handle in all.iter() {
            match handle.health.trouble() {
                Some(trouble) if down.insert(handle.source.clone()) => {
                    tracing::error!(source = handle.source, "{trouble}");
                }
                None if down.remove(&handle.source) => {
                    tracing::info!(source = handle.source, "the reconcile loop runs again");
                }
                _ => {}
            }
        }
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
        let labels = [
            ("method", known_method(method).to_owned()),
            ("path", path.to_owned()),
            ("status", status.as_str().to_owned()),
        ];
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
pub(crate) struct Meter {
    method: Method,
    path: Arc<str>,
    frequent: [OnceLock<Series>; 4],
}

impl Meter {
    /// Creates the meter of a method and a path template.
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self { method, path: Arc::from(path), frequent: Default::default() }
    }

    /// Completes a request with this method, or with HEAD instead of GET.
    pub(crate) async fn observe(&self, method: &Method, answering: impl Future<Output = Response>) -> Response {
        let began = Instant::now();
        note_path(&self.path);
        let mut response = catch_panic(answering).await;
        if let Some(note) = response.extensions_mut().get_mut::<SecurityNote>() {
            note.set_path(&self.path);
        }
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
pub(crate) async fn observe(request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map_or(NO_PATH, MatchedPath::as_str);
    Meter::new(method.clone(), path).observe(&method, next.run(request)).await
}

/// Completes a request, also if its handler panics.
async fn catch_panic(answering: impl Future<Output = Response>) -> Response {
    let mut answering = pin!(answering);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| answering.as_mut().poll(context))) {
        Ok(state) => state,
        // The panic's text is not sent to the client; the panic hook has logged it.
        Err(_) => {
            let error = ApiError::with_code(Code::Internal, "internal error in edgewright; nothing was changed");
            Poll::Ready(error.into_response())
        }
    })
    .await
}

/// Responds with the metrics page, from a thread that may block: counting all resources takes long in a large store.
pub(crate) async fn page(State(app): State<AppState>) -> Response {
    let page = tokio::task::spawn_blocking(move || page_of(&app)).await;
    page.unwrap_or_else(|_| ApiError::with_code(Code::Unavailable, "the server is stopping").into_response())
}

fn page_of(app: &AppState) -> Response {
    let page = app.telemetry.scraped.get(|| {
        let mut page = Exposition(recorder().map(PrometheusHandle::render).unwrap_or_default());
        scrape::write(app, &mut page);
        process::write(&mut page);
        page.0
    });
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], page).into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_and_is_counted() {
        install();
        let meter = Meter::new(Method::GET, "/panics");
        let panics = async { if FREQUENT.len() == 4 { panic!("expected by a test") } else { ().into_response() } };
        let response = meter.observe(&Method::GET, panics).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let page = recorder().unwrap().render();
        let line = r#"edgewright_http_requests_total{method="GET",path="/panics",status="500"} 1"#;
        assert!(page.contains(line), "{page}");
    }

    #[tokio::test]
    async fn the_same_series_counts_all_requests_of_a_status() {
        install();
        let meter = Meter::new(Method::GET, "/counted");
        for method in [Method::GET, Method::GET, Method::HEAD] {
            meter.observe(&method, async { ().into_response() }).await;
        }
        let page = recorder().unwrap().render();
        for (method, count) in [("GET", 2), ("HEAD", 1)] {
            let line =
                format!(r#"edgewright_http_requests_total{{method="{method}",path="/counted",status="200"}} {count}"#);
            assert!(page.contains(&line), "{page}");
        }
    }
}

//! Spans of requests and syncs for OpenTelemetry (D95). Until a tracer is set, a span costs one atomic read.

use std::sync::OnceLock;

use opentelemetry::global::{BoxedSpan, BoxedTracer};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, ContextGuard, KeyValue};

/// The results of syncs that are errors.
const ERRORS: [&str; 4] = ["invalid", "partly_applied", "failed", "panicked"];

static SPANS: OnceLock<SpanFactory> = OnceLock::new();

/// Creates the spans of the process.
struct SpanFactory {
    tracer: BoxedTracer,
    /// Reads the parent of a request's span from its headers.
    propagator: Box<dyn TextMapPropagator + Send + Sync>,
}

/// Sets the tracer of the process. Only the first call has an effect.
#[cfg_attr(not(feature = "otlp"), allow(dead_code))]
pub(crate) fn set_tracer(tracer: BoxedTracer, propagator: Box<dyn TextMapPropagator + Send + Sync>) {
    let _ = SPANS.set(SpanFactory { tracer, propagator });
}

/// Starts the span of a request. The headers can name its parent.
pub(crate) fn start_request(name: &'static str, headers: &dyn Extractor) -> Option<BoxedSpan> {
    let spans = SPANS.get()?;
    let parent = spans.propagator.extract_with_context(&Context::new(), headers);
    let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Server);
    Some(spans.tracer.build_with_context(builder, &parent))
}

/// Starts the span of a stage, if the current thread is in a sync with a span.
pub(super) fn start_stage(name: &'static str) -> Option<BoxedSpan> {
    let spans = SPANS.get()?;
    let is_sync = Context::map_current(|current| current.has_active_span());
    is_sync.then(|| spans.tracer.start(name))
}

/// Runs a stage within its span.
pub(super) fn stage<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    let _span = start_stage(name);
    work()
}

/// The span of a sync and the parent of its stages, which run on the same thread. It ends when it is dropped.
pub(crate) struct SyncSpan(Option<(Context, ContextGuard)>);

impl SyncSpan {
    /// Starts the sync of a source.
    pub(crate) fn start(source: &str) -> Self {
        Self(SPANS.get().map(|spans| {
            let source = KeyValue::new("edgewright.source", source.to_owned());
            let builder = SpanBuilder::from_name("sync").with_attributes([source]);
            let context = Context::new().with_span(spans.tracer.build_with_context(builder, &Context::new()));
            let guard = context.clone().attach();
            (context, guard)
        }))
    }

    /// Sets the result of a sync.
    pub(crate) fn set_result(&self, result: &'static str) {
        let Some((context, _)) = &self.0 else { return };
        let span = context.span();
        span.set_attribute(KeyValue::new("edgewright.sync.result", result));
        if ERRORS.contains(&result) {
            // The messages can quote a manifest, and belong in the log only.
            span.set_status(Status::error(result));
        }
    }

    /// Ends the span of a sync of a commit, if the manifests are in Git, that left the store at a revision.
    pub(crate) fn end(self, result: &'static str, commit: Option<String>, revision: u64) {
        self.set_result(result);
        let Some((context, _)) = &self.0 else { return };
        let span = context.span();
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        span.set_attribute(KeyValue::new("edgewright.revision", revision));
        if let Some(commit) = commit {
            span.set_attribute(KeyValue::new("edgewright.commit", commit));
        }
    }
}

impl Drop for SyncSpan {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.set_result("panicked");
        }
    }
}

//! Exports OpenTelemetry traces to a collector with OTLP over HTTP (D95).
//!
//! The code of the crate uses only the API of OpenTelemetry; the SDK and the exporter are here, behind the feature
//! `otlp`. Without the option there is no exporter, and a request costs one more atomic read. Batches are sent by a
//! thread of the SDK, with the HTTP client of notifications, so TLS trusts the same authorities. Spans that do not fit
//! into the queue are dropped: traces must not delay requests.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use opentelemetry::{KeyValue, global::BoxedTracer, trace::TracerProvider};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{Resource, propagation::TraceContextPropagator, trace::SdkTracerProvider};
use ureq::Agent;

use super::urls::http_url;
use crate::{cli::prelude::*, http_client, reconcile::run::spans};

const CONNECT: Duration = Duration::from_secs(5);
const RESPONSE: Duration = Duration::from_secs(10);
/// The most bytes of a response that are read.
const LONGEST_RESPONSE: u64 = 64 << 10;
/// The time that the end of the server waits for the last spans.
const FLUSH: Duration = Duration::from_secs(1);

/// Parses the URL of a collector. Credentials in a URL are shown by `ps`, and the exporter would not send them.
pub(super) fn endpoint(url: &str) -> Result<String, String> {
    http_url(url).ok_or_else(|| "must be an http or https URL without credentials or query".to_owned())
}

/// Starts the export of spans to the collector at a URL.
pub(super) fn start(url: &str) -> Result<SpanExport, Diagnostic> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{url}/v1/traces"))
        .with_http_client(CollectorClient::new())
        .build()
        .map_err(|error| Diagnostic::error(Code::Parameter, format!("cannot export traces: {error}")))?;
    let resource = Resource::builder()
        .with_service_name("edgewright")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let tracer = BoxedTracer::new(Box::new(provider.tracer("edgewright")));
    spans::set_tracer(tracer, Box::new(TraceContextPropagator::new()));
    Ok(SpanExport(provider))
}

/// The running export. It sends the last spans when it is dropped.
pub(super) struct SpanExport(SdkTracerProvider);

impl Drop for SpanExport {
    fn drop(&mut self) {
        // The client has logged a failure, and a slow collector must not delay the end.
        let _ = self.0.shutdown_with_timeout(FLUSH);
    }
}

/// Sends batches of spans from the thread of the exporter, which can block.
#[derive(Debug)]
struct CollectorClient {
    agent: Agent,
    /// Whether the last batch was not accepted. An outage is logged once.
    is_failing: AtomicBool,
}

impl CollectorClient {
    fn new() -> Self {
        Self { agent: http_client::agent(CONNECT, RESPONSE), is_failing: AtomicBool::new(false) }
    }

    /// Sends a request, and returns the response of any status.
    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let (parts, body) = request.into_parts();
        let bytes: &[u8] = &body;
        let response = self.agent.run(Request::from_parts(parts, bytes));
        let response = response.map_err(|error| http_client::reason_without_url(&error))?;
        let (parts, mut body) = response.into_parts();
        let body = body.with_config().limit(LONGEST_RESPONSE).read_to_vec().unwrap_or_default();
        Ok(Response::from_parts(parts, Bytes::from(body)))
    }

    fn log_failure(&self, reason: &str) {
        if !self.is_failing.swap(true, Ordering::Relaxed) {
            tracing::warn!("cannot export traces: {reason}; spans are dropped until the collector accepts them");
        }
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        match self.send(request) {
            Ok(response) => {
                let status = response.status();
                if status.is_success() {
                    self.is_failing.store(false, Ordering::Relaxed);
                } else {
                    self.log_failure(&format!("the collector responded with status {}", status.as_u16()));
                }
                Ok(response)
            }
            Err(reason) => {
                self.log_failure(&reason);
                Err(reason.into())
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_an_http_url() {
        assert_eq!(endpoint("http://127.0.0.1:4318/").unwrap(), "http://127.0.0.1:4318");
        assert_eq!(endpoint("https://otel.example.com/tenant").unwrap(), "https://otel.example.com/tenant");
        for url in ["", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://me:secret@otel", "http://otel/?key=secret"] {
            assert!(endpoint(url).is_err(), "{url}");
        }
    }
}

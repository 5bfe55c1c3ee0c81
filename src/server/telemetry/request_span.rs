//! The span of a request for OpenTelemetry (D95). Like the access log, it has no path, query, header or body.

use opentelemetry::KeyValue;
use opentelemetry::global::BoxedSpan;
use opentelemetry::propagation::Extractor;
use opentelemetry::trace::{Span, Status};

use super::request_labels::{NO_PATH, known_method};
use crate::server::prelude::*;
use crate::{reconcile::run::spans, server::net::tls::OverTls};

/// The span of a request. It ends when it is dropped, also if the client has gone.
pub(super) struct RequestSpan {
    span: BoxedSpan,
    method: &'static str,
}

impl RequestSpan {
    /// Starts the span of a request, if spans are exported.
    pub(super) fn start(request: &Request) -> Option<Self> {
        // The conventions have these names for a method that HTTP does not define.
        let (name, method) = match known_method(request.method()) {
            "other" => ("HTTP", "_OTHER"),
            known => (known, known),
        };
        let mut span = spans::start_request(name, &SpanHeaders(request.headers()))?;
        let is_secured = request.extensions().get::<OverTls>().is_some();
        let scheme = if is_secured || request.uri().scheme_str() == Some("https") { "https" } else { "http" };
        span.set_attribute(KeyValue::new("http.request.method", method));
        span.set_attribute(KeyValue::new("url.scheme", scheme));
        Some(Self { span, method: name })
    }

    /// Ends the span with the template of the request's path, and its response.
    pub(super) fn end(self, path: &str, status: StatusCode, request_id: Option<&str>) {
        let Self { mut span, method } = self;
        if path != NO_PATH {
            span.update_name(format!("{method} {path}"));
            span.set_attribute(KeyValue::new("http.route", path.to_owned()));
        }
        span.set_attribute(KeyValue::new("http.response.status_code", i64::from(status.as_u16())));
        if let Some(id) = request_id {
            span.set_attribute(KeyValue::new("edgewright.request_id", id.to_owned()));
        }
        if status.is_server_error() {
            span.set_attribute(KeyValue::new("error.type", status.as_str().to_owned()));
            span.set_status(Status::error(""));
        }
        span.end();
    }
}

/// The headers of a request, in which the parent of its span is found.
struct SpanHeaders<'a>(&'a HeaderMap);

impl Extractor for SpanHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(|name| name.as_str()).collect()
    }
}

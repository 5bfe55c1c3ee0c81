//! `serve` exports traces to a collector, and works the same without one (D95).

use std::{
    collections::BTreeSet,
    io::Write,
    net::TcpListener,
    sync::{Arc, Mutex},
};

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message;

use crate::support::{
    http::{http, read_answer},
    manifests::edge,
    program::{Folder, until},
};

/// Exports soon, so that no test depends on the last export at the end of the server.
const SOON: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "50");

/// A collector that accepts everything.
struct Collector {
    port: u16,
    /// The head of each request, and what it exports.
    received: Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let bytes = read_answer(&mut connection);
                let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
                let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
                let export = ExportTraceServiceRequest::decode(&bytes[end + 4..]).unwrap();
                kept.lock().unwrap().push((head, export));
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
            }
        });
        Self { port, received }
    }

    fn option(&self) -> String {
        format!("--otlp-endpoint http://127.0.0.1:{}", self.port)
    }

    fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let resources = received.iter().flat_map(|(_, export)| &export.resource_spans);
        resources.flat_map(|it| &it.scope_spans).flat_map(|it| &it.spans).cloned().collect()
    }

    /// Waits for a span with a name and an attribute.
    fn wait_for(&self, name: &str, key: &str, value: &str) -> Span {
        let is_wanted = |span: &Span| span.name == name && attribute(&span.attributes, key) == value;
        until(name, || self.spans().into_iter().find(is_wanted))
    }
}

/// The value of an attribute as text.
fn attribute(attributes: &[KeyValue], key: &str) -> String {
    let mut found = attributes.iter().filter(|it| it.key == key).filter_map(|it| it.value.as_ref()?.value.clone());
    let value = match found.next() {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(other) => panic!("{key}: {other:?}"),
        None => String::new(),
    };
    assert!(found.next().is_none(), "{key} is set twice: {attributes:?}");
    value
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn has_failed(span: &Span) -> bool {
    span.status.as_ref().is_some_and(|status| status.code == StatusCode::Error as i32)
}

#[test]
fn a_request_continues_the_trace_of_its_client() {
    let collector = Collector::start();
    let folder = Folder::new();
    let serve = folder.serve_with(&collector.option(), &[SOON]);
    let bearer = format!("Bearer {}", serve.token);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Service-Version", "2"),
        ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ];
    let answer = http(&serve.address, "GET", "/edges/https/edghts_none?at=hidden", &headers, "");
    assert_eq!(answer.status, 400, "{}", answer.body);
    let request_id = answer.json()["details"]["operation_id"].as_str().unwrap().to_owned();
    let span = collector.wait_for("GET /edges/https/{p0}", "edgewright.request_id", &request_id);
    assert_eq!(hex(&span.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(hex(&span.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(span.kind, SpanKind::Server as i32);
    assert!(!has_failed(&span), "{span:?}");
    let expected = [
        ("http.request.method", "GET"),
        ("http.route", "/edges/https/{p0}"),
        ("http.response.status_code", "400"),
        ("url.scheme", "http"),
    ];
    for (key, value) in expected {
        assert_eq!(attribute(&span.attributes, key), value, "{key}");
    }
    let whole = format!("{span:?}");
    for hidden in ["hidden", "edghts_none", serve.token.as_str()] {
        assert!(!whole.contains(hidden), "{whole}");
    }
    let received = collector.received.lock().unwrap();
    let (head, export) = &received[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    let resource = export.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(attribute(&resource.attributes, "service.name"), "edgewright");
    assert_eq!(attribute(&resource.attributes, "service.version"), env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_sync_is_a_trace_with_its_stages() {
    let collector = Collector::start();
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve_with(&format!("--manifests m --source shop {}", collector.option()), &[SOON]);
    let sync = collector.wait_for("sync", "edgewright.sync.result", "applied");
    assert_eq!(attribute(&sync.attributes, "edgewright.source"), "shop");
    assert_eq!(attribute(&sync.attributes, "edgewright.revision"), "2");
    assert!(sync.parent_span_id.is_empty() && !has_failed(&sync), "{sync:?}");
    // Stages end before their sync, so they are exported with it or before.
    let spans = collector.spans();
    let stages = spans.iter().filter(|span| span.parent_span_id == sync.span_id && span.trace_id == sync.trace_id);
    let stages: BTreeSet<&str> = stages.map(|span| span.name.as_str()).collect();
    assert_eq!(stages, BTreeSet::from(["commit", "diff", "judge", "load", "resolve", "try"]));

    folder.write("m/one.yaml", &edge("one", "second").replace("hostports", "hostprots"));
    let invalid = collector.wait_for("sync", "edgewright.sync.result", "invalid");
    assert!(has_failed(&invalid), "{invalid:?}");
    assert_ne!(invalid.trace_id, sync.trace_id);
    serve.stop();
}

#[test]
fn a_request_that_fails_in_the_server_is_an_error() {
    let collector = Collector::start();
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first").replace("hostports", "hostprots"));
    let serve = folder.serve_with(&format!("--manifests m {}", collector.option()), &[SOON]);
    assert_eq!(http(&serve.address, "GET", "/readyz", &[], "").status, 503);
    let span = collector.wait_for("GET /readyz", "http.response.status_code", "503");
    assert!(has_failed(&span), "{span:?}");
    assert_eq!(attribute(&span.attributes, "error.type"), "503");
}

#[test]
fn the_last_spans_are_exported_at_the_end() {
    let collector = Collector::start();
    let folder = Folder::new();
    let hour = ("OTEL_BSP_SCHEDULE_DELAY", "3600000");
    let serve = folder.serve_with(&collector.option(), &[hour]);
    assert_eq!(serve.get("/edges/https").status, 200);
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());
    collector.wait_for("GET /edges/https", "http.response.status_code", "200");
}

#[test]
fn a_collector_that_is_down_costs_one_line_of_the_log() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let variables = [SOON, ("EDGEWRIGHT_OTLP_ENDPOINT", endpoint.as_str())];
    let serve = folder.serve_with("", &variables);
    assert_eq!(serve.get("/edges/https").status, 200);
    serve.wait_for("cannot export traces: ");
    // The second batch fails, too.
    assert_eq!(serve.get("/edges/https").status, 200);
    let run = serve.stop();
    assert_eq!((run.code, run.err.matches("cannot export traces: ").count()), (0, 1), "{}", run.all());
}

#[test]
fn an_endpoint_is_an_http_url() {
    let run = Folder::new().run("serve --listen 127.0.0.1:0 --otlp-endpoint grpc://127.0.0.1:4317");
    assert_eq!(run.code, 1, "{}", run.all());
    assert!(run.err.contains("must be an http or https URL without credentials or query"), "{}", run.err);
}

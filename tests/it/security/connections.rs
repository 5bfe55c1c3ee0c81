//! Connections that cost their clients nothing, or that do not take what they ask for, keep nobody else out (D97).

use std::{
    collections::VecDeque,
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use crate::support::{
    http::{HttpAnswer, answer, http, read_answer},
    program::{Folder, Serve, until, within},
};

/// The longest wait for a limit of one second.
const SOON: Duration = Duration::from_secs(10);

/// A value of the metrics page, or 0 before the first event of a series.
fn metric(serve: &Serve, series: &str) -> f64 {
    serve.metric(series).unwrap_or_default()
}

fn closed_for(serve: &Serve, reason: &str) -> f64 {
    metric(serve, &format!("edgewright_connections_closed_total{{reason=\"{reason}\"}}"))
}

fn connect(serve: &Serve) -> TcpStream {
    let connection = TcpStream::connect(&serve.address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    connection
}

/// Whether the other side has closed the connection, without waiting for it.
fn is_closed(connection: &mut TcpStream) -> bool {
    connection.set_nonblocking(true).unwrap();
    let read = connection.read(&mut [0]);
    connection.set_nonblocking(false).unwrap();
    match read {
        Ok(length) => length == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}

#[test]
fn silent_connections_keep_nobody_out() {
    let folder = Folder::new();
    let serve = folder.serve_with_files(128, "");
    // The client has a limit of its own, so it lets go of the oldest ones.
    let mut held: VecDeque<TcpStream> = VecDeque::new();
    for number in 0..1500 {
        let mut connection = connect(&serve);
        let part = ["", "GET / HTTP/1.1\r\nX-Slow: ", "PRI * HTTP/2.0\r\n"][number % 3];
        let _ = connection.write_all(part.as_bytes());
        held.push_back(connection);
        if held.len() > 200 {
            held.pop_front();
        }
        if number % 100 == 99 {
            assert_eq!(serve.get("/edges/https").status, 200, "after {number} silent connections");
        }
    }
    assert!(closed_for(&serve, "evicted_silent") > 1000.0);
    assert!(metric(&serve, "edgewright_connections") <= 64.0);
    assert!(metric(&serve, "edgewright_connections_accepted_total") > 1500.0);
    assert!(metric(&serve, "process_open_fds") < 128.0);
    drop(held);
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn connections_that_wait_for_a_next_request_give_way() {
    let folder = Folder::new();
    let serve = folder.serve("--max-connections 4");
    let keep = || {
        let mut connection = connect(&serve);
        connection.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let text = String::from_utf8(read_answer(&mut connection)).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
        connection
    };
    let kept: Vec<TcpStream> = (0..40).map(|_| keep()).collect();
    assert!(closed_for(&serve, "evicted_idle") >= 36.0);
    drop(kept);
}

#[test]
fn a_new_connection_is_told_if_all_others_have_requests() {
    let folder = Folder::new();
    let serve = folder.serve("--max-connections 1");
    let mut working = connect(&serve);
    let head = format!(
        "POST /edges/https HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nService-Version: 2\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        serve.token
    );
    working.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0; 25];
    working.read_exact(&mut go_on).unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100 Continue"), "{}", String::from_utf8_lossy(&go_on));
    // It is turned away before it says anything.
    let refused = answer(connect(&serve));
    assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_UNAVAILABLE"), "{}", refused.body);
    working.write_all(b"{}").unwrap();
    assert_eq!(answer(working).status, 201);
    let page = until("a free place", || {
        let text = String::from_utf8(read_answer(&mut ask(&serve, "/metrics"))).unwrap();
        text.starts_with("HTTP/1.1 200 ").then_some(text)
    });
    assert!(page.contains("edgewright_connections_refused_total{reason=\"full\"} "), "{page}");
}

/// Sends a request on a connection that the server may close at once.
fn ask(serve: &Serve, path: &str) -> TcpStream {
    let mut connection = connect(serve);
    let _ = connection.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes());
    connection
}

#[test]
fn slow_heads_and_idle_connections_are_closed() {
    let folder = Folder::new();
    let serve = folder.serve("--head-timeout 1s --idle-timeout 2s");
    let mut silent = connect(&serve);
    let mut slow = connect(&serve);
    let mut idle = connect(&serve);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(read_answer(&mut idle).starts_with(b"HTTP/1.1 200 "));
    let mut next = connect(&serve);
    next.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(read_answer(&mut next).starts_with(b"HTTP/1.1 200 "));
    within(SOON, "the end of all", || {
        // Each byte comes in time, and the head never.
        let _ = slow.write_all(b"G");
        let _ = next.write_all(b"G");
        let all = [&mut silent, &mut slow, &mut idle, &mut next].map(is_closed);
        (all == [true; 4]).then_some(())
    });
    assert!(closed_for(&serve, "head_timeout") >= 2.0);
    assert!(closed_for(&serve, "idle_timeout") >= 1.0);
}

#[test]
fn a_client_that_takes_nothing_is_closed() {
    let folder = Folder::new();
    let serve = folder.serve("--stall-timeout 1s");
    let mut connection = connect(&serve);
    let requests = "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(200);
    connection.write_all(requests.as_bytes()).unwrap();
    within(SOON, "the end of the connection", || (closed_for(&serve, "stalled") == 1.0).then_some(()));
}

/// A frame of HTTP/2.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// An HTTP/2 connection that asks for a path many times, and allows no byte of the responses.
fn greedy(serve: &Serve, path: &str, requests: u32) -> TcpStream {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    // :method GET, :scheme http, and literals for :path and :authority.
    let mut head = vec![0x82, 0x86, 0x04, path.len() as u8];
    head.extend(path.as_bytes());
    head.extend([0x01, 1, b'x']);
    for number in 0..requests {
        bytes.extend(frame(1, 5, 2 * number + 1, &head));
    }
    let mut connection = connect(serve);
    connection.write_all(&bytes).unwrap();
    connection
}

#[test]
fn http2_clients_that_take_nothing_cost_little_memory_and_are_closed() {
    let folder = Folder::new();
    let serve = folder.serve("--stall-timeout 4s");
    let before = metric(&serve, "process_resident_memory_bytes");
    let greedy: Vec<TcpStream> =
        (0..24).map(|number| greedy(&serve, ["/openapi.json", "/metrics"][number % 2], 60)).collect();
    let asked = "edgewright_http_requests_total{method=\"GET\",path=\"/openapi.json\",status=\"200\"}";
    // Those that are handled although nothing of the responses before them is taken.
    within(Duration::from_secs(20), "the requests", || (metric(&serve, asked) >= 12.0 * 8.0).then_some(()));
    // Copies of the document for all requests would be 350 MB.
    let after = metric(&serve, "process_resident_memory_bytes");
    assert!(after - before < 120e6, "{before} {after}");
    within(Duration::from_secs(20), "the end of all", || (closed_for(&serve, "stalled") >= 24.0).then_some(()));
    drop(greedy);
}

#[test]
fn a_reader_that_is_slow_but_reads_gets_everything() {
    let folder = Folder::new();
    let serve = folder.serve("--stall-timeout 2s");
    let document = http(&serve.address, "GET", "/openapi.json", &[], "").body;
    let mut connection = ask(&serve, "/openapi.json");
    // Longer in all than a client may take nothing.
    let (mut text, mut part) = (Vec::new(), [0; 64 << 10]);
    loop {
        match connection.read(&mut part).unwrap() {
            0 => break,
            length => text.extend_from_slice(&part[..length]),
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.split_once("\r\n\r\n").unwrap().1, document);
}

#[test]
fn what_is_no_request_is_refused_with_the_common_body() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let refused = |bytes: &[u8]| -> HttpAnswer {
        let mut connection = connect(&serve);
        // The server may have refused before it has everything. A client that ends its side does not wait for an answer.
        let _ = connection.write_all(bytes);
        answer(connection)
    };
    for (bytes, status, code) in [
        (b"GARBAGE\r\n\r\n".to_vec(), 400, "ERR_EDGEWRIGHT_MALFORMED_REQUEST"),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n".to_vec(), 400, "ERR_EDGEWRIGHT_MALFORMED_REQUEST"),
        (format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000)).into(), 431, "ERR_EDGEWRIGHT_HEAD_TOO_LARGE"),
        (b"GET /healthz HTTP/1.1\r\n\r\n".to_vec(), 400, "ERR_EDGEWRIGHT_MALFORMED_REQUEST"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n".to_vec(), 400, "ERR_EDGEWRIGHT_MALFORMED_REQUEST"),
    ] {
        let refused = refused(&bytes);
        assert_eq!((refused.status, refused.code().as_str()), (status, code), "{}", refused.body);
        assert!(refused.json()["details"]["operation_id"].as_str().is_some_and(|id| id.starts_with("op_")));
        assert_eq!(refused.json()["status_code"], Value::from(status));
    }
}

#[test]
fn one_address_has_a_limit_if_it_is_set() {
    let folder = Folder::new();
    let serve = folder.serve("--max-connections-per-address 3");
    let mut held: Vec<TcpStream> = (0..10).map(|_| connect(&serve)).collect();
    assert_eq!(serve.get("/edges/https").status, 200);
    until("seven closed connections", || {
        let closed = held.iter_mut().map(is_closed).filter(|is_closed| *is_closed).count();
        (closed >= 7).then_some(())
    });
}

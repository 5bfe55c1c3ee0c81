//! Floods of requests that nobody has authenticated: they fill no log, and take no places of others (D87, D90).

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use super::attacks::total;
use crate::support::{
    http::{answer, http},
    program::{Folder, Serve, until},
};

#[test]
fn refused_requests_without_a_key_have_few_lines_and_are_all_counted() {
    let folder = Folder::new();
    let serve = folder.serve("--log-format json");
    let nowhere = || http(&serve.address, "GET", "/nowhere", &[], "").status;
    assert!((0..15).all(|_| http(&serve.address, "GET", "/api_keys", &[], "").status == 401));
    assert!((0..50).all(|_| nowhere() == 404));
    // Whoever has a key is always logged.
    for _ in 0..15 {
        assert_eq!(serve.call("POST", "/edges/https", "{}").status / 100, 2, "an edge may be empty");
        assert_eq!(serve.call("POST", "/edges/https", "[]").status, 400);
    }
    let metrics = serve.get("/metrics").body;
    assert!(metrics.contains("path=\"unknown\",status=\"404\"} 50\n"), "{metrics}");
    let run = serve.stop();
    let events = run.err.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let access: Vec<Value> = events.filter(|event| event["target"] == "edgewright::access").collect();
    let lines = access.iter().filter(|line| line["actor"] == "anonymous").count() as u64;
    let counts: Vec<u64> = access.iter().filter_map(|line| line["count"].as_u64()).collect();
    // `stop` asks for one more. On a very slow machine an interval ends meanwhile.
    assert_eq!(lines + counts.iter().sum::<u64>(), 66, "{}", run.err);
    assert!((10..=30).contains(&lines) && !counts.is_empty() && counts.len() <= 3, "{lines} {counts:?}");
    assert!(access.iter().any(|line| line["client"] == "127.0.0.1"));
    let of_key = access.iter().filter(|line| line["path"] == "/edges/https" && line["actor"] != "anonymous");
    assert_eq!(of_key.count(), 30);
}

/// A large webhook whose body has come in part.
fn large_webhook(serve: &Serve, client: &str) -> TcpStream {
    let mut connection = TcpStream::connect(&serve.address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!(
        "POST /hooks/git HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\nX-Gitlab-Token: wrong\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.read_exact(&mut [0; 25]).unwrap();
    // A body that has come this far has all its time. The server can close a connection that has to go while it sends.
    let _ = connection.write_all(b"380000\r\n").and_then(|()| connection.write_all(&vec![b' '; 0x38_0000]));
    connection
}

#[test]
fn large_webhooks_of_one_address_leave_memory_to_others() {
    let folder = Folder::new();
    folder.write("secret", "hook");
    folder.write("config.yaml", "hooks: {git: {secret_file: secret}}\n");
    let serve = folder.serve_with("--trusted-proxy 127.0.0.1", &[("EDGEWRIGHT_CONFIG", "config.yaml")]);
    // A quarter of 256 MiB holds 18 of them.
    let mut other = large_webhook(&serve, "203.0.113.10");
    let held: Vec<TcpStream> = (0..24).map(|_| large_webhook(&serve, "203.0.113.9")).collect();
    let shed = until("a webhook that had to go", || {
        let shed = total(&serve.get("/metrics").body, "edgewright_http_requests_shed_total");
        (shed >= 7.0).then_some(shed)
    });
    assert!(shed <= 8.0, "{shed}");
    other.write_all(b"\r\n0\r\n\r\n").unwrap();
    let answered = answer(other);
    assert_eq!(answered.status, 401, "its signature is checked: {}", answered.body);
    let headers = [("X-Forwarded-For", "203.0.113.9"), ("X-Gitlab-Token", "hook")];
    assert_eq!(http(&serve.address, "POST", "/hooks/git", &headers, "{}").status, 202);
    drop(held);
}

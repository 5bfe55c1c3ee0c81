//! What nobody sends on purpose: bodies that are no JSON, paths that are no paths, and more than fits (D39).

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
};
use crate::support::server::{Answer, BASE_URL, Server};

#[test]
fn bad_bodies_and_paths() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [syntax_rows(), type_rows(), duplicate_rows(), content_type_rows(), path_rows(), depth_rows()].concat()
}

fn syntax_rows() -> Vec<Row> {
    let texts: [&[u8]; 18] = [
        b"{",
        b"}",
        b"{\"description\":}",
        b"{\"description\" \"x\"}",
        b"{'description': 'x'}",
        b"{description: 1}",
        b"{\"description\": \"x\",}",
        b"{} {}",
        b"{}x",
        b"// comment\n{}",
        b"nul",
        b" \n",
        b"{\"description\": \"\\ud800\"}",
        b"{\"description\": \"\\x\"}",
        b"{\"description\": \"a\nb\"}",
        b"{\"description\": \"\xff\"}",
        b"\xef\xbb\xbf{}",
        b"{\"description\": 1e999}",
    ];
    let mut rows = Vec::from(texts.map(|text| {
        row(format!("`{}` is no JSON", text.escape_ascii()))
            .send_bytes("POST /api_keys", text)
            .fails(400, "SYNTAX", "")
            .route()
            .send_bytes(&format!("PATCH {ROUTE}"), text)
            .fails(400, "SYNTAX", "")
            .send_bytes(&format!("PUT {ROUTE}/compression"), text)
            .fails(400, "SYNTAX", "")
    }));
    rows.push(
        row("a fault of syntax is named by its line")
            .send_bytes("POST /api_keys", "{\n  \"description\": x\n}")
            .fails(400, "SYNTAX", "")
            .says("line 2"),
    );
    rows.push(
        row("white space around a body, escapes and all of Unicode are fine")
            .send_bytes("POST /api_keys", " \r\n\t{\"description\": \"\\u00e9\\ud83e\\udd80 \\u0000 \u{202e}\"} \n")
            .succeeds(201)
            .shows("/description", json!("é🦀 \u{0} \u{202e}")),
    );
    rows
}

fn type_rows() -> Vec<Row> {
    let bodies = [json!([]), json!([{}]), json!("{}"), json!(1), json!(true)];
    let mut rows = Vec::from(bodies.map(|body| {
        row(format!("`{body}` is JSON, and no object"))
            .send("POST /api_keys", body.clone())
            .fails(400, "WRONG_TYPE", "")
            .route()
            .send(&format!("PATCH {ROUTE}"), body.clone())
            .fails(400, "WRONG_TYPE", "")
            .send(&format!("PUT {ROUTE}/compression"), body)
            .fails(400, "WRONG_TYPE", "")
    }));
    for body in ["", "null"] {
        rows.push(
            row(format!("`{body}` is no body where one is needed"))
                .send_bytes("POST /edges/https", body)
                .fails(400, "SYNTAX", "")
                .edge()
                .send_bytes("PATCH /edges/https/{edge}", body)
                .fails(400, "SYNTAX", ""),
        );
    }
    rows.push(
        row("the body of a GET or DELETE is not read")
            .edge()
            .send_bytes("GET /edges/https/{edge}", "{")
            .with("Content-Type", "text/plain")
            .succeeds(200)
            .send_bytes("DELETE /edges/https/{edge}", "{")
            .with("Content-Type", "text/plain")
            .succeeds(204),
    );
    rows
}

fn duplicate_rows() -> Vec<Row> {
    vec![
        row("a key that stands twice is refused, even with the same value")
            .send_bytes("POST /api_keys", r#"{"description": "a", "description": "a"}"#)
            .fails(400, "DUPLICATE_KEY", "/description"),
        row("two such keys are told at once, wherever they stand")
            .route()
            .send_bytes(
                &format!("PATCH {ROUTE}"),
                r#"{"oauth": {"provider": {"github": {}, "github": {}}}, "policies": {"inbound": [{"name": "", "name": ""}]}}"#,
            )
            .fails(400, "DUPLICATE_KEY", "/oauth/provider/github")
            .also("DUPLICATE_KEY", "/policies/inbound/0/name"),
        row("an integer that would lose digits is refused, however deep it stands (D48)")
            .send_bytes(
                "PUT /edges/tls/edgtls_{n}/policies",
                r#"{"inbound": [{"actions": [{"type": "log", "config": {"Metadata": {"n": 12345678901234567890123}}}]}]}"#,
            )
            .fails(400, "OUT_OF_RANGE", "/inbound/0/actions/0/config/Metadata/n")
            .send_bytes("POST /api_keys", "18446744073709551616")
            .fails(400, "OUT_OF_RANGE", "")
            .send_bytes(
                "PUT /edges/tls/edgtls_{n}/policies",
                r#"{"inbound": [{"actions": [{"type": "log", "config": {"a": 18446744073709551615, "b": 1e22}}]}]}"#,
            )
            .succeeds(200)
            .shows("/inbound/0/actions/0/config", json!({"a": u64::MAX, "b": 1e22})),
        row("a key that stands twice does not hide the faults of other fields (D9)")
            .send_bytes(
                "POST /edges/https",
                r#"{"description": "a", "description": "b", "hostports": ["a:0"],
                    "mutual_tls": {"certificate_authority_ids": ["ca_gone"]}}"#,
            )
            .fails(400, "DUPLICATE_KEY", "/description")
            .also("INVALID_FORMAT", "/hostports/0")
            .also("UNKNOWN_REFERENCE", "/mutual_tls/certificate_authority_ids/0"),
        row("null and a value are two keys as well")
            .send_bytes("POST /api_keys", r#"{"description": null, "description": "a"}"#)
            .fails(400, "DUPLICATE_KEY", "/description"),
    ]
}

fn content_type_rows() -> Vec<Row> {
    let bad = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "text/json",
        "json",
        "*/*",
        "",
        "application/merge-patch+json",
        "application/yaml",
    ];
    let good = [
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "application/json ; x=\"a;b\"",
    ];
    let mut rows = vec![
        row("a body without a content type is refused")
            .send_bytes("POST /api_keys", "{}")
            .without("Content-Type")
            .fails(415, "CONTENT_TYPE", ""),
        row("a body-less request needs no content type (D5)")
            .edge()
            .call("DELETE /edges/https/{edge}")
            .succeeds(204)
            .call("POST /api_keys")
            .fails(400, "SYNTAX", ""),
        row("two content types are none")
            .send_bytes("POST /api_keys", "{}")
            .with("Content-Type", "application/json")
            .with("Content-Type", "application/json")
            .fails(415, "CONTENT_TYPE", ""),
    ];
    rows.extend(bad.map(|value| {
        row(format!("`{value}` is not JSON's type"))
            .send_bytes("POST /api_keys", "{}")
            .with("Content-Type", value)
            .fails(415, "CONTENT_TYPE", "")
    }));
    rows.extend(good.map(|value| {
        row(format!("`{value}` is JSON's type"))
            .send_bytes("POST /api_keys", "{}")
            .with("Content-Type", value)
            .succeeds(201)
    }));
    rows
}

fn path_rows() -> Vec<Row> {
    let long = "x".repeat(10_000);
    let unknown = [
        "/".to_owned(),
        "/api_key".into(),
        "/API_KEYS".into(),
        "/api_keys/".into(),
        "//api_keys".into(),
        "/api_keys/{admin_key}/".into(),
        "/api_keys/{admin_key}/token".into(),
        "/edges".into(),
        "/edges/https/".into(),
        "/edges/https/x/routes/".into(),
        "/edges/https/x/routes/y/oath".into(),
        "/edges/https//routes".into(),
        "/v2/api_keys".into(),
        "/saml/".into(),
        "/healthz/".into(),
        "/docs/nothing".into(),
        // One segment, and none that exists.
        format!("/api_keys/{long}"),
        "/api_keys/%FF".into(),
        "/api_keys/%C3".into(),
        "/api_keys/%zz".into(),
        "/api_keys/%00".into(),
        "/api_keys/..%2F..%2Fetc%2Fpasswd".into(),
        "/api_keys/%20{admin_key}".into(),
        "/edges/https/%FF/routes/%FE".into(),
        "/edges/tls/%FF/backend".into(),
        "/event_subscriptions/x/sources/%FF".into(),
    ];
    let mut rows =
        Vec::from(unknown.map(|path| {
            row(format!("{path:.60} leads nowhere")).call(&format!("GET {path}")).fails(404, "NOT_FOUND", "")
        }));
    rows.push(
        row("an id of 10 kB is no id of a TLS edge")
            .send(&format!("PUT /edges/tls/{long}/backend"), json!({"backend_id": "bkd_1"}))
            .fails(400, "INVALID_FORMAT", ""),
    );
    rows.push(row("what shows the documentation refuses in the same form (D9)").call("POST /docs/script.js").fails(
        405,
        "METHOD_NOT_ALLOWED",
        "",
    ));
    rows
}

/// So many mappings inside each other.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({"a": inner}))
}

/// A policies module that nests so many levels as a whole.
fn deep_policies(levels: usize) -> Value {
    json!({"inbound": [{"actions": [{"type": "log", "config": nested(levels - 5)}]}]})
}

fn depth_rows() -> Vec<Row> {
    let put = "PUT /edges/tls/edgtls_{n}/policies";
    let mut rows = vec![
        row("JSON nests up to 128 levels (D39)")
            .send(put, deep_policies(100))
            .succeeds(200)
            .shows("/inbound/0/actions/0/config", nested(95))
            .send(put, deep_policies(128))
            .succeeds(200)
            .send(put, deep_policies(129))
            .fails(400, "SYNTAX", ""),
    ];
    let bombs = [("[", "]"), ("{\"a\":", "}"), ("[", ""), ("{\"a\":[", "]}")];
    rows.extend(bombs.map(|(open, close)| {
        row(format!("5000 levels of `{open}` closed by `{close}` are refused"))
            .send_bytes("POST /api_keys", format!("{}1{}", open.repeat(5000), close.repeat(5000)))
            .fails(400, "SYNTAX", "")
    }));
    let list = |values: usize| format!("{{\"ip_policy_ids\": [{}1]}}", "1,".repeat(values));
    let key = "k".repeat(1_000_000);
    rows.extend([
        row("a body holds at most 200,000 values (D48)")
            .send_bytes("POST /ip_restrictions", list(200_000))
            .fails(413, "BODY_TOO_LARGE", "")
            .says("200000 values"),
        row("a key that contains a secret is named neither in the message nor in the field")
            .route()
            .send(&format!("PUT {ROUTE}/compression"), json!({"client_secret:hunter2": 1}))
            .fails(400, "UNKNOWN_FIELD", "")
            .hides("hunter2")
            .send(&format!("PUT {ROUTE}/compression"), json!({"client_secret": 1}))
            .fails(400, "UNKNOWN_FIELD", "/client_secret"),
        row("a key has at most 4096 bytes, and an answer never repeats a long one (D48)")
            .send_bytes("POST /api_keys", format!("{{\"{key}\": 1}}"))
            .fails(400, "TOO_LONG", "")
            .hides(&key[..200])
            .send_bytes("POST /api_keys", format!("{{\"{}\": 1}}", &key[..4096]))
            .fails(400, "UNKNOWN_FIELD", "")
            .hides(&key[..200]),
        row("a secret that is written as a number is in no answer")
            .route()
            .send_bytes(
                &format!("PUT {ROUTE}/webhook_verification"),
                r#"{"provider": "github", "secret": 471147114711}"#,
            )
            .fails(400, "WRONG_TYPE", "/secret")
            .hides("471147114711"),
    ]);
    rows
}

/// Whatever was accepted can be read when the program starts again.
#[test]
fn the_deepest_body_that_is_accepted_does_not_spoil_the_store() {
    let server = Server::start();
    let accepted = (100..=128).rev().find(|levels| {
        let edge = server.call("POST", "/edges/https", Some(json!({}))).str("/id").to_owned();
        let body = json!({"match_type": "exact_path", "match": "/"});
        let route = server.call("POST", &format!("/edges/https/{edge}/routes"), Some(body)).str("/id").to_owned();
        let path = format!("/edges/https/{edge}/routes/{route}/policies");
        server.call("PUT", &path, Some(deep_policies(*levels))).status == 200
    });
    assert!(accepted.is_some());
    if let Err(error) = server.reopen() {
        panic!("with a body of {accepted:?} levels the store cannot be opened again: {error}");
    }
}

#[test]
fn a_body_that_does_not_arrive_is_given_up() {
    let server = Server::start();
    let stalled = head(&server, "POST /api_keys", "Content-Type: application/json\r\nContent-Length: 10\r\n") + "{";
    let answer = server.raw(stalled.as_bytes()).unwrap();
    assert_eq!((answer.status, answer.str("/error_code")), (408, "ERR_EDGEWRIGHT_TIMEOUT"));
}

fn head(server: &Server, call: &str, more: &str) -> String {
    format!(
        "{call} HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: evil.example\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nService-Version: 2\r\n{more}\r\n",
        server.admin
    )
}

fn refused(answer: Option<Answer>, status: u16, code: &str) {
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, answer.str("/error_code")), (status, code), "{}", answer.text);
    assert_eq!(answer.header("request-id"), Some(answer.str("/details/operation_id")));
}

#[test]
fn a_body_has_at_most_2_mib() {
    let server = Server::start();
    let of = |bytes: usize| format!("{{\"description\": \"x\"{}}}", " ".repeat(bytes - 20)).into_bytes();
    let mut headers = crate::support::server::usual_headers(&server.admin);
    headers.push(("Content-Type".into(), "application/json".into()));
    let full = server.send("POST", "/api_keys", &headers, Some(of(2 << 20)));
    assert_eq!(full.status, 201, "{}", full.text);

    let over = (2 << 20) + 1;
    let declared = format!("Content-Length: {over}\r\nContent-Type: application/json\r\n");
    let too_large = "ERR_EDGEWRIGHT_BODY_TOO_LARGE";
    refused(server.raw(head(&server, "POST /api_keys", &declared).as_bytes()), 413, too_large);
    // D3: the size comes before the content type, and the permission before the size.
    let plain = declared.replace("application/json", "text/plain");
    refused(server.raw(head(&server, "POST /api_keys", &plain).as_bytes()), 413, too_large);
    let viewer = head(&server, "POST /api_keys", &plain).replace(&server.admin, &server.viewer);
    refused(server.raw(viewer.as_bytes()), 403, "ERR_EDGEWRIGHT_FORBIDDEN");

    // In chunks the length shows only when it is there.
    let chunked = "Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n";
    let mut request = head(&server, "POST /api_keys", chunked).into_bytes();
    request.extend(format!("{over:x}\r\n").into_bytes());
    request.extend(of(over));
    refused(server.raw(&request), 413, too_large);
}

#[test]
fn addresses_do_not_follow_the_host_header() {
    let server = Server::start();
    let more = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    let request = head(&server, "POST /edges/https", more) + "{}";
    let answer = server.raw(request.as_bytes()).unwrap();
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(answer.str("/uri"), format!("{BASE_URL}/edges/https/{}", answer.str("/id")));
    assert!(!answer.text.contains("evil") && !answer.headers.iter().any(|(_, value)| value.contains("evil")));
}

#[test]
fn head_is_get_without_its_body() {
    let server = Server::start();
    for path in ["/api_keys".to_owned(), format!("/api_keys/{}", server.key_ids[0]), "/nothing".to_owned()] {
        let (get, head) = (server.call("GET", &path, None), server.call("HEAD", &path, None));
        assert_eq!((head.status, head.text.as_str()), (get.status, ""), "{path}");
        for header in ["etag", "content-length"] {
            assert_eq!(head.header(header), get.header(header), "{path} {header}");
        }
        let mut headers = crate::support::server::usual_headers(&server.admin);
        headers.push(("If-None-Match".into(), "*".into()));
        if head.status == 200 {
            let answer = server.send("HEAD", &path, &headers, None);
            assert_eq!(
                (answer.status, answer.header("content-length")),
                (304, None),
                "{path}: not the length of a copy"
            );
        }
    }
}

#[test]
fn an_id_may_be_written_with_percent_escapes() {
    let server = Server::start();
    let escaped = server.key_ids[0].replace('_', "%5F").replace('k', "%6b");
    let answer = server.call("GET", &format!("/api_keys/{escaped}"), None);
    assert_eq!((answer.status, answer.str("/id")), (200, server.key_ids[0].as_str()));
    assert_eq!(answer.str("/uri"), format!("{BASE_URL}/api_keys/{}", server.key_ids[0]));
}

#[test]
fn what_is_not_http_does_no_harm() {
    let server = Server::start();
    let garbage: [&[u8]; 5] = [
        b"GARBAGE\r\n\r\n",
        b"GET /api_keys HTTP/9.9\r\n\r\n",
        b"GET /api keys HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api_keys HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    ];
    for bytes in garbage {
        if let Some(answer) = server.raw(bytes) {
            assert_eq!(answer.status, 400, "{}", bytes.escape_ascii());
        }
        assert_eq!(server.call("GET", "/api_keys", None).status, 200, "after {}", bytes.escape_ascii());
    }
}

//! Tests of the formats, with lines as the servers write them, and as an attacker makes them.

use std::borrow::Cow;

use super::{AccessLine, AccessLogFormat, LONGEST_LINE, LineProblem};

const COMBINED: AccessLogFormat = AccessLogFormat::Combined;
const VHOST: AccessLogFormat = AccessLogFormat::VhostCombined;
const JSON: AccessLogFormat = AccessLogFormat::Json;

/// A request with the fields that most lines have.
fn line<'l>(method: &'l str, path: &'l str, client: &'l str, bytes: u64) -> AccessLine<'l> {
    AccessLine {
        method: Cow::Borrowed(method),
        host: None,
        port: None,
        path: Cow::Borrowed(path),
        client: Cow::Borrowed(client.as_bytes()),
        user_agent: None,
        bytes,
    }
}

/// Reads a line in the format that is recognized, which is the expected one.
#[track_caller]
fn read(format: AccessLogFormat, text: &str) -> Result<AccessLine<'_>, LineProblem> {
    assert_eq!(AccessLogFormat::recognize(text.as_bytes()), Some(format), "{text}");
    format.read(text.as_bytes())
}

#[test]
fn the_common_and_the_combined_format() {
    let common = r#"192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET /cart?id=7 HTTP/1.1" 200 512"#;
    assert_eq!(read(COMBINED, common), Ok(line("GET", "/cart", "192.0.2.7", 512)));
    let combined =
        r#"2001:db8::7 - anna b [10/Oct/2026:13:55:36 +0000] "POST / HTTP/2.0" 302 - "https://a.example/" "curl/8.1""#;
    let expected = AccessLine { user_agent: Some("curl/8.1".into()), ..line("POST", "/", "2001:db8::7", 0) };
    assert_eq!(read(COMBINED, combined), Ok(expected));
    let without_agent = r#"192.0.2.7 - - [x] "HEAD /a#b HTTP/1.0" 304 0 "-" "-" "further" 0.001"#;
    let expected = AccessLine { user_agent: Some("".into()), ..line("HEAD", "/a", "192.0.2.7", 0) };
    assert_eq!(read(COMBINED, without_agent), Ok(expected));
    let proxied = r#"192.0.2.7 - - [x] "GET http://Shop.example.com:8080/a?b HTTP/1.1" 200 1"#;
    let expected =
        AccessLine { host: Some("Shop.example.com".into()), port: Some(8080), ..line("GET", "/a", "192.0.2.7", 1) };
    assert_eq!(read(COMBINED, proxied), Ok(expected));
}

#[test]
fn a_host_comes_first_with_or_without_its_port() {
    let apache = r#"shop.example.com:8443 192.0.2.7 - - [x] "GET / HTTP/1.1" 200 5 "-" "a \"b\" \\ c""#;
    let expected = AccessLine {
        host: Some("shop.example.com".into()),
        port: Some(8443),
        user_agent: Some(r#"a "b" \ c"#.into()),
        ..line("GET", "/", "192.0.2.7", 5)
    };
    assert_eq!(read(VHOST, apache), Ok(expected));
    let nginx = r#"[2001:db8::1] 192.0.2.7 - bob [x] "GET / HTTP/1.1" 200 5"#;
    let expected = AccessLine { host: Some("[2001:db8::1]".into()), ..line("GET", "/", "192.0.2.7", 5) };
    assert_eq!(read(VHOST, nginx), Ok(expected));
    // A server without a name for a request writes a `-`.
    assert_eq!(VHOST.read(br#"- 192.0.2.7 - - [x] "GET / HTTP/1.1" 200 5"#), Ok(line("GET", "/", "192.0.2.7", 5)));
}

#[test]
fn escapes_are_replaced() {
    let text = r#"192.0.2.7 - - [x] "GET /caf\xC3\xA9\x22 HTTP/1.1" 200 5"#;
    assert_eq!(read(COMBINED, text), Ok(line("GET", "/café\"", "192.0.2.7", 5)));
    let cut = r#"192.0.2.7 - - [x] "GET /\xC HTTP/1.1" 200 5"#;
    assert_eq!(read(COMBINED, cut), Ok(line("GET", "/xC", "192.0.2.7", 5)));
    let text =
        r#"{"request_method": "GET", "request_uri": "/\u00e9\ud83d\ude00\ud83d\u0041\/\x41", "remote_addr": "a"}"#;
    assert_eq!(read(JSON, text), Ok(line("GET", "/é😀\u{fffd}A/A", "a", 0)));
}

#[test]
fn nginx_writes_json_with_the_names_of_its_variables() {
    let text = r#"{"time_iso8601":"2026-10-10T13:55:36+00:00","remote_addr":"192.0.2.7","request":"GET /cart?id=7 HTTP/1.1","status":200,"body_bytes_sent":"512","bytes_sent":900,"host":"shop.example.com","scheme":"https","server_port":"8443","http_user_agent":"","upstream":{"times":["0.1","}"],"x":null}}"#;
    let expected = AccessLine {
        host: Some("shop.example.com".into()),
        port: Some(8443),
        user_agent: Some("".into()),
        ..line("GET", "/cart", "192.0.2.7", 512)
    };
    assert_eq!(read(JSON, text), Ok(expected));
    let parts = r#"{ "request_method" : "PUT", "uri" : "/rewritten", "request_uri" : "/asked?x" , "http_host":"a.example:8080", "server_name":"_" }"#;
    let expected = AccessLine { host: Some("a.example".into()), port: Some(8080), ..line("PUT", "/asked", "", 0) };
    assert_eq!(read(JSON, parts), Ok(expected));
}

#[test]
fn envoy_writes_json_with_the_names_of_its_examples() {
    let istio = r#"{"authority":"shop.example.com","bytes_received":0,"bytes_sent":77,"downstream_remote_address":"[2001:db8::7]:5120","method":"GET","path":"/api?q","protocol":"HTTP/2","response_code":200,"user_agent":null,"x_forwarded_for":"192.0.2.9"}"#;
    let expected = AccessLine {
        host: Some("shop.example.com".into()),
        user_agent: Some("".into()),
        ..line("GET", "/api", "[2001:db8::7]", 77)
    };
    assert_eq!(read(JSON, istio), Ok(expected));
    let gateway = r#"{":authority":"shop.example.com:444","bytes_sent":"7","method":"GET","x-envoy-origin-path":"/api","user-agent":"shop-app/1","x-forwarded-for":"192.0.2.9, 10.0.0.1"}"#;
    let expected = AccessLine {
        host: Some("shop.example.com".into()),
        port: Some(444),
        user_agent: Some("shop-app/1".into()),
        ..line("GET", "/api", "192.0.2.9", 7)
    };
    assert_eq!(read(JSON, gateway), Ok(expected));
}

#[test]
fn what_is_no_request_is_told_from_what_cannot_be_read() {
    for request in ["-", r"\x16\x03\x01", "", "GET", "CONNECT a.example:443 HTTP/1.1", "OPTIONS * HTTP/1.1", "G{T / H"]
    {
        let text = format!(r#"192.0.2.7 - - [x] "{request}" 400 0 "-" "-""#);
        assert_eq!(COMBINED.read(text.as_bytes()), Err(LineProblem::NoRequest), "{text}");
    }
    assert_eq!(JSON.read(br#"{"request":"","status":400}"#), Err(LineProblem::NoRequest));
    assert_eq!(JSON.read(br#"{"request":"\u0016","status":400}"#), Err(LineProblem::NoRequest));
    for text in [
        "",
        "hello",
        "192.0.2.7 - - [x]",
        r#"192.0.2.7 - - [x] "GET / HTTP/1.1" 200"#,
        r#"192.0.2.7 - - [x] "GET / HTTP/1.1 200 5"#,
        r#"192.0.2.7 - - [x] "GET / HTTP/1.1" two 5"#,
        r#"192.0.2.7 - - [x] "GET / HTTP/1.1" 200 five "-" "-""#,
        r#"192.0.2.7 - - [x] "GET /\" 200 5"#,
    ] {
        assert_eq!(COMBINED.read(text.as_bytes()), Err(LineProblem::OtherFormat), "{text}");
        assert_eq!(AccessLogFormat::recognize(text.as_bytes()), None, "{text}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(1000));
    for text in ["{", "{}", r#"{"method":"GET""#, r#"{"method":"GET"} x"#, r#"{"a":1}"#, r#"{"a":tru"#, deep.as_str()] {
        assert_eq!(JSON.read(text.as_bytes()), Err(LineProblem::OtherFormat), "{text}");
    }
    let long = [b"192.0.2.7 - - [x] \"GET /".to_vec(), vec![b'a'; LONGEST_LINE]].concat();
    assert_eq!(COMBINED.read(&long), Err(LineProblem::TooLong));
}

#[test]
fn a_client_writes_no_field_but_its_own() {
    // A user name and an agent that look like the rest of a line.
    let user = r#"192.0.2.7 - x] \"GET /fake HTTP/1.1\" 200 9 [x] "GET /real HTTP/1.1" 200 5 "-" "\" 200 9""#;
    let read = COMBINED.read(user.as_bytes());
    assert_eq!(read.map(|line| (line.path.into_owned(), line.bytes)), Ok(("/real".to_owned(), 5)));
    let agent = r#"{"request":"GET /real HTTP/1.1","http_user_agent":"\",\"request\":\"GET /fake HTTP/1.1"}"#;
    assert_eq!(JSON.read(agent.as_bytes()).map(|line| line.path.into_owned()), Ok("/real".to_owned()));
}

#[test]
fn bytes_that_are_no_text_are_read() {
    let text = [b"192.0.2.7 - - [x] \"GET /\xff\xfe HTTP/1.1\" 200 5 \"-\" \"\x80\"".as_slice()].concat();
    let read = COMBINED.read(&text);
    assert_eq!(read.map(|line| line.path.into_owned()), Ok("/\u{fffd}\u{fffd}".to_owned()));
}

#[test]
fn every_format_has_a_name() {
    for format in AccessLogFormat::ALL {
        assert_eq!(AccessLogFormat::from_name(format.as_str()), Some(format));
    }
    assert_eq!(AccessLogFormat::from_name("common"), Some(COMBINED));
    assert_eq!(AccessLogFormat::from_name("xml"), None);
}

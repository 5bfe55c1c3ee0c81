//! What a server refuses to protect itself and browsers: rates, failures without end, foreign pages (D98).

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use super::attacks::total;
use crate::support::{
    http::{HttpAnswer, answer, http},
    program::{Folder, Serve, until},
};

/// A request with these headers alone.
fn ask(serve: &Serve, call: &str, headers: &[(&str, &str)]) -> HttpAnswer {
    let (method, path) = call.split_once(' ').unwrap();
    http(&serve.address, method, path, headers, "")
}

#[test]
fn pages_of_named_origins_may_call_and_no_others() {
    let folder = Folder::new();
    let serve = folder.serve("--cors-origin https://a.example.com --cors-origin https://b.example.com");
    let bearer = format!("Bearer {}", serve.token);
    let get = |origin: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2"), ("Origin", origin)];
        ask(&serve, "GET /api_keys", &headers)
    };
    let allowed = "access-control-allow-origin: ";
    for origin in ["https://a.example.com", "https://b.example.com"] {
        let answer = get(origin);
        assert!(answer.status == 200 && answer.contains(&format!("{allowed}{origin}\r\n")), "{answer:?}");
        assert!(answer.contains("\r\nvary: origin\r\n") && answer.contains("access-control-expose-headers: *"));
    }
    for origin in ["https://c.example.com", "http://a.example.com", "null"] {
        let answer = get(origin);
        assert!(answer.status == 200 && !answer.contains(allowed), "{answer:?}");
    }
    let preflight = |origin: &str| {
        let asked = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "authorization,content-type"),
        ];
        ask(&serve, "OPTIONS /api_keys", &asked)
    };
    let answer = preflight("https://a.example.com");
    assert!(
        answer.status == 200 && answer.contains("access-control-allow-origin: https://a.example.com"),
        "{answer:?}"
    );
    // A `*` stands for every header but Authorization (Fetch, "CORS-unsafe request-header names").
    assert!(answer.contains("access-control-allow-headers: authorization,content-type"), "{answer:?}");
    assert!(!preflight("https://c.example.com").contains(allowed));
}

#[test]
fn an_origin_with_a_path_is_refused_and_a_star_allows_every_page() {
    let folder = Folder::new();
    let run = folder.run("serve --cors-origin https://a.example.com/");
    assert!(run.code == 1 && run.err.contains("expected an origin such as"), "{}", run.all());
    let serve = folder.serve("--cors-origin *");
    let answer = ask(&serve, "GET /api_keys", &[("Origin", "https://any.example.com")]);
    assert!(answer.status == 401 && answer.contains("access-control-allow-origin: *\r\n"), "{answer:?}");
}

#[test]
fn docs_run_only_their_own_scripts_and_are_not_framed() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let page = ask(&serve, "GET /docs/", &[]);
    assert_eq!(page.status, 200, "{page:?}");
    for header in ["content-security-policy: default-src 'none'; script-src 'self';", "x-frame-options: deny"] {
        assert!(page.contains(header), "{page:?}");
    }
    assert!(!page.contains("unsafe-") && page.contains("require-trusted-types-for 'script'"), "{page:?}");
    // What the policy does not allow would leave the page empty.
    let body = page.body.to_lowercase();
    let scripts = body.split("<script").skip(1);
    assert!(scripts.clone().count() > 0 && scripts.clone().all(|it| it.contains("src=\"./")), "{body}");
    assert!(!body.contains("<style") && !body.contains("style=\""), "{body}");
    for (file, content_type) in [("script.js", "text/javascript"), ("style.css", "text/css")] {
        let answer = ask(&serve, &format!("GET /docs/{file}?v=1"), &[]);
        let is_typed = answer.contains(&format!("content-type: {content_type}; charset=utf-8\r\n"));
        assert!(answer.status == 200 && is_typed && body.contains(&format!("\"./{file}\"")), "{answer:?}");
    }
    let missing = ask(&serve, "GET /docs/nothing", &[]);
    assert!(missing.status == 404 && missing.contains("no endpoint at this path"), "{missing:?}");
    let api = ask(&serve, "GET /api_keys", &[]);
    assert!(!api.contains("content-security-policy") && api.contains("x-content-type-options: nosniff"), "{api:?}");
}

#[test]
fn a_key_over_its_rate_gets_429_and_other_keys_do_not() {
    let folder = Folder::new();
    folder.ok("keys create --role admin");
    let other = folder.run("keys create --role viewer").out;
    let token = folder.run("keys create --role viewer").out;
    let third = folder.run("keys create --role viewer").out;
    // One request in a second, and two at once: the third of three comes too early on any machine that answers them
    // within a second.
    let serve = folder.serve("--rate-limit 1");
    let get = |token: &str| {
        let bearer = format!("Bearer {}", token.trim());
        ask(&serve, "GET /api_keys", &[("Authorization", &bearer), ("Service-Version", "2")])
    };
    let limited = (0..200).map(|_| get(&token)).find(|answer| answer.status == 429).expect("a limit");
    assert!(
        limited.contains("\r\nretry-after: 1\r\n") && limited.contains("ERR_EDGEWRIGHT_RATE_LIMITED"),
        "{limited:?}"
    );
    assert_eq!(get(&other).status, 200);
    // A request that needs a revision counts once, whether the server has it or not.
    let needing = |revision: &str| {
        let bearer = format!("Bearer {}", third.trim());
        let headers =
            [("Authorization", bearer.as_str()), ("Service-Version", "2"), ("If-Revision-At-Least", revision)];
        ask(&serve, "GET /api_keys", &headers).status
    };
    assert_eq!([needing("0"), needing("0")], [200, 200]);
    assert!((0..200).any(|_| needing("1000000") == 429));
    // The key comes before the version, and a request without a key has no bucket (D3).
    let bearer = format!("Bearer {}", token.trim());
    let early = (0..200).map(|_| ask(&serve, "GET /api_keys", &[("Authorization", &bearer)]));
    assert!(early.map(|answer| answer.status).any(|status| status == 429));
    assert_eq!(ask(&serve, "GET /api_keys", &[]).status, 401);
    let page = serve.get("/metrics").body;
    assert!(!page.contains("edgewright_rate_limited_requests_total 0\n"), "{page}");
}

#[test]
fn failures_are_limited_and_a_valid_token_from_the_same_address_is_served() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let failing = |count: usize| -> Vec<u16> {
        let mut connections: Vec<TcpStream> = Vec::new();
        let request = format!("GET /api_keys HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", serve.address);
        for _ in 0..count {
            let mut connection = TcpStream::connect(&serve.address).unwrap();
            connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            connection.write_all(request.as_bytes()).unwrap();
            connections.push(connection);
        }
        connections.into_iter().map(|connection| answer(connection).status).collect()
    };
    assert!(failing(20).iter().all(|status| *status == 401));
    let mut refused = 0;
    for _ in 0..12 {
        let statuses = failing(100);
        assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
        refused += statuses.iter().filter(|status| **status == 429).count();
    }
    assert!(refused > 0, "1,220 failures in less than a minute");
    for _ in 0..50 {
        assert_eq!(serve.get("/api_keys").status, 200);
    }
    assert!(serve.get("/metrics").body.contains("edgewright_authentication_failures_total 12"));
}

/// A request whose handler waits for the body.
fn waiting(serve: &Serve, call: &str, headers: &[(&str, &str)]) -> TcpStream {
    let mut connection = TcpStream::connect(&serve.address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut text =
        format!("{call} HTTP/1.1\r\nHost: {}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n", serve.address);
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    connection.write_all((text + "\r\n").as_bytes()).unwrap();
    let mut go_on = [0; 25];
    connection.read_exact(&mut go_on).unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100 Continue"), "{}", String::from_utf8_lossy(&go_on));
    connection
}

#[test]
fn a_server_with_no_room_sheds_requests_and_answers_probes() {
    let folder = Folder::new();
    let none = folder.run("serve --max-requests 0");
    assert!(none.code == 1 && none.err.contains("--max-requests"), "{}", none.all());
    let serve = folder.serve("--max-requests 1");
    let bearer = format!("Bearer {}", serve.token);
    let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
    // A client that sends no body holds no place.
    let held = waiting(&serve, "POST /edges/https", &headers);
    assert_eq!(ask(&serve, "GET /api_keys", &headers).status, 200);
    let page = serve.get("/metrics").body;
    assert!(page.contains("edgewright_http_request_bodies_receiving 1\n"), "{page}");
    drop(held);
    // Requests that are handled at the same time do.
    let is_over = AtomicBool::new(false);
    let shed = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                ask(&serve, "GET /openapi.json", &headers);
                ask(&serve, "GET /history", &headers);
            }
        });
        let shed = until("a shed request", || {
            let answer = ask(&serve, "GET /history", &headers);
            (answer.status == 503).then_some(answer)
        });
        for probe in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(serve.get(probe).status, 200, "{probe}");
        }
        is_over.store(true, Ordering::Relaxed);
        shed
    });
    assert!(shed.contains("\r\nretry-after: 1\r\n") && shed.contains("ERR_EDGEWRIGHT_UNAVAILABLE"), "{shed:?}");
    assert!(total(&serve.get("/metrics").body, "edgewright_http_requests_shed_total") > 0.0);
}

#[test]
fn webhooks_whose_bodies_never_come_keep_no_others_out() {
    let folder = Folder::new();
    folder.write("secret", "hook");
    folder.write("config.yaml", "hooks: {git: {secret_file: secret}}\n");
    let serve = folder.serve_with("", &[("EDGEWRIGHT_CONFIG", "config.yaml")]);
    let forged = [("X-Gitlab-Token", "wrong"), ("Content-Type", "application/json")];
    // More than webhooks that are handled or wait.
    let held: Vec<TcpStream> = (0..12).map(|_| waiting(&serve, "POST /hooks/git", &forged)).collect();
    let answer = http(&serve.address, "POST", "/hooks/git", &[("X-Gitlab-Token", "hook")], "{}");
    assert_eq!(answer.status, 202, "{}", answer.body);
    drop(held);
}

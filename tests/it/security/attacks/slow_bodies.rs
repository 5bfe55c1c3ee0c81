//! Honest clients, while others send bodies that never end: more of them than the server handles requests, and all from
//! one address (D98).

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{BEFORE, MOST_MEMORY, PAUSE, peak_memory, total};
use crate::support::{
    http::http,
    program::{Folder, Serve, number_in, rounds, until},
};

/// The bodies: more than requests that are handled at a time, and than connections that could give their places.
const BODIES: usize = 1200;
/// The threads that hold them, and how often each body gets a byte.
const ATTACKERS: usize = 4;
const DRIP: Duration = Duration::from_millis(250);
/// How many bodies a thread begins in this time in place of those that the server has ended: a thousand in a second in
/// all, and a quarter of them in a usual run.
const RENEWED: usize = 62;

/// An honest request of a kind.
type Ask<'a> = (&'a str, &'a (dyn Fn() -> u16 + Sync));

/// What honest requests of a kind have met.
struct Outcome {
    answered: usize,
    refused: Vec<u16>,
    p99: Duration,
}

/// Sends honest requests, one after another and each once, until `is_over`.
fn honest(ask: &(dyn Fn() -> u16 + Sync), is_over: &dyn Fn() -> bool) -> Outcome {
    let (mut times, mut refusals) = (Vec::new(), Vec::new());
    while !is_over() {
        let began = Instant::now();
        match ask() {
            200..=202 => times.push(began.elapsed()),
            refused => refusals.push(refused),
        }
        sleep(PAUSE);
    }
    times.sort_unstable();
    let p99 = times.get((times.len() * 99 / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(Duration::MAX);
    Outcome { answered: times.len(), refused: refusals, p99 }
}

/// Holds so many bodies, begins another one for each that the server ends, and counts those.
fn hold(address: &str, head: &str, bodies: usize, ended: &AtomicUsize, is_over: &AtomicBool) {
    let begin = || {
        let mut connection = TcpStream::connect(address).ok()?;
        connection.set_nonblocking(true).ok()?;
        connection.write_all(head.as_bytes()).ok()?;
        Some(connection)
    };
    let mut held: Vec<Option<TcpStream>> = (0..bodies).map(|_| begin()).collect();
    while !is_over.load(Ordering::Relaxed) {
        let mut left = rounds(RENEWED / 4, RENEWED);
        for place in &mut held {
            let lives = place.as_mut().is_some_and(|connection| {
                let silent =
                    matches!(connection.read(&mut [0; 64]), Err(error) if error.kind() == ErrorKind::WouldBlock);
                silent && connection.write_all(b" ").is_ok()
            });
            if place.is_some() && !lives {
                ended.fetch_add(1, Ordering::Relaxed);
                *place = None;
            }
            if place.is_none() && left > 0 {
                left -= 1;
                *place = begin();
            }
        }
        sleep(DRIP);
    }
}

/// Floods a server with bodies, and compares what honest clients meet with the usual.
fn flood(serve: &Serve, name: &str, head: &str, asks: &[Ask<'_>]) {
    let most_growth = number_in("EDGEWRIGHT_FLOOD_P99", u64::from(u32::MAX)) as f64;
    let until_time = |time: Duration| {
        let began = Instant::now();
        move || began.elapsed() >= time
    };
    let usual: Vec<Outcome> = asks.iter().map(|(_, ask)| honest(*ask, &until_time(BEFORE))).collect();
    // How long honest clients are watched.
    let time = Duration::from_secs(rounds(1, 4));
    let (ended, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let met = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..ATTACKERS {
            scope.spawn(|| hold(&serve.address, head, BODIES / ATTACKERS, &ended, &is_over));
        }
        until("the flood", || {
            let page = serve.get("/metrics").body;
            (total(&page, "edgewright_http_requests_shed_total") > 0.0).then_some(())
        });
        let threads: Vec<_> = asks.iter().map(|(_, ask)| scope.spawn(|| honest(*ask, &until_time(time)))).collect();
        met.lock().unwrap().extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        is_over.store(true, Ordering::Relaxed);
    });
    for (((what, _), usual), met) in asks.iter().zip(&usual).zip(met.into_inner().unwrap()) {
        let growth = met.p99.as_secs_f64() / usual.p99.as_secs_f64();
        println!(
            "{BODIES} bodies {name}: {what}: {} answered, {} refused, p99 {:.1?} of {:.1?} ({growth:.1} ×)",
            met.answered,
            met.refused.len(),
            met.p99,
            usual.p99
        );
        assert!(met.refused.len() * 20 <= met.answered, "{what}: {} answered, {:?}", met.answered, met.refused);
        assert!(growth <= most_growth, "{what}: {growth:.1} × the usual 99th percentile");
    }
    let memory = peak_memory(serve);
    println!("{BODIES} bodies {name}: {} ended; peak memory {} MB", ended.into_inner(), memory >> 20);
    assert!(memory < MOST_MEMORY, "{} MB", memory >> 20);
}

#[test]
fn bodies_that_never_end_push_out_each_other_and_nobody_else() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let folder = Folder::new();
    folder.write("secret", "hook");
    folder.write("config.yaml", "hooks: {git: {secret_file: secret}}\n");
    let serve = folder.serve_with("", &[("EDGEWRIGHT_CONFIG", "config.yaml")]);
    let key = serve.call("POST", "/api_keys", r#"{"owner_id": "usr_viewer"}"#);
    let viewer = serve.call("PATCH", "/owners/usr_viewer", r#"{"role": "viewer"}"#);
    assert_eq!((key.status, viewer.status), (201, 200), "{} {}", key.body, viewer.body);
    let token = key.json()["token"].as_str().unwrap().to_owned();
    let own = format!("Bearer {}", serve.token);
    let headers = [("Authorization", own.as_str()), ("Service-Version", "2")];
    let ask = |method: &str, path: &str, body: &str| http(&serve.address, method, path, &headers, body).status;
    let webhook = [("X-Gitlab-Token", "hook")];
    let asks: [Ask<'_>; 3] = [
        ("GET", &|| ask("GET", "/edges/https", "")),
        ("POST", &|| ask("POST", "/trace", r#"{"url": "https://shop.example.com/"}"#)),
        ("webhook", &|| http(&serve.address, "POST", "/hooks/git", &webhook, "{}").status),
    ];
    let body = "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{";
    let unknown = format!("POST /hooks/git HTTP/1.1\r\nHost: x\r\nX-Gitlab-Token: wrong\r\n{body}");
    flood(&serve, "without a token", &unknown, &asks);
    let known =
        format!("POST /trace HTTP/1.1\r\nHost: x\r\nService-Version: 2\r\nAuthorization: Bearer {token}\r\n{body}");
    flood(&serve, "of a viewer", &known, &asks);
}

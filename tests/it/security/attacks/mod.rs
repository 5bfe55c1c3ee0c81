//! Honest clients of a server with few descriptors, while hostile connections of every kind come (D97, D98).
//!
//! `EDGEWRIGHT_FLOOD=10000` is the number of hostile connections to each of two servers, without and with TLS; then each kind
//! comes alone, and all together at last. `EDGEWRIGHT_FLOOD_RATE` is how many come in a second, and `EDGEWRIGHT_FLOOD_P99` by
//! which factor the 99th percentile of the honest clients may grow: without it, the figures are only printed.

mod kind;
mod slow_bodies;

use std::{
    collections::VecDeque,
    fs,
    io::Write,
    net::{SocketAddrV4, TcpStream},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

use super::tls::{Authority, as_admin, https};
use crate::support::{
    http::{HttpAnswer, read_answer, request},
    program::{Folder, Serve, number_in, until},
};
use kind::{Attack, PLAIN, TLS};

/// The hostile connections of a run of all tests.
const USUAL: u64 = 300;
/// The descriptors of the server, and the most memory that it may take.
const DESCRIPTORS: u32 = 256;
const MOST_MEMORY: u64 = 512 << 20;
/// The threads that open hostile connections, and how many each of them keeps open: more in all than the server has places.
const ATTACKERS: usize = 4;
const HELD: usize = 64;
/// The honest clients, and how long each of them waits between requests.
const CLIENTS: usize = 2;
const PAUSE: Duration = Duration::from_millis(5);
/// How long a client that is refused waits, and until when it must have its answer.
const RETRY: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that the usual latency is measured for, at least.
const BEFORE: Duration = Duration::from_millis(500);

/// Sends an honest request, and returns its status.
type Ask<'a> = dyn Fn() -> Result<u16, String> + Sync + 'a;

/// How long honest requests took.
#[derive(Debug)]
struct Latency {
    p50: Duration,
    p99: Duration,
    requests: usize,
    /// How often a request was refused or its connection closed before it was answered.
    retries: usize,
}

/// Lets honest clients ask until `is_over`. Every request is answered in the end.
fn measure(ask: &Ask<'_>, is_over: &(dyn Fn() -> bool + Sync)) -> Latency {
    let (times, retries) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                loop {
                    let began = Instant::now();
                    loop {
                        let answer = ask();
                        if answer == Ok(200) {
                            break;
                        }
                        assert!(began.elapsed() < PATIENCE, "an honest request was never answered: {answer:?}");
                        retries.fetch_add(1, Ordering::Relaxed);
                        sleep(RETRY);
                    }
                    times.lock().unwrap().push(began.elapsed());
                    if is_over() {
                        break;
                    }
                    sleep(PAUSE);
                }
            });
        }
    });
    let mut times = times.into_inner().unwrap();
    times.sort_unstable();
    let percentile = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    Latency { p50: percentile(50), p99: percentile(99), requests: times.len(), retries: retries.into_inner() }
}

/// Opens hostile connections, and returns how many could not be opened.
fn flood(attacks: &[Attack], connections: u64, rate: u64, target: SocketAddrV4) -> usize {
    let failed = AtomicUsize::new(0);
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..ATTACKERS as u64 {
            let failed = &failed;
            scope.spawn(move || {
                let mut held: VecDeque<(Attack, TcpStream)> = VecDeque::new();
                for number in (thread..connections).step_by(ATTACKERS) {
                    let due = Duration::from_secs_f64(number as f64 / rate as f64);
                    sleep(due.saturating_sub(began.elapsed()));
                    let attack = attacks[usize::try_from(number).unwrap() / ATTACKERS % attacks.len()];
                    match attack.open(number, target) {
                        Ok(stream) => held.push_back((attack, stream)),
                        Err(_) => {
                            failed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    if held.len() > HELD {
                        held.pop_front();
                    }
                    held.iter_mut().rev().take(8).for_each(|(attack, stream)| attack.drip(stream));
                }
            });
        }
    });
    failed.into_inner()
}

/// The most memory that a process has had, in bytes.
fn peak_memory(serve: &Serve) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", serve.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The sum of all series of a counter.
pub(crate) fn total(metrics: &str, name: &str) -> f64 {
    let values = metrics.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
    values.filter_map(|value| value.parse::<f64>().ok()).sum()
}

/// Floods a server with each kind alone, if there are many connections, and with all of them.
fn attack(name: &str, serve: &Serve, attacks: &[Attack], ask: &Ask<'_>, metrics: &dyn Fn() -> Option<String>) {
    let (connections, rate) = (number_in("EDGEWRIGHT_FLOOD", USUAL), number_in("EDGEWRIGHT_FLOOD_RATE", 1000));
    let most_growth = number_in("EDGEWRIGHT_FLOOD_P99", u64::from(u32::MAX));
    let target: SocketAddrV4 = serve.address.parse().unwrap();
    let began = Instant::now();
    let before = measure(ask, &|| began.elapsed() >= BEFORE);
    println!("{name}: usually p50 {:.1?}, p99 {:.1?} of {} requests", before.p50, before.p99, before.requests);
    let alone = if connections > USUAL { attacks } else { &[] };
    let rounds: Vec<Vec<Attack>> = alone.iter().map(|attack| vec![*attack]).chain([attacks.to_vec()]).collect();
    let share = connections / rounds.len() as u64;
    for round in &rounds {
        let what = if round.len() == 1 { format!("{:?}", round[0]) } else { "all".to_owned() };
        let (is_over, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let during = std::thread::scope(|scope| {
            scope.spawn(|| {
                failed.store(flood(round, share, rate.max(1), target), Ordering::Relaxed);
                is_over.store(1, Ordering::Relaxed);
            });
            measure(ask, &|| is_over.load(Ordering::Relaxed) == 1)
        });
        let growth = during.p99.as_secs_f64() / before.p99.as_secs_f64();
        println!(
            "{name}: {share} {what}: p50 {:.1?}, p99 {:.1?} ({growth:.1} ×) of {} requests, {} retries, {} not connected",
            during.p50,
            during.p99,
            during.requests,
            during.retries,
            failed.into_inner()
        );
        assert!(growth <= most_growth as f64, "{what}: the 99th percentile is {growth:.1} times the usual one");
    }
    let page = until("the metrics", || metrics().filter(|page| page.contains("edgewright_connections_accepted_total")));
    let memory = peak_memory(serve);
    println!(
        "{name}: {} connections accepted, {} refused, {} closed by the server; peak memory {} MB",
        total(&page, "edgewright_connections_accepted_total"),
        total(&page, "edgewright_connections_refused_total"),
        total(&page, "edgewright_connections_closed_total"),
        memory >> 20
    );
    assert!(total(&page, "edgewright_connections_accepted_total") >= connections as f64 / 2.0, "{page}");
    assert!(memory < MOST_MEMORY, "{} MB", memory >> 20);
}

#[test]
fn honest_clients_are_answered_among_hostile_connections() {
    let folder = Folder::new();
    let serve = folder.serve_with_files(DESCRIPTORS, "");
    let text = as_admin(&serve, "GET", "/edges/https", "");
    let ask = || {
        let mut connection = TcpStream::connect(&serve.address).map_err(|error| error.to_string())?;
        connection.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        connection.write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        let answer = HttpAnswer::parse(&String::from_utf8_lossy(&read_answer(&mut connection)));
        answer.map(|answer| answer.status).ok_or_else(|| "no answer".to_owned())
    };
    let metrics = || {
        let mut connection = TcpStream::connect(&serve.address).ok()?;
        connection.write_all(request(&serve.address, "GET", "/metrics", &[], "").as_bytes()).ok()?;
        String::from_utf8(read_answer(&mut connection)).ok()
    };
    attack("HTTP", &serve, &PLAIN, &ask, &metrics);
    // The server is as before, and says little about all that.
    let said = serve.stop();
    assert_eq!(said.code, 0, "{}", said.all());
    assert!(said.err.lines().count() < 3000, "{} lines", said.err.lines().count());
}

#[test]
fn honest_clients_of_a_tls_server_are_answered_among_hostile_connections() {
    let folder = Folder::new();
    let authority = Authority::new("one");
    authority.certify(&folder);
    let serve = folder.serve_with_files(DESCRIPTORS, crate::security::tls::TLS);
    let text = as_admin(&serve, "GET", "/edges/https", "");
    let ask = || https(&serve, &authority, None, &text).map(|answer| answer.status);
    let metrics = || {
        let page = https(&serve, &authority, None, &request(&serve.address, "GET", "/metrics", &[], ""));
        Some(page.ok()?.body)
    };
    attack("HTTPS", &serve, &TLS, &ask, &metrics);
}

//! The measurements of the API under load.

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    corpus::{Corpus, Shape},
    estate::Estate,
    fixed::Fixed,
    http::{Client, message},
    load::{self, Figures, Requests, Until},
    measures::Run,
    process::Server,
    table::{Row, median, rate},
};

/// The connections for small responses.
pub(crate) const CONNECTIONS: usize = 32;
/// The connections for large responses.
const LARGE_CONNECTIONS: usize = 8;
/// The clients that change routes at the same time.
pub(crate) const WRITERS: usize = 64;
/// The most routes of an apply through the server: more do not fit in a request.
const MOST_APPLIED: usize = 100_000;
/// The load before the apply begins.
const HEAD_START: Duration = Duration::from_millis(50);

/// GETs of these paths in turn, with a different order for each connection.
pub(crate) fn gets(paths: &[String], token: &str) -> Requests {
    let messages: Vec<Vec<u8>> = paths.iter().map(|path| message("GET", path, token, b"")).collect();
    Arc::new(move |connection: usize, number: usize, out: &mut Vec<u8>| {
        // A large prime spreads the requests over all routes.
        let index = (connection * 131 + number * 7919) % messages.len();
        out.extend_from_slice(&messages[index]);
    })
}

/// PATCHes of the description: each connection has a route of its own, and each description is new.
pub(crate) fn patches(paths: &[String], token: &str) -> Requests {
    let (paths, token, counter) = (paths.to_vec(), token.to_owned(), AtomicUsize::new(0));
    Arc::new(move |connection: usize, _: usize, out: &mut Vec<u8>| {
        let body = format!("{{\"description\":\"Change {}\"}}", counter.fetch_add(1, Ordering::Relaxed));
        *out = message("PATCH", &paths[connection % paths.len()], &token, body.as_bytes());
    })
}

pub(crate) fn under_load(run: &Run, address: SocketAddr, connections: usize, requests: &Requests) -> Figures {
    load::run(address, connections, &Until::Elapsed(run.options.load_time()), requests)
}

/// Loads of the server, and of the static answer of the same bytes.
struct Compared {
    rate: f64,
    static_rate: f64,
    p50: f64,
    p99: f64,
    static_p99: f64,
    /// The rate as a share of the static one, within one round.
    share: f64,
}

fn compare(run: &Run, server: &Server, connections: usize, paths: &[String]) -> Compared {
    let requests = gets(paths, &run.estate.token);
    let bytes = run.estate.client(server).get(&paths[0]);
    let fixed = Fixed::start(run.estate.scratch(), &bytes);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..run.options.rounds {
        // One right after the other: the machine's speed changes less within a round.
        theirs.push(under_load(run, fixed.address, connections, &requests));
        ours.push(under_load(run, server.address, connections, &requests));
    }
    let of = |figures: &[Figures], figure: fn(&Figures) -> f64| median(figures.iter().map(figure).collect());
    Compared {
        rate: of(&ours, |it| it.rate),
        static_rate: of(&theirs, |it| it.rate),
        p50: of(&ours, |it| it.p50),
        p99: of(&ours, |it| it.p99),
        static_p99: of(&theirs, |it| it.p99),
        share: median(ours.iter().zip(&theirs).map(|(ours, theirs)| ours.rate / theirs.rate).collect()),
    }
}

fn share_row(run: &Run, title: String, compared: &Compared) -> Row {
    Row {
        title,
        now: rate(compared.rate),
        ratio: format!("{:.2} of static ({})", compared.share, rate(compared.static_rate)),
        target: "≥ 0.75 of static".into(),
        met: run.judge(compared.share >= 0.75),
        figures: json!({
            "per_second": compared.rate,
            "static_per_second": compared.static_rate,
            "share": compared.share,
            "p50_seconds": compared.p50,
            "p99_seconds": compared.p99,
            "static_p99_seconds": compared.static_p99,
        }),
    }
}

fn p99_row(run: &Run, title: String, p99: f64, static_p99: f64) -> Row {
    let figures = json!({"p99_seconds": p99, "static_p99_seconds": static_p99});
    run.multiple(title, p99, ("static", static_p99), 2, figures)
}

/// GET of a route: rate and latency, also while a large corpus is applied.
pub(crate) fn get(run: &Run) -> Vec<Row> {
    run.estate.copy("read");
    let server = run.estate.serve("read", false);
    let paths = run.estate.routes(&server);
    let idle = compare(run, &server, CONNECTIONS, &paths);
    let applied = run.estate.corpus.routes.min(MOST_APPLIED);
    let busy = while_applying(run, &server, &paths, applied);
    server.stop();
    run.estate.remove("read");
    vec![
        share_row(run, "GET a route, all layers on".into(), &idle),
        p99_row(run, "its p99".into(), idle.p99, idle.static_p99),
        p99_row(run, format!("its p99 while {applied} routes are applied"), busy.p99, idle.static_p99),
    ]
}

/// GETs from the moment a request with another corpus is sent until its response is there.
fn while_applying(run: &Run, server: &Server, paths: &[String], routes: usize) -> Figures {
    // Certificates would need their private keys in the request.
    let shape = Shape { routes, prefix: "x", certificates: false, ..run.options.shape() };
    let other = Corpus::write(&run.estate.scratch().join("other"), shape);
    let files = other.files.iter().map(|file| {
        let name = file.strip_prefix(&other.folder).unwrap().display().to_string();
        json!({"name": name, "text": fs::read_to_string(file).unwrap()})
    });
    let body = json!({"source": "other", "files": files.collect::<Vec<_>>()}).to_string();
    let requests = gets(paths, &run.estate.token);
    let over = Arc::new(AtomicBool::new(false));
    let figures = thread::scope(|scope| {
        let (address, until) = (server.address, Until::Set(Arc::clone(&over)));
        let load = scope.spawn(move || load::run(address, CONNECTIONS, &until, &requests));
        thread::sleep(HEAD_START);
        let mut client: Client = run.estate.client(server);
        let (status, answer) = client.call("POST", "/reconciliations", body.as_bytes());
        over.store(true, Ordering::Relaxed);
        let beginning: String = String::from_utf8_lossy(&answer).chars().take(2000).collect();
        assert_eq!(status, 201, "{beginning}");
        load.join().unwrap()
    });
    let found = run.estate.client(server).get("/edges/https?name=x0-0");
    assert!(String::from_utf8_lossy(&found).contains("e0.x0.example.com:443"), "the other corpus is not applied");
    figures
}

/// A server with a load of GETs, for comparisons between estates.
pub(crate) struct GetLoad {
    server: Server,
    requests: Requests,
    time: Until,
}

impl GetLoad {
    /// Starts the server.
    pub(crate) fn start(estate: &Estate, run: &Run) -> Self {
        let server = estate.serve("state", false);
        let requests = gets(&estate.routes(&server), &estate.token);
        Self { server, requests, time: Until::Elapsed(run.options.load_time()) }
    }

    /// Returns the rate of GETs.
    pub(crate) fn rate(&self) -> f64 {
        load::run(self.server.address, CONNECTIONS, &self.time, &self.requests).rate
    }

    /// Stops the server.
    pub(crate) fn stop(self) {
        self.server.stop();
    }
}

/// The list of 100 edges with their routes.
pub(crate) fn list(run: &Run) -> Vec<Row> {
    let server = run.estate.serve("state", false);
    let path = "/edges/https?limit=100".to_owned();
    let size = run.estate.client(&server).get(&path).len();
    let compared = compare(run, &server, LARGE_CONNECTIONS, &[path]);
    server.stop();
    let title = format!("list of 100 edges with their routes ({:.1} MB)", size as f64 / 1e6);
    vec![share_row(run, title, &compared)]
}

/// Durable changes by many clients, and by one.
pub(crate) fn patch(run: &Run) -> Vec<Row> {
    run.estate.copy("changed");
    let server = run.estate.serve("changed", false);
    let paths = run.estate.routes(&server);
    let requests = patches(&paths, &run.estate.token);
    let mut rates = (Vec::new(), Vec::new());
    for _ in 0..run.options.rounds {
        rates.0.push(under_load(run, server.address, WRITERS, &requests).rate);
        rates.1.push(under_load(run, server.address, 1, &requests).rate);
    }
    let changed = run.estate.client(&server).get(&paths[0]);
    assert!(String::from_utf8_lossy(&changed).contains("\"description\":\"Change "));
    server.stop();
    run.estate.remove("changed");
    let (many, one) = (median(rates.0), median(rates.1));
    vec![Row {
        title: format!("PATCH, durable, {WRITERS} clients against 1"),
        now: format!("{} against {}", rate(many), rate(one)),
        ratio: format!("{:.2} ×", many / one),
        target: "≥ 10 ×".into(),
        met: run.judge(many >= 10.0 * one),
        figures: json!({"many_per_second": many, "one_per_second": one, "ratio": many / one}),
    }]
}

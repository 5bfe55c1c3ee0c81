//! The measurements of several servers on one database, next to the embedded store and to a plain program on the same
//! database.

use std::{
    net::{SocketAddr, TcpListener},
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{
    load::Figures,
    measures::Run,
    plain::Plain,
    process::Server,
    requests::{CONNECTIONS, WRITERS, gets, patches, under_load},
    table::{Row, median, percentile, rate, time},
};

/// The master key of the store that is copied into the database.
const MASTER_KEY: &str = "state/store.master.key";
/// How many servers share the database.
const SERVERS: usize = 3;
/// The changes that are waited for at a server that follows.
const LAGS: usize = 200;
/// The same, in a small run.
const FEW_LAGS: usize = 10;

/// Servers of one database: the first of them writes.
struct Replicas(Vec<Server>);

impl Replicas {
    fn start(run: &Run, database: &str) -> Self {
        let servers = (0..SERVERS).map(|_| {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            start(run, database, free)
        });
        Self(servers.collect())
    }

    fn writer(&self) -> &Server {
        &self.0[0]
    }

    fn follower(&self) -> &Server {
        &self.0[1]
    }

    /// Loads all servers at once, with so many clients in sum.
    fn load(&self, run: &Run, clients: usize, paths: &[String]) -> Figures {
        let shares: Vec<_> = self.0.iter().zip(paths.chunks(paths.len() / SERVERS)).collect();
        let found: Vec<Figures> = thread::scope(|scope| {
            let loads = shares.iter().map(|(server, paths)| {
                let requests = patches(paths, &run.estate.token);
                scope.spawn(move || under_load(run, server.address, clients.div_ceil(SERVERS), &requests))
            });
            let loads: Vec<_> = loads.collect();
            loads.into_iter().map(|load| load.join().unwrap()).collect()
        });
        let worst = |figure: fn(&Figures) -> f64| found.iter().map(figure).fold(0.0, f64::max);
        Figures { rate: found.iter().map(|it| it.rate).sum(), p50: worst(|it| it.p50), p99: worst(|it| it.p99) }
    }

    /// The 99th percentile of the times from the response of the writer until another server answers with the change.
    fn lag(&self, run: &Run, path: &str) -> f64 {
        let (mut writer, mut reader) = (run.estate.client(self.writer()), run.estate.client(self.follower()));
        let changes = if run.options.small { FEW_LAGS } else { LAGS };
        let lags = (0..changes).map(|number| {
            let description = format!("\"description\":\"Lag {number}\"");
            let (status, _) = writer.call("PATCH", path, format!("{{{description}}}").as_bytes());
            assert_eq!(status, 200, "PATCH {path}");
            let since = Instant::now();
            while !String::from_utf8_lossy(&reader.get(path)).contains(&description) {
                thread::sleep(Duration::from_micros(200));
            }
            since.elapsed().as_secs_f64()
        });
        percentile(lags.collect(), 99)
    }

    fn stop(self) {
        self.0.into_iter().rev().for_each(Server::stop);
    }
}

fn start(run: &Run, database: &str, address: SocketAddr) -> Server {
    let (listen, url) = (address.to_string(), format!("http://{address}"));
    let store = ["--store", database, "--master-key-file", MASTER_KEY, "--advertise-url", &url];
    Server::start_at(run.estate.scratch(), &listen, &store)
}

/// The time that a server of the database takes to start, against one of the embedded store.
fn starts(run: &Run, database: &str) -> Row {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in run.rounds() {
        let embedded = run.estate.serve("state", false);
        theirs.push(embedded.ready);
        embedded.stop();
        let server = start(run, database, any);
        ours.push(server.ready);
        server.stop();
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let figures = json!({"seconds": ours, "embedded_seconds": theirs});
    run.multiple("`serve` on PostgreSQL: start to ready", ours, ("embedded", theirs), 2, figures)
}

/// The rate of GETs at a server that follows, against the embedded store.
fn reads(run: &Run, replicas: &Replicas, paths: &[String]) -> Row {
    let requests = gets(paths, &run.estate.token);
    let embedded = run.estate.serve("state", false);
    let (mut shares, mut rates) = (Vec::new(), Vec::new());
    for _ in run.rounds() {
        let theirs = under_load(run, embedded.address, CONNECTIONS, &requests).rate;
        let ours = under_load(run, replicas.follower().address, CONNECTIONS, &requests).rate;
        shares.push(ours / theirs);
        rates.push(ours);
    }
    embedded.stop();
    let (share, per_second) = (median(shares), median(rates));
    Row {
        title: "GET a route from a server that follows".into(),
        now: rate(per_second),
        ratio: format!("{share:.2} of embedded"),
        target: "≥ 0.95 of embedded".into(),
        met: run.judge(share >= 0.95),
        figures: json!({"per_second": per_second, "share": share}),
    }
}

/// The rate of changes against that of the plain program, and their p99 against that of plain clients.
fn writes(run: &Run, title: String, ours: &[Figures], plain: f64, alone: f64) -> Vec<Row> {
    let median_of = |figure: fn(&Figures) -> f64| median(ours.iter().map(figure).collect());
    let (per_second, p99) = (median_of(|it| it.rate), median_of(|it| it.p99));
    let figures = json!({"p99_seconds": p99, "plain_p99_seconds": alone});
    vec![
        Row {
            title,
            now: rate(per_second),
            ratio: format!("{:.2} of a plain program ({})", per_second / plain, rate(plain)),
            target: "≥ 0.5 of plain".into(),
            met: run.judge(per_second >= 0.5 * plain),
            figures: json!({"per_second": per_second, "plain_per_second": plain}),
        },
        run.multiple("its p99", p99, ("plain", alone), 4, figures),
    ]
}

/// Several servers on the database of the options, which must be empty.
pub(crate) fn replicas(run: &Run) -> Vec<Row> {
    let database =
        run.options.database.as_deref().expect("`replicas` needs the address of an empty database: --database");
    run.estate.run(&["store", "copy", "state/store", database], &[]);
    let mut rows = vec![starts(run, database)];
    let replicas = Replicas::start(run, database);
    let paths = run.estate.routes(replicas.writer());
    rows.push(reads(run, &replicas, &paths));
    let one = patches(&paths, &run.estate.token);
    let plain = Plain::new(database);
    let (mut alone, mut together, mut batches, mut commits) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in run.rounds() {
        alone.push(under_load(run, replicas.writer().address, WRITERS, &one));
        together.push(replicas.load(run, WRITERS, &paths));
        batches.push(plain.rate_in_batches(WRITERS, run.options.load_time()));
        commits.push(plain.p99_of_commits(WRITERS, run.options.load_time()));
    }
    let (batches, commits) = (median(batches), median(commits));
    rows.extend(writes(run, format!("PATCH, durable, {WRITERS} clients, one server"), &alone, batches, commits));
    rows.extend(writes(run, format!("PATCH through {SERVERS} servers"), &together, batches, commits));
    let lag = replicas.lag(run, &paths[0]);
    replicas.stop();
    rows.push(Row {
        title: "from the response of the writer until another server has the change, p99".into(),
        now: time(lag),
        ratio: String::new(),
        target: "≤ 50 ms".into(),
        met: run.judge(lag <= 0.05),
        figures: json!({"p99_seconds": lag}),
    });
    rows
}

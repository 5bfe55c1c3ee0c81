//! Several servers on one database: one writes, the others follow and read, and one of them takes its place.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use crate::support::{
    http::{HttpAnswer, read_answer, request},
    postgres::Postgres,
    program::{Folder, Serve, has, until, within},
};

/// How long a commit takes to the servers that follow, at most.
const NEWS: Duration = Duration::from_secs(2);
/// How long the change of a role takes on a busy machine, at most.
const CHANGE: Duration = Duration::from_secs(10);

/// Two servers on one database: the first one writes.
struct Pair {
    first: Serve,
    second: Serve,
    folders: [Folder; 2],
    options: String,
    /// The token of the admin.
    token: String,
}

impl Pair {
    fn start(postgres: &Postgres) -> (Self, String) {
        let (folders, database) = ([Folder::new(), Folder::new()], postgres.database());
        let key = postgres.master_key();
        let store = format!("--store {} --master-key-file {}", postgres.url(&database), key.display());
        let options = format!("{store} --security-log security.log --base-url http://gateway.test");
        let first = folders[0].serve(&options);
        let second = folders[1].serve(&options);
        assert!(second.said().contains("This one follows it"), "{}", second.said());
        let token = first.token.clone();
        (Self { first, second, folders, options: store, token }, database)
    }

    fn get(&self, serve: &Serve, path: &str) -> HttpAnswer {
        serve.call_as(&self.token, "GET", path, "")
    }

    /// Creates an edge, and returns the answer.
    fn create(&self, serve: &Serve, host: &str) -> HttpAnswer {
        let body = format!(r#"{{"hostports":["{host}.example.com:443"]}}"#);
        serve.call_as(&self.token, "POST", "/edges/https", &body)
    }

    /// Whether a server creates an edge. Between two rounds, it can close a connection without an answer.
    fn creates(&self, serve: &Serve, host: &str) -> Option<()> {
        self.try_create(serve, host).filter(|answer| answer.status == 201).map(drop)
    }

    fn try_create(&self, serve: &Serve, host: &str) -> Option<HttpAnswer> {
        let body = format!(r#"{{"hostports":["{host}.example.com:443"]}}"#);
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
        let mut connection = TcpStream::connect(&serve.address).ok()?;
        connection.set_read_timeout(Some(CHANGE)).unwrap();
        connection.write_all(request(&serve.address, "POST", "/edges/https", &headers, &body).as_bytes()).ok()?;
        HttpAnswer::parse(&String::from_utf8_lossy(&read_answer(&mut connection)))
    }

    fn knows(&self, serve: &Serve, host: &str) -> Option<()> {
        self.get(serve, "/edges/https?limit=1000").body.contains(&format!("\"{host}.example.com:443\"")).then_some(())
    }
}

#[test]
fn who_follows_reads_what_the_writer_commits_and_changes_nothing() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let created = pair.create(first, "one");
    assert_eq!(created.status, 201, "{}", created.body);
    within(NEWS, "the commit", || pair.knows(second, "one"));
    let path = format!("/edges/https/{}", created.json()["id"].as_str().unwrap());
    for path in [path.as_str(), "/edges/https", "/history", "/sources"] {
        let [there, here] = [first, second].map(|serve| pair.get(serve, path));
        assert_eq!((here.status, &here.body), (200, &there.body), "{path}");
        assert_eq!(here.header("etag"), there.header("etag"), "{path}");
    }
    let mut watch = TcpStream::connect(&second.address).unwrap();
    watch.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = format!("Host: x\r\nAuthorization: Bearer {}\r\nService-Version: 2\r\n", pair.token);
    watch.write_all(format!("GET /watch HTTP/1.0\r\n{head}\r\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(watch).lines().map(Result::unwrap);
    // The start of the stream has the revision that it begins after.
    lines.find(|line| line.starts_with("id: ")).unwrap();
    assert_eq!(pair.create(first, "two").status, 201);
    assert!(lines.find(|line| line.starts_with("data: ")).unwrap().contains("two.example.com:443"));
    for (method, path, body) in [
        ("POST", "/edges/https", r#"{"hostports":["three.example.com:443"]}"#),
        ("DELETE", path.as_str(), ""),
        ("POST", "/sources/shop/suspend", r#"{"reason":"a test"}"#),
        ("POST", "/reconciliations", r#"{"source":"shop","files":[]}"#),
    ] {
        let refused = second.call_as(&pair.token, method, path, body);
        assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_NOT_THE_WRITER"), "{path}");
        assert!(refused.body.contains(&format!("process {}", first.pid())), "{}", refused.body);
        assert_eq!(refused.header("retry-after").len(), 1);
    }
    assert_eq!(pair.get(second, "/readyz").body, "ready\nfollowing: another server writes to the store\n");
    assert_eq!(pair.get(first, "/readyz").body, "ready\n");
    // Only a server follows.
    let run = pair.folders[1].run(&format!("store rekey {}", pair.options));
    assert_ne!(run.code, 0);
    has(&run, &["STORE_LOCKED"]);
}

#[test]
fn who_follows_takes_the_place_of_a_writer_that_was_killed_and_nothing_is_lost() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let hosts: Vec<String> = (0..20).map(|number| format!("host{number}")).collect();
    for host in &hosts {
        assert_eq!(pair.create(first, host).status, 201);
    }
    first.signal("KILL");
    within(CHANGE, "a write", || pair.creates(second, "after"));
    for host in hosts.iter().map(String::as_str).chain(["after"]) {
        assert!(pair.knows(second, host).is_some(), "{host} was acknowledged");
    }
    assert_eq!(pair.get(second, "/readyz").body, "ready\n");
    let third = Folder::new();
    let third = third.serve(&format!("{} --security-log security.log", pair.options));
    within(NEWS, "the state", || pair.knows(&third, "after"));
    // One that ends as it should is replaced in the same way.
    second.terminate();
    within(CHANGE, "a write", || pair.creates(&third, "last"));
}

#[test]
fn a_writer_that_was_stopped_writes_nothing_afterwards_and_follows() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    assert_eq!(pair.create(first, "before").status, 201);
    // It renews its session for the first time within a second.
    std::thread::sleep(Duration::from_secs(2));
    first.signal("STOP");
    let version: u32 = postgres.psql(&database, "SHOW server_version_num").unwrap().parse().unwrap();
    if version < 140_000 {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' \
             AND application_name LIKE 'edgewright, process {} %'",
            first.pid()
        );
        postgres.psql("postgres", &sql).unwrap();
    }
    within(Duration::from_secs(30), "a write", || pair.creates(second, "during"));
    first.signal("CONT");
    until("a follower", || {
        let refused = pair.try_create(first, "never")?;
        assert_eq!(refused.status, 503, "{}", refused.body);
        (refused.code() == "ERR_EDGEWRIGHT_NOT_THE_WRITER").then_some(())
    });
    within(NEWS, "the commit", || pair.knows(first, "during"));
    assert_eq!(pair.create(second, "afterwards").status, 201);
    within(NEWS, "the commit", || pair.knows(first, "afterwards"));
    for serve in [first, second] {
        assert!(pair.knows(serve, "before").is_some() && pair.knows(serve, "never").is_none());
    }
}

#[test]
fn reads_go_on_while_the_database_is_away() {
    let Some(postgres) = Postgres::start() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    assert_eq!(pair.create(first, "one").status, 201);
    within(NEWS, "the commit", || pair.knows(second, "one"));
    postgres.kill();
    for serve in [first, second] {
        assert!(pair.knows(serve, "one").is_some());
        let refused = pair.create(serve, "two");
        assert_eq!(refused.status, 503, "{}", refused.body);
        assert_eq!(refused.header("retry-after").len(), 1);
    }
    until("the warning", || pair.get(second, "/readyz").body.contains("the database does not answer").then_some(()));
    postgres.run();
    // Nobody had reason to take the place of the writer.
    within(CHANGE, "a write", || pair.creates(first, "three"));
    within(CHANGE, "the commit", || pair.knows(second, "three"));
    assert!(pair.knows(second, "one").is_some() && pair.knows(second, "two").is_none());
}

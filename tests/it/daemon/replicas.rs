//! Several servers on one database: one writes, the others follow and read, and one of them takes its place.

mod forwarding;
mod gateways;
mod master_keys;
mod replaced;
mod standby;

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    process::Stdio,
    time::Duration,
};

use super::activation::PASS_ONE;
use crate::support::{
    http::{HttpAnswer, http, read_answer, request},
    manifests::edge,
    postgres::Postgres,
    program::{CONFIG_VARIABLE, Folder, Serve, has, until, within},
    users::run_with_token,
};

/// How long a commit takes to the servers that follow, at most.
const LAG: Duration = Duration::from_secs(2);
/// How long the change of a role takes on a busy machine, at most.
const CHANGE: Duration = Duration::from_secs(10);

/// The file of the master key in the folder of the first server.
const MASTER_KEY: &str = "shared.key";

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
        Self::start_with(postgres, Folder::serve)
    }

    /// Servers with a configuration file.
    fn configured(postgres: &Postgres, config: &str) -> (Self, String) {
        Self::start_with(postgres, |folder, options| {
            folder.write("named.yaml", config);
            folder.serve_with(options, &[(CONFIG_VARIABLE, "named.yaml")])
        })
    }

    /// Servers that say where they are reached. They trust proxies on this machine.
    fn start_reachable(postgres: &Postgres) -> (Self, String) {
        Self::start_with(postgres, |folder, options| {
            let socket = TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", socket.local_addr().unwrap());
            let options = format!("--advertise-url {url} --trusted-proxy 127.0.0.1/32 {options}");
            let line = format!("serve --admin-token-file admin.token {options}");
            let served = folder.serve_in_shell(PASS_ONE, Stdio::from(OwnedFd::from(socket)), &line, &[]);
            served.unwrap_or_else(|run| panic!("serve {options} ended:\n{}", run.all()))
        })
    }

    fn start_with(postgres: &Postgres, serve: impl Fn(&Folder, &str) -> Serve) -> (Self, String) {
        let (folders, database) = ([Folder::new(), Folder::new()], postgres.database());
        // A key of their own, which can be replaced.
        let key = folders[0].path(MASTER_KEY);
        fs::copy(postgres.master_key(), &key).unwrap();
        let store = format!("--store {} --master-key-file {}", postgres.url(&database), key.display());
        let options = format!("{store} --security-log security.log --base-url http://gateway.test");
        let first = serve(&folders[0], &options);
        let second = serve(&folders[1], &options);
        assert!(second.said().contains("This one follows it"), "{}", second.said());
        let token = first.token.clone();
        (Self { first, second, folders, options: store, token }, database)
    }

    fn get(&self, serve: &Serve, path: &str) -> HttpAnswer {
        serve.call_as(&self.token, "GET", path, "")
    }

    /// A request with further headers.
    fn call(&self, serve: &Serve, method: &str, path: &str, further: &[(&str, &str)], body: &str) -> HttpAnswer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [&[("Authorization", bearer.as_str()), ("Service-Version", "2")][..], further].concat();
        http(&serve.address, method, path, &headers, body)
    }

    /// The revision that a server has.
    fn revision(&self, serve: &Serve) -> u64 {
        serve.metric("edgewright_revision").unwrap() as u64
    }

    /// Creates an edge, and returns the answer.
    fn create(&self, serve: &Serve, host: &str) -> HttpAnswer {
        let body = format!(r#"{{"hostports":["{host}.example.com:443"]}}"#);
        serve.call_as(&self.token, "POST", "/edges/https", &body)
    }

    /// Creates an edge at the first server, and waits until the second one has it.
    fn share(&self, host: &str) -> HttpAnswer {
        let created = self.create(&self.first, host);
        assert_eq!(created.status, 201, "{}", created.body);
        within(LAG, "the commit", || self.knows(&self.second, host));
        created
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

    /// The lines of a stream of changes, with the ID of the last known event, or from now on.
    fn watch(&self, serve: &Serve, last: Option<&str>) -> impl Iterator<Item = String> + use<> {
        let mut stream = TcpStream::connect(&serve.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        let head = format!("Host: x\r\nAuthorization: Bearer {}\r\nService-Version: 2\r\n{last}", self.token);
        stream.write_all(format!("GET /watch HTTP/1.0\r\n{head}\r\n").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        // The start of the stream has the revision that it begins after.
        lines.find(|line| line.starts_with("id: ")).unwrap();
        lines
    }

    fn knows(&self, serve: &Serve, host: &str) -> Option<()> {
        self.get(serve, "/edges/https?limit=1000").body.contains(&format!("\"{host}.example.com:443\"")).then_some(())
    }

    /// Waits until a server that is ready says that the database does not answer.
    fn warns_of_silence(&self, serve: &Serve) {
        until("the warning", || {
            let readiness = self.get(serve, "/readyz");
            assert_eq!(readiness.status, 200, "{}", readiness.body);
            readiness.body.contains("no news from the database for").then_some(())
        });
    }
}

/// Ends the session of a server that was stopped. Newer versions of PostgreSQL do so by themselves.
fn end_session(postgres: &Postgres, database: &str, serve: &Serve) {
    let version: u32 = postgres.psql(database, "SHOW server_version_num").unwrap().parse().unwrap();
    if version < 140_000 {
        let sql = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}' \
             AND application_name LIKE 'edgewright, process {} %'",
            serve.pid()
        );
        postgres.psql("postgres", &sql).unwrap();
    }
}

/// Reads the next change from a stream, which must be that of an edge. Returns the ID of its revision, which comes after its changes.
fn told(mut lines: impl Iterator<Item = String>, host: &str) -> String {
    let change = lines.find(|line| line.starts_with("data: ")).unwrap();
    assert!(change.contains(&format!("{host}.example.com:443")), "{change}");
    lines.find_map(|line| line.strip_prefix("id: ").map(str::to_owned)).unwrap()
}

#[test]
fn who_follows_reads_what_the_writer_commits_and_changes_nothing() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let created = pair.share("one");
    let path = format!("/edges/https/{}", created.json()["id"].as_str().unwrap());
    for path in [path.as_str(), "/edges/https", "/history", "/sources"] {
        let [there, here] = [first, second].map(|serve| pair.get(serve, path));
        assert_eq!((here.status, &here.body), (200, &there.body), "{path}");
        assert_eq!(here.header("etag"), there.header("etag"), "{path}");
    }
    let lines = pair.watch(second, None);
    assert_eq!(pair.create(first, "two").status, 201);
    told(lines, "two");
    for (method, path, body) in [
        ("POST", "/edges/https", r#"{"hostports":["three.example.com:443"]}"#),
        ("DELETE", path.as_str(), ""),
        ("POST", "/sources/shop/suspend", r#"{"reason":"a test"}"#),
        ("POST", "/reconciliations", r#"{"source":"shop","files":[]}"#),
    ] {
        let refused = second.call_as(&pair.token, method, path, body);
        assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_NOT_THE_WRITER"), "{path}");
        assert!(refused.body.contains(&format!("process {}", first.pid())), "{}", refused.body);
        assert_eq!(refused.header("retry-after").len(), 0);
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
    within(LAG, "the state", || pair.knows(&third, "after"));
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
    first.signal("STOP");
    end_session(&postgres, &database, first);
    within(Duration::from_secs(30), "a write", || pair.creates(second, "during"));
    first.signal("CONT");
    until("a follower", || {
        let refused = pair.try_create(first, "never")?;
        // No server can forward what is sent to it: neither says where it is reached.
        let follows = refused.body.contains("only follows") && refused.body.contains("has no `--advertise-url`");
        let expected = (503, usize::from(!follows));
        assert_eq!((refused.status, refused.header("retry-after").len()), expected, "{}", refused.body);
        assert_ne!(refused.code(), "ERR_EDGEWRIGHT_STORE_LOCKED");
        follows.then_some(())
    });
    within(LAG, "the commit", || pair.knows(first, "during"));
    assert_eq!(pair.create(second, "afterwards").status, 201);
    within(LAG, "the commit", || pair.knows(first, "afterwards"));
    for serve in [first, second] {
        assert!(pair.knows(serve, "before").is_some() && pair.knows(serve, "never").is_none());
    }
}

#[test]
fn reads_go_on_while_the_database_is_away() {
    let Some(postgres) = Postgres::start() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    pair.share("one");
    postgres.kill();
    // Nobody can forward a change to the first one, which does not say where it is reached.
    for (serve, retries) in [(first, 1), (second, 0)] {
        assert!(pair.knows(serve, "one").is_some());
        let refused = pair.create(serve, "two");
        assert_eq!((refused.status, refused.header("retry-after").len()), (503, retries), "{}", refused.body);
    }
    until("a writer that is not ready", || {
        let readiness = pair.get(first, "/readyz");
        (readiness.status == 503 && readiness.body.contains("no connection to the database")).then_some(())
    });
    // Others need no writer to be asked.
    pair.warns_of_silence(second);
    postgres.run();
    // Nobody had reason to take the place of the writer.
    within(CHANGE, "a write", || pair.creates(first, "three"));
    within(CHANGE, "the commit", || pair.knows(second, "three"));
    until("readiness", || (pair.get(first, "/readyz").body == "ready\n").then_some(()));
    assert!(pair.knows(second, "one").is_some() && pair.knows(second, "two").is_none());
}

#[test]
fn a_round_that_cannot_start_all_of_its_parts_serves_and_tries_again() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let folder = Folder::new();
    folder.write("shop/one.yaml", &edge("sourced", "declared"));
    let config = "notifications: {files: [{name: audit, path: changes.jsonl}]}\nsources: [{name: shop, path: shop}]\n";
    folder.write("named.yaml", config);
    // Who follows notifies nobody, so it does not look at the file.
    fs::create_dir(folder.path("changes.jsonl")).unwrap();
    let options = format!("{} --security-log security.log", pair.options);
    let third = folder.serve_with(&options, &[("EDGEWRIGHT_CONFIG", "named.yaml")]);
    pair.first.signal("KILL");
    pair.second.signal("KILL");
    within(CHANGE, "a write", || pair.creates(&third, "one"));
    third.wait_for("is not a regular file");
    let readiness =
        within(LAG, "what has not started", || Some(pair.get(&third, "/readyz")).filter(|it| it.status == 503));
    let reason = "sources have not started: see GET /sources or the log for the error";
    assert!(readiness.body.contains(reason), "{}", readiness.body);
    let source = pair.get(&third, "/sources/shop");
    assert_eq!((source.status, source.json()["state"].as_str()), (200, Some("Failed")), "{}", source.body);
    let condition = &source.json()["conditions"][0];
    assert_eq!(condition["reason"], "NotStarted");
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("not started: ") && message.contains("is not a regular file"), "{message}");
    let synced = pair.call(&third, "POST", "/sources/shop/sync", &[], "");
    assert_eq!((synced.status, synced.header("retry-after").len()), (503, 1), "{}", synced.body);
    let applied = r#"{"source":"shop","files":[{"name":"a.yaml","text":"kind: HttpsEdge"}]}"#;
    assert_eq!(pair.call(&third, "POST", "/reconciliations", &[], applied).status, 409);
    assert!(pair.get(&third, "/metrics").body.contains("edgewright_reconcile_loop_up{source=\"shop\"} 0"));
    let status = run_with_token(&folder, &third, &pair.token, "status");
    assert_eq!(status.code, 2, "{}", status.all());
    has(&status, &["shop", "Failed", "not started: "]);
    fs::remove_dir(folder.path("changes.jsonl")).unwrap();
    let mut number = 0;
    within(Duration::from_secs(40), "a notification", || {
        number += 1;
        drop(pair.try_create(&third, &format!("after{number}")));
        fs::metadata(folder.path("changes.jsonl")).ok().filter(|found| found.len() > 0).map(drop)
    });
    assert!(pair.knows(&third, "one").is_some());
    until("the source", || {
        let source = pair.get(&third, "/sources/shop");
        (source.status == 200 && source.json()["state"] == "Synced").then_some(())
    });
    until("readiness", || (pair.get(&third, "/readyz").body == "ready\n").then_some(()));
}

#[test]
fn who_follows_keeps_what_it_has_when_a_newer_version_migrates_the_tables() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    pair.share("one");
    let version = postgres.psql(&database, "SELECT version FROM edgewright.schema_version").unwrap();
    let set = |version: &str| {
        postgres.psql(&database, &format!("UPDATE edgewright.schema_version SET version = {version}")).unwrap();
    };
    set("99");
    second.wait_for("version 99");
    assert_eq!(pair.create(first, "two").status, 201);
    std::thread::sleep(Duration::from_millis(500));
    assert!(pair.knows(second, "one").is_some() && pair.knows(second, "two").is_none());
    assert_eq!(pair.get(second, "/readyz").status, 200);
    set(&version);
    within(LAG, "the commit", || pair.knows(second, "two"));
}

#[test]
fn secrets_that_the_writer_destroys_are_in_no_answer_of_who_follows() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let send = |method: &str, path: &str, body: &str| {
        let answer = first.call_as(&pair.token, method, path, body);
        assert!([200, 201].contains(&answer.status), "{path}: {}", answer.body);
        answer.json()["id"].as_str().unwrap_or_default().to_owned()
    };
    let edge = send("POST", "/edges/https", r#"{"hostports":["one.example.com:443"]}"#);
    let routes = format!("/edges/https/{edge}/routes");
    let route = send("POST", &routes, r#"{"match_type":"path_prefix","match":"/"}"#);
    for secret in ["hunter2-first", "hunter2-second"] {
        let body = format!(r#"{{"provider":"github","secret":"{secret}"}}"#);
        send("PUT", &format!("{routes}/{route}/webhook_verification"), &body);
    }
    let told = |path: &str| pair.get(second, path).body;
    within(LAG, "the commit", || told(&format!("/edges/https/{edge}")).contains("hunter2-second").then_some(()));
    // The server keeps the page, and the state of the revision.
    let former = (1..10).map(|at| format!("/edges/https?at={at}")).find(|path| told(path).contains("hunter2-first"));
    let former = former.unwrap();
    send("POST", "/store/rekey", r#"{"forget_secrets":true}"#);
    within(LAG, "the end of the secret", || (!told(&former).contains("hunter2-first")).then_some(()));
    assert!(told("/edges/https").contains("hunter2-second"));
}

#[test]
fn a_watch_goes_on_at_another_server_without_a_gap() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let lines = pair.watch(first, None);
    assert_eq!(pair.create(first, "one").status, 201);
    let one = told(lines, "one");
    pair.share("two");
    let two = told(pair.watch(second, Some(&one)), "two");
    first.signal("KILL");
    within(CHANGE, "a write", || pair.creates(second, "three"));
    assert_eq!(told(pair.watch(second, Some(&one)), "two"), two);
    let three = told(pair.watch(second, Some(&two)), "three");
    // One that was not there when they were made has read them.
    let third = Folder::new();
    let third = third.serve(&format!("{} --security-log security.log", pair.options));
    assert_eq!(told(pair.watch(&third, Some(&one)), "two"), two);
    assert_eq!(told(pair.watch(&third, Some(&two)), "three"), three);
}

#[test]
fn an_etag_of_one_server_is_that_of_the_others() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let created = pair.share("one").json();
    let path = format!("/edges/https/{}", created["id"].as_str().unwrap());
    let etag = |serve: &Serve| pair.get(serve, &path).header("etag")[0].to_owned();
    let with = |serve: &Serve, method: &str, condition: (&str, &str), body: &str| {
        let bearer = format!("Bearer {}", pair.token);
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2"), condition];
        http(&serve.address, method, &path, &headers, body).status
    };
    assert_eq!(with(second, "GET", ("If-None-Match", &etag(first)), ""), 304);
    // What was read at one server is changed at another one, once.
    let (read, body) = (etag(second), r#"{"description":"changed"}"#);
    assert_eq!(with(first, "PATCH", ("If-Match", &read), body), 200);
    assert_eq!(with(first, "PATCH", ("If-Match", &read), body), 412);
    let changed = etag(first);
    assert_ne!(changed, read);
    within(LAG, "the commit", || (etag(second) == changed).then_some(()));
    first.signal("KILL");
    within(CHANGE, "a write", || pair.creates(second, "two"));
    assert_eq!(etag(second), changed);
    assert_eq!(with(second, "PATCH", ("If-Match", &changed), r#"{"description":"again"}"#), 200);
}

#[test]
fn notifications_come_from_the_server_that_writes_and_none_is_lost_when_another_one_does() {
    let Some(postgres) = Postgres::shared() else { return };
    let config = "notifications: {files: [{name: audit, path: changes.jsonl}]}\n";
    let (pair, _) = Pair::configured(&postgres, config);
    let Pair { first, second, folders, .. } = &pair;
    let revisions = |folder: &Folder| -> Vec<u64> {
        let text = std::fs::read_to_string(folder.path("changes.jsonl")).unwrap_or_default();
        let lines = text.lines().map_while(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.map(|line| line["data"]["revision"].as_u64().unwrap()).collect()
    };
    for host in ["one", "two", "three"] {
        assert_eq!(pair.create(first, host).status, 201);
    }
    // The first one is that of the first admin.
    until("the lines", || (revisions(&folders[0]) == [1, 2, 3, 4]).then_some(()));
    within(LAG, "the commits", || pair.knows(second, "three"));
    assert!(!folders[1].path("changes.jsonl").exists());
    first.signal("KILL");
    within(CHANGE, "a write", || pair.creates(second, "after"));
    until("the line", || revisions(&folders[1]).contains(&5).then_some(()));
    let (before, after) = (revisions(&folders[0]), revisions(&folders[1]));
    assert!(after.is_sorted(), "{after:?}");
    let all: BTreeSet<u64> = before.into_iter().chain(after).collect();
    assert_eq!(all.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

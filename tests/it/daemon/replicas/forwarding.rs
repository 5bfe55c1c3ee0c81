//! Changes through a server that follows: it forwards them to the one that writes, and shows what came of them.

use std::{
    net::TcpListener,
    os::fd::OwnedFd,
    process::Stdio,
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{CHANGE, LAG, Pair, end_session};
use crate::{
    daemon::activation::PASS_ONE,
    security::tls::{Authority, TLS},
    support::{
        git::head,
        http::http,
        postgres::Postgres,
        program::{Folder, Serve, until, within},
        sources::repository,
        users::{run_with_token, signed_in},
    },
};

/// A request for a source with one edge, whose host has the name of the source.
fn reconciliation(source: &str, dry_run: bool) -> String {
    let text = format!(
        "apiVersion: edgewright/v1\\nkind: HttpsEdge\\nmetadata: {{name: {source}}}\\n\
         spec: {{hostports: ['{source}.example.com:443']}}\\n"
    );
    format!(r#"{{"source":"{source}","dry_run":{dry_run},"files":[{{"name":"a.yaml","text":"{text}"}}]}}"#)
}

#[test]
fn a_change_through_a_server_that_follows_is_the_writers_and_seen_there_at_once() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    assert!(second.said().contains("forwards changes to it"), "{}", second.said());
    // Probes have no token, so they do not see the URL of the writer.
    let follows = "following: another server writes to the store";
    assert_eq!(pair.get(second, "/readyz").body, format!("ready\n{follows}\n"));
    let run = run_with_token(&pair.folders[1], second, &pair.token, "status");
    assert!(run.out.ends_with(&format!("\nserver: {follows}\n")), "{}", run.all());
    for number in 0..20 {
        let created = pair.create(second, &format!("host{number}"));
        assert_eq!(created.status, 201, "{}", created.body);
        let revision: u64 = created.header("edgewright-revision")[0].parse().unwrap();
        assert!(pair.revision(second) >= revision);
        for name in ["location", "etag", "request-id", "content-length"] {
            assert_eq!(created.header(name).len(), 1, "{name}");
        }
        let path = format!("/edges/https/{}", created.json()["id"].as_str().unwrap());
        assert_eq!(pair.get(second, &path).header("etag"), created.header("etag"));
        assert_eq!(pair.get(first, &path).body, created.body);
    }
    // Conditions, errors and responses without a body are those of the writer.
    let created = pair.create(second, "shared");
    let path = format!("/edges/https/{}", created.json()["id"].as_str().unwrap());
    let patch = r#"{"description":"changed"}"#;
    let refused = pair.call(second, "PATCH", &path, &[("If-Match", "\"other\"")], patch);
    assert_eq!((refused.status, refused.code().as_str()), (412, "ERR_EDGEWRIGHT_PRECONDITION_FAILED"));
    let changed = pair.call(second, "PATCH", &path, &[("If-Match", created.header("etag")[0])], patch);
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(pair.get(second, &path).json()["description"], "changed");
    assert_eq!(pair.create(second, "shared").status, pair.create(first, "shared").status);
    let wrong = pair.call(second, "POST", "/edges/https", &[], r#"{"hostprots":[]}"#);
    assert_eq!((wrong.status, wrong.code().as_str()), (400, "ERR_EDGEWRIGHT_UNKNOWN_FIELD"));
    let deleted = pair.call(second, "DELETE", &path, &[], "");
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!(pair.get(second, &path).status, 404);
    // A dry run is answered by the server that was asked.
    let before = pair.revision(first);
    let planned = pair.call(second, "POST", "/reconciliations", &[], &reconciliation("shop", true));
    assert_eq!((planned.status, pair.revision(first)), (200, before), "{}", planned.body);
    let applied = pair.call(second, "POST", "/reconciliations", &[], &reconciliation("shop", false));
    assert_eq!(applied.status, 201, "{}", applied.body);
    assert!(pair.knows(second, "shop").is_some());
    // So large that it needs a place before it is received.
    let padded = format!("{}apiVersion", "# padding\\n".repeat(10_000));
    let large = reconciliation("large", false).replace("apiVersion", &padded);
    for (place, status) in [("the first", 201), ("a free one", 200)] {
        let applied = pair.call(second, "POST", "/reconciliations", &[], &large);
        assert_eq!(applied.status, status, "{place}: {}", applied.body);
    }
    let [there, here] = [first, second].map(|serve| pair.get(serve, "/sources/shop"));
    assert_eq!((here.status, here.body), (200, there.body));
}

#[test]
fn a_plan_has_its_page_at_every_server() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    let body = reconciliation("shop", true).replace("\"dry_run\"", "\"page\":true,\"dry_run\"");
    let planned = pair.call(second, "POST", "/reconciliations", &[], &body);
    assert_eq!(planned.status, 200, "{}", planned.body);
    let page = planned.json()["page"].as_str().unwrap().strip_prefix("http://gateway.test").unwrap().to_owned();
    for serve in [first, second] {
        let cookie = signed_in(serve, &pair.token);
        let shown = http(&serve.address, "GET", &page, &[("Cookie", cookie.as_str())], "");
        assert!(shown.status == 200 && shown.body.contains("Plan of shop"), "{}", shown.body);
    }
    // A server that cannot reach the writer plans itself, and keeps no plan that others would not find.
    let (pair, _) = Pair::start(&postgres);
    let planned = pair.call(&pair.second, "POST", "/reconciliations", &[], &body);
    assert_eq!(planned.status, 200, "{}", planned.body);
    assert!(planned.json().get("page").is_none() && planned.json()["plan"].is_object(), "{}", planned.body);
}

#[test]
fn changes_are_forwarded_over_tls_by_those_who_trust_the_authority_of_the_writer() {
    let Some(postgres) = Postgres::shared() else { return };
    let (one, other) = (Authority::new("one"), Authority::new("two"));
    let [first, second, third] = [(); 3].map(|()| Folder::new());
    let (database, key) = (postgres.url(&postgres.database()), postgres.master_key());
    let store = format!("--base-url http://gateway.test --store {database} --master-key-file {}", key.display());
    one.certify(&first);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", socket.local_addr().unwrap());
    let line = format!("serve --admin-token-file admin.token --advertise-url {url} {TLS} {store}");
    let writer = first.serve_in_shell(PASS_ONE, Stdio::from(OwnedFd::from(socket)), &line, &[]);
    let writer = writer.unwrap_or_else(|run| panic!("{line} ended:\n{}", run.all()));
    for (folder, authority, expected) in [(&second, &one, 201), (&third, &other, 503)] {
        folder.write("ca.pem", &authority.pem());
        let follower = folder.serve_with(&store, &[("SSL_CERT_FILE", "ca.pem")]);
        let body = r#"{"hostports":["a.example.com:443"]}"#;
        let answer = follower.call_as(&writer.token, "POST", "/edges/https", body);
        assert_eq!(answer.status, expected, "{}", answer.body);
        let is_untrusted = answer.body.contains("ERR_EDGEWRIGHT_NOT_THE_WRITER") && answer.body.contains("certificate");
        assert_eq!(is_untrusted, expected == 503, "{}", answer.body);
    }
}

#[test]
fn a_form_of_the_dashboard_is_forwarded_with_its_session() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    let created = pair.call(first, "POST", "/api_keys", &[], r#"{"description":"leaked"}"#);
    assert_eq!(created.status, 201, "{}", created.body);
    let key = created.json()["id"].as_str().unwrap().to_owned();
    within(LAG, "the key", || (pair.get(second, &format!("/api_keys/{key}")).status == 200).then_some(()));
    let cookie = signed_in(second, &pair.token);
    let page = format!("/ui/keys/{key}/revoke");
    let shown = http(&second.address, "GET", &page, &[("Cookie", cookie.as_str())], "");
    let token = shown.body.split_once("name=\"form_token\" value=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let origin = format!("http://{}", second.address);
    let form = [
        ("Origin", origin.as_str()),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Cookie", cookie.as_str()),
    ];
    let refused = http(&second.address, "POST", &page, &form, "form_token=guessed");
    assert_eq!(refused.status, 403, "{}", refused.body);
    let revoked = http(&second.address, "POST", &page, &form, &format!("form_token={token}"));
    assert_eq!((revoked.status, revoked.header("location")), (303, vec!["../../keys"]), "{}", revoked.body);
    // The server that has forwarded the form shows the change at once.
    assert_eq!(pair.get(second, &format!("/api_keys/{key}")).status, 404);
    within(LAG, "the line", || {
        pair.folders[0]
            .read("security.log")
            .lines()
            .any(|line| line.contains("key_deleted") && line.contains(&key))
            .then_some(())
    });
}

#[test]
fn pages_do_not_say_that_all_is_well_if_only_a_silent_writer_knows() {
    let Some(postgres) = Postgres::shared() else { return };
    // Its server has no address, so nobody can ask it.
    let (pair, _) = Pair::start(&postgres);
    let second = &pair.second;
    let cookie = signed_in(second, &pair.token);
    for (page, times) in [("", 2), ("sources", 1)] {
        let shown = http(&second.address, "GET", &format!("/ui/{page}"), &[("Cookie", cookie.as_str())], "");
        let unknown = shown.body.matches("unknown: the server that writes does not answer").count();
        assert_eq!((shown.status, unknown), (200, times), "{}", shown.body);
        assert!(!shown.body.contains("All followed sources are in sync"), "{}", shown.body);
    }
}

#[test]
fn pages_of_a_server_that_follows_link_to_the_forge() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = repository();
    let config = format!(
        "sources:\n- {{name: shop, repository: {}, ref: main, path: edge, commit_url: 'https://forge.test/{{commit}}'}}\n",
        folder.path("repo").display()
    );
    // Its server has no address, so the other one shows its own pages.
    let (pair, _) = Pair::configured(&postgres, &config);
    let link = format!("href=\"https://forge.test/{}\"", head(&folder, "repo"));
    for serve in [&pair.first, &pair.second] {
        let cookie = signed_in(serve, &pair.token);
        let shown = http(&serve.address, "GET", "/ui/revisions?source=shop", &[("Cookie", cookie.as_str())], "");
        assert!(shown.body.contains(&link), "{link}: {}", shown.body);
    }
}

#[test]
fn the_writer_knows_the_client_of_a_forwarded_request_and_believes_no_stranger() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    let client = [("X-Forwarded-For", "198.51.100.7")];
    let created = pair.call(second, "POST", "/api_keys", &client, r#"{"description":"forwarded"}"#);
    assert_eq!(created.status, 201, "{}", created.body);
    let key = created.json();
    assert!(!key["token"].as_str().unwrap().is_empty());
    let line = within(LAG, "the line", || {
        let log = pair.folders[0].read("security.log");
        let is_it = |line: &&str| line.contains("key_created") && line.contains(key["id"].as_str().unwrap());
        log.lines().find(is_it).map(str::to_owned)
    });
    assert!(line.contains("\"198.51.100.7\"") && line.contains("\"through\":\"127.0.0.1\""), "{line}");
    assert!(!pair.folders[1].read("security.log").contains("key_created"));
    // A key that can only be used from an address is used from that of the client.
    let scoped = r#"{"description":"scoped","scope":{"addresses":["203.0.113.0/24"],"apply":["shop"]}}"#;
    let scoped = pair.call(second, "POST", "/api_keys", &[], scoped);
    assert_eq!(scoped.status, 201, "{}", scoped.body);
    let bearer = format!("Bearer {}", scoped.json()["token"].as_str().unwrap());
    let apply = |address: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2"), ("X-Forwarded-For", address)];
        http(&second.address, "POST", "/reconciliations", &headers, &reconciliation("shop", false)).status
    };
    assert_eq!((apply("203.0.113.9"), apply("198.51.100.7")), (201, 403));
    // Who asks from another address learns nothing of the store, and waits for nothing.
    let needed = [
        ("Authorization", bearer.as_str()),
        ("Service-Version", "2"),
        ("X-Forwarded-For", "198.51.100.7"),
        ("If-Revision-At-Least", "1000000"),
    ];
    let began = Instant::now();
    assert_eq!(http(&second.address, "GET", "/edges/https", &needed, "").status, 403);
    assert!(began.elapsed() < Duration::from_secs(3));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let forged = format!("{now} {hash} 203.0.113.9 - {hash}", hash = "0".repeat(64));
    for serve in [first, second] {
        let body = r#"{"hostports":["forged.example.com:443"]}"#;
        let refused = pair.call(serve, "POST", "/edges/https", &[("Edgewright-Forwarded", &forged)], body);
        assert_eq!((refused.status, refused.code().as_str()), (401, "ERR_EDGEWRIGHT_UNAUTHENTICATED"));
        assert!(pair.knows(serve, "forged").is_none());
    }
    within(LAG, "the line", || pair.folders[0].read("security.log").contains("forged forwarding").then_some(()));
}

#[test]
fn a_request_waits_for_the_revision_that_it_needs_and_not_for_ever() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    let list = |serve: &Serve, revision: u64| {
        let needed = revision.to_string();
        pair.call(serve, "GET", "/edges/https?limit=1000", &[("If-Revision-At-Least", &needed)], "")
    };
    for number in 0..20 {
        let created = pair.create(first, &format!("host{number}"));
        let listed = list(second, created.header("edgewright-revision")[0].parse().unwrap());
        assert!(listed.body.contains(&format!("\"host{number}.example.com:443\"")), "{}", listed.body);
    }
    let next = pair.revision(second) + 1;
    thread::scope(|scope| {
        let waiting = scope.spawn(|| list(second, next));
        thread::sleep(Duration::from_millis(300));
        assert!(!waiting.is_finished());
        assert_eq!(pair.create(first, "late").status, 201);
        let listed = waiting.join().unwrap();
        assert!(listed.status == 200 && listed.body.contains("late.example.com"), "{}", listed.body);
    });
    for (serve, waits) in [(second, true), (first, false)] {
        let began = Instant::now();
        let refused = list(serve, next + 1000);
        assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_NOT_CAUGHT_UP"));
        assert_eq!(refused.header("retry-after").len(), 1);
        assert_eq!(began.elapsed() > Duration::from_secs(4), waits, "{:?}", began.elapsed());
    }
    let began = Instant::now();
    let headers = [("Service-Version", "2"), ("If-Revision-At-Least", "1000000")];
    assert_eq!(http(&second.address, "GET", "/edges/https", &headers, "").status, 401);
    assert!(began.elapsed() < Duration::from_secs(3));
    assert_eq!(pair.call(first, "GET", "/edges/https", &[("If-Revision-At-Least", "x")], "").status, 400);
}

#[test]
fn a_new_token_is_known_to_a_server_that_is_told_its_revision() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    let ask = |token: &str, needed: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2"), ("If-Revision-At-Least", needed)];
        http(&second.address, "GET", "/whoami", &headers, "").status
    };
    for _ in 0..20 {
        let created = pair.call(first, "POST", "/api_keys", &[], r#"{"description":"new"}"#);
        assert_eq!(created.status, 201, "{}", created.body);
        let token = created.json()["token"].as_str().unwrap().to_owned();
        assert_eq!(ask(&token, created.header("edgewright-revision")[0]), 200);
    }
    // Others wait in a few places of their address.
    let began = Instant::now();
    let answers: Vec<(u16, bool)> = thread::scope(|scope| {
        let refused = || (ask("ew_ak_1_unknown", "1000000"), began.elapsed() > Duration::from_secs(4));
        let asked: Vec<_> = (0..8).map(|_| scope.spawn(refused)).collect();
        asked.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|(status, _)| *status == 401), "{answers:?}");
    assert_eq!(answers.iter().filter(|(_, waited)| *waited).count(), 4, "{answers:?}");
}

#[test]
fn changes_are_refused_between_two_writers_and_forwarded_once() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    assert_eq!(pair.create(second, "before").status, 201);
    // A server that is told to forward to itself does not do so twice.
    let url = format!("UPDATE edgewright.head SET url = 'http://{}'", second.address);
    postgres.psql(&database, &url).unwrap();
    within(LAG, "the other URL", || {
        let refused = pair.create(second, "never");
        (refused.status == 503).then(|| assert_eq!(refused.code(), "ERR_EDGEWRIGHT_NOT_THE_WRITER"))
    });
    let url = format!("UPDATE edgewright.head SET url = 'http://{}'", first.address);
    postgres.psql(&database, &url).unwrap();
    within(LAG, "the URL", || pair.creates(second, "again"));
    first.signal("KILL");
    within(CHANGE, "a write", || {
        let answer = pair.try_create(second, "after")?;
        assert!(answer.status == 201 || answer.status == 503, "{}", answer.body);
        assert_eq!(answer.header("retry-after").len(), usize::from(answer.status == 503));
        (answer.status == 201).then_some(())
    });
    for host in ["before", "again", "after"] {
        assert!(pair.knows(second, host).is_some(), "{host}");
    }
}

#[test]
fn nobody_knows_what_a_writer_did_that_was_stopped_during_a_forwarded_change() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    assert_eq!(pair.create(second, "before").status, 201);
    // It renews its session for the first time within a second.
    thread::sleep(Duration::from_secs(2));
    first.signal("STOP");
    thread::scope(|scope| {
        let lost = scope.spawn(|| pair.create(second, "lost"));
        thread::sleep(Duration::from_millis(500));
        // Reads do not wait for the writer.
        assert!(pair.knows(second, "before").is_some());
        end_session(&postgres, &database, first);
        let lost = lost.join().unwrap();
        assert_eq!((lost.status, lost.code().as_str()), (503, "ERR_EDGEWRIGHT_WRITER_LOST"), "{}", lost.body);
        assert_eq!(lost.header("retry-after").len(), 1);
    });
    within(CHANGE, "a write", || pair.creates(second, "after"));
    first.signal("CONT");
    until("a write through the former writer", || pair.creates(first, "through"));
    for serve in [first, second] {
        assert!(pair.knows(serve, "lost").is_none() && pair.knows(serve, "through").is_some());
    }
}

//! Gateways and streams at a server that follows and is behind: nobody is sent back, and nothing is missed.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{LAG, Pair};
use crate::support::{
    http::{HttpAnswer, http},
    postgres::Postgres,
    program::{Serve, within},
};

/// A gateway of two servers.
struct PairGateway<'a> {
    pair: &'a Pair,
    token: String,
}

impl<'a> PairGateway<'a> {
    fn of(pair: &'a Pair) -> Self {
        let path = "/api_keys?owner_role=gateway";
        let created = pair.call(&pair.first, "POST", path, &[], r#"{"owner_id":"bot_gateway"}"#);
        assert_eq!(created.status, 201, "{}", created.body);
        let token = created.json()["token"].as_str().unwrap().to_owned();
        let revision: u64 = created.header("edgewright-revision")[0].parse().unwrap();
        within(LAG, "the key", || (pair.revision(&pair.second) >= revision).then_some(()));
        Self { pair, token }
    }

    fn ask(&self, serve: &Serve, path: &str, further: &[(&str, &str)]) -> HttpAnswer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [&[("Authorization", bearer.as_str()), ("Service-Version", "2")][..], further].concat();
        http(&serve.address, "GET", path, &headers, "")
    }

    fn read(&self, serve: &Serve, since: u64) -> HttpAnswer {
        self.ask(serve, &format!("/gateway/configuration?since={since}"), &[])
    }

    /// Creates an edge at the writer, and returns the revision.
    fn create(&self, host: &str) -> u64 {
        let created = self.pair.create(&self.pair.first, host);
        assert_eq!(created.status, 201, "{}", created.body);
        created.header("edgewright-revision")[0].parse().unwrap()
    }
}

/// Fails unless a server has waited for a revision and does not have it.
fn assert_behind(refused: &HttpAnswer, waited: Duration) {
    assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_NOT_CAUGHT_UP"), "{}", refused.body);
    assert_eq!(refused.header("retry-after").len(), 1);
    assert!(waited > Duration::from_secs(4), "{waited:?}");
}

#[test]
fn no_gateway_is_sent_back_by_a_server_that_is_behind() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start(&postgres);
    let gateway = PairGateway::of(&pair);
    let Pair { first, second, .. } = &pair;
    // Each read at the server that follows comes before it can have the commit.
    for number in 0..20 {
        let revision = gateway.create(&format!("host{number}"));
        let read = gateway.read(second, revision);
        assert_eq!(read.status, 200, "{}", read.body);
        let configuration = read.json();
        assert_eq!(configuration["full"], false, "{}", read.body);
        assert!(configuration["revision"].as_u64().unwrap() >= revision);
    }
    // One that learns of a revision from a stream elsewhere names it.
    let etag = gateway.read(second, 0).header("etag")[0].to_owned();
    let known = pair.revision(second);
    let announced = gateway.create("announced").to_string();
    let headers = [("If-None-Match", etag.as_str()), ("If-Revision-At-Least", announced.as_str())];
    let read = gateway.ask(second, &format!("/gateway/configuration?since={known}"), &headers);
    assert!(read.status == 200 && read.body.contains("announced.example.com"), "{} {}", read.status, read.body);

    let version = postgres.psql(&database, "SELECT version FROM edgewright.schema_version").unwrap();
    let set = |version: &str| {
        postgres.psql(&database, &format!("UPDATE edgewright.schema_version SET version = {version}")).unwrap();
    };
    set("99");
    second.wait_for("version 99");
    let ahead = gateway.create("ahead");
    let (began, last) = (Instant::now(), ahead.to_string());
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let refused = gateway.ask(second, "/watch", &[("Last-Event-ID", last.as_str())]);
            assert_behind(&refused, began.elapsed());
        });
        let refused = gateway.read(second, ahead);
        assert_behind(&refused, began.elapsed());
        watching.join().unwrap();
    });
    set(&version);
    within(LAG, "the commit", || pair.knows(second, "ahead"));
    assert_eq!(gateway.read(second, ahead).json()["full"], false);
    assert_eq!(gateway.read(first, ahead).json()["full"], false);
}

#[test]
fn a_revision_that_the_database_does_not_have_is_unknown_to_all() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let gateway = PairGateway::of(&pair);
    for serve in [&pair.first, &pair.second] {
        let read = gateway.read(serve, 1_000_000);
        assert_eq!((read.status, read.json()["full"].as_bool()), (200, Some(true)), "{}", read.body);
    }
    let watched = gateway.ask(&pair.second, "/watch?since=1000000", &[]);
    assert_eq!((watched.status, watched.code().as_str()), (410, "ERR_EDGEWRIGHT_REVISION_GONE"), "{}", watched.body);
}

#[test]
fn a_stream_goes_on_at_a_server_that_does_not_have_its_last_event_yet() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let gateway = PairGateway::of(&pair);
    for number in 0..10 {
        let last = gateway.create(&format!("host{number}")).to_string();
        // It begins after the event.
        drop(pair.watch(&pair.second, Some(&last)));
    }
}

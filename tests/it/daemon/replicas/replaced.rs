//! A database that has another store, no store, or another history than the servers have read.

use std::time::Duration;

use super::{CHANGE, LAG, Pair};
use crate::support::{
    postgres::Postgres,
    program::{Folder, until, within},
};

#[test]
fn no_server_moves_into_another_store_that_takes_the_place_of_its_own() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    pair.share("one");
    // The database is empty now, and a server that is started creates a store in it.
    postgres.psql(&database, "ALTER SCHEMA edgewright RENAME TO kept").unwrap();
    second.wait_for("no news of the store");
    until("a writer that is not ready", || (pair.get(first, "/readyz").status == 503).then_some(()));
    let folder = Folder::new();
    let third = folder.serve(&format!("{} --security-log security.log", pair.options));
    assert!(!third.said().contains("This one follows it"), "{}", third.said());
    let body = r#"{"hostports":["other.example.com:443"]}"#;
    assert_eq!(third.call("POST", "/edges/https", body).status, 201);
    for serve in [first, second] {
        serve.wait_for("has another store now, or none");
    }
    // Longer than it takes to follow another writer, or to take its place.
    std::thread::sleep(Duration::from_secs(5));
    for serve in [first, second] {
        assert!(pair.knows(serve, "one").is_some() && pair.knows(serve, "other").is_none());
        let refused = pair.create(serve, "never");
        assert_eq!((refused.status, refused.header("retry-after").len()), (503, 1), "{}", refused.body);
        // What is in the database is the history of the other store.
        assert_eq!(pair.get(serve, "/history").status, 503);
    }
    assert_eq!(pair.get(first, "/readyz").status, 503);
    pair.warns_of_silence(second);
    third.stop();
    let back = "ALTER SCHEMA edgewright RENAME TO other; ALTER SCHEMA kept RENAME TO edgewright";
    postgres.psql(&database, back).unwrap();
    within(CHANGE, "a write", || pair.creates(first, "two"));
    for serve in [first, second] {
        within(LAG, "the commit", || pair.knows(serve, "two"));
        assert!(pair.knows(serve, "one").is_some() && pair.knows(serve, "never").is_none());
        assert!(!serve.said().contains("lost changes"), "{}", serve.said());
    }
}

#[test]
fn a_writer_notices_without_a_write_that_it_was_overtaken_or_that_the_history_went_back() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start_reachable(&postgres);
    let Pair { first, second, .. } = &pair;
    pair.share("one");
    postgres.psql(&database, "UPDATE edgewright.head SET epoch = epoch + 1").unwrap();
    first.wait_for("This server can no longer write");
    within(CHANGE, "a write", || pair.creates(second, "two"));
    // As after a failover that has lost the last commit. Both have read it.
    within(LAG, "the commit", || pair.knows(first, "two").and_then(|()| pair.knows(second, "two")));
    let back = "CREATE TABLE last AS SELECT max(position) AS position FROM edgewright.commits; \
                DELETE FROM edgewright.state AS s USING last WHERE s.position = last.position; \
                DELETE FROM edgewright.entries AS e USING last WHERE e.position = last.position; \
                DELETE FROM edgewright.commits AS c USING last WHERE c.position = last.position; \
                UPDATE edgewright.head SET (position, hash, revision, next_order) = (\
                    SELECT position, hash, revision, next_order FROM edgewright.commits ORDER BY position DESC LIMIT 1), \
                    state_digest = (SELECT sum(digest) FROM edgewright.state)";
    postgres.psql(&database, back).unwrap();
    for serve in [first, second] {
        serve.wait_for("it has lost changes that were confirmed");
    }
    within(CHANGE, "a write", || pair.creates(first, "three"));
    let warning = "warning: the database has lost changes that were confirmed; see the server log";
    for serve in [first, second] {
        until("the warning", || pair.get(serve, "/readyz").body.contains(warning).then_some(()));
    }
    assert!(pair.knows(first, "one").is_some() && pair.knows(first, "two").is_none());
}

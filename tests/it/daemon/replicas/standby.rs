//! An address that leads to a standby for a while, as it can during a failover.

use std::time::{Duration, Instant};

use super::{CHANGE, LAG, Pair};
use crate::support::{
    postgres::Postgres,
    program::{Folder, until, within},
};

#[test]
fn servers_conclude_nothing_from_a_standby_and_go_on_with_the_primary() {
    let Some(postgres) = Postgres::start() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    pair.share("one");
    postgres.keep_standby();
    // The standby has nothing of the next writer, either.
    first.signal("KILL");
    within(CHANGE, "a write", || pair.creates(second, "two"));
    let folder = Folder::new();
    let third = &folder.serve(&format!("{} --security-log security.log", pair.options));
    within(LAG, "the commit", || pair.knows(third, "two"));
    postgres.swap_with_standby();
    until("a writer that is not ready", || {
        let readiness = pair.get(second, "/readyz");
        (readiness.status == 503 && readiness.body.contains("no connection to the database")).then_some(())
    });
    // Longer than it takes to read the store again, or to take the place of a writer whose lock is free.
    pair.warns_of_silence(third);
    for serve in [second, third] {
        assert!(pair.knows(serve, "two").is_some());
        let refused = pair.create(serve, "never");
        assert_eq!(refused.status, 503, "{}", refused.body);
        for phrase in ["lost changes", "is read again", "writes no more"] {
            assert!(!serve.said().contains(phrase), "{}", serve.said());
        }
    }
    postgres.swap_with_standby();
    within(CHANGE, "a write", || pair.creates(second, "three"));
    within(CHANGE, "the commit", || pair.knows(third, "three"));
    for serve in [second, third] {
        assert!(pair.knows(serve, "two").is_some() && pair.knows(serve, "never").is_none());
        assert!(!serve.said().contains("lost changes"), "{}", serve.said());
    }
}

#[test]
fn a_database_that_accepts_no_writes_changes_no_roles() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, database) = Pair::start(&postgres);
    let Pair { first, second, .. } = &pair;
    pair.share("one");
    let alter = |what: &str| {
        let sql = format!(
            "ALTER DATABASE \"{database}\" {what}; SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = '{database}' AND application_name LIKE 'edgewright%'"
        );
        postgres.psql("postgres", &sql).unwrap();
    };
    alter("SET default_transaction_read_only = on");
    let end = Instant::now() + Duration::from_secs(4);
    let cause = "the database of the store accepts no writes: try again later";
    while Instant::now() < end {
        for (serve, code, message) in [
            (first, "ERR_EDGEWRIGHT_STORE_UNAVAILABLE", cause),
            (second, "ERR_EDGEWRIGHT_NOT_THE_WRITER", "the one that writes"),
        ] {
            let refused = pair.create(serve, "never");
            assert_eq!((refused.status, refused.code().as_str()), (503, code), "{}", refused.body);
            assert!(refused.body.contains(message), "{}", refused.body);
            assert!(pair.knows(serve, "one").is_some());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(second.said().matches("Another server writes to the store").count(), 1, "{}", second.said());
    alter("RESET default_transaction_read_only");
    within(CHANGE, "a write", || (pair.create(first, "two").status == 201).then_some(()));
    within(CHANGE, "the commit", || pair.knows(second, "two"));
}

//! A database that is away, silent or killed, and what is acknowledged then.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use edgewright::Code;

use super::{cut, failed};
use crate::store::{commit, small};
use crate::support::{
    manifests::bare_edge,
    postgres::Postgres,
    program::{Folder, finish, has, rounds, until},
    users::{assert_refused, client_command},
};

#[test]
fn a_connection_that_is_cut_is_opened_again() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    for number in 1..=5 {
        commit(&store, vec![small(number)]).unwrap();
        cut(&postgres, &database);
    }
    commit(&store, vec![small(6)]).unwrap();
    assert_eq!((store.snapshot().revision, store.verify().unwrap().records), (6, 6));
}

#[test]
fn a_database_that_is_away_is_told_of_quickly_and_nothing_has_to_be_restarted() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = postgres.options(&database);
    let serve = folder.serve(&options);
    let create = || serve.call("POST", "/ip_restrictions", r#"{"type": "api", "description": "a"}"#);
    assert_eq!(create().status, 201);
    folder.write("m/a.yaml", &bare_edge("a", ""));
    let url = format!("http://{}", serve.address);
    let reconcile = || finish(client_command(&folder, &url, &serve.token, "reconcile m"), "");
    let sql = format!(
        "SELECT pid FROM pg_stat_activity \
         WHERE datname = '{database}' AND application_name LIKE 'edgewright, process%'"
    );
    for created in 1..=2 {
        postgres.kill();
        let began = Instant::now();
        let refused = create();
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_STORE_UNAVAILABLE"));
        assert_eq!(refused.header("retry-after"), ["5"]);
        let listed = serve.get("/ip_restrictions").json();
        assert_eq!(listed["ip_restrictions"].as_array().unwrap().len(), created);
        let run = reconcile();
        assert_refused(&run, "STORE_UNAVAILABLE");
        has(&run, &["the database of the store does not answer", "Nothing was applied."]);
        let run = folder.run(&format!("history {options}"));
        assert_eq!(run.code, 1, "{}", run.all());
        has(&run, &["STORE_UNAVAILABLE", "PostgreSQL runs and can be reached"]);
        postgres.run();
        // Before anybody writes, so that no other process takes the lock.
        until("the connection of the writer", || (!postgres.psql("postgres", &sql).unwrap().is_empty()).then_some(()));
        until("readiness", || (serve.get("/readyz").status == 200).then_some(()));
        assert_eq!(create().status, 201);
    }
    assert_eq!(serve.get("/history?limit=5").status, 200);
    // Also if it is not the database that ends.
    let former = postgres.psql("postgres", &sql).unwrap();
    postgres.psql("postgres", &format!("SELECT pg_terminate_backend({former})")).unwrap();
    until("another connection of the writer", || {
        let pid = postgres.psql("postgres", &sql).unwrap();
        (!pid.is_empty() && pid != former).then_some(())
    });
    assert_eq!(create().status, 201);
}

#[test]
fn a_database_that_is_silent_is_told_of_and_a_slow_one_is_waited_for() {
    let Some(postgres) = Postgres::start() else { return };
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(1)]).unwrap();
    let frozen = postgres.freeze();
    let timed = |number: usize| {
        let began = Instant::now();
        (failed(commit(&store, vec![small(number)])), began.elapsed())
    };
    let (error, took) = timed(2);
    assert!(error.code == Code::StoreFailed && error.message.contains("is not known yet"), "{error}");
    assert!(took < Duration::from_secs(20), "{took:?}");
    let (error, took) = timed(3);
    assert_eq!(error.code, Code::StoreUnavailable, "{error}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!(store.snapshot().len(), 1);
    drop(frozen);
    commit(&store, vec![small(4)]).unwrap();
    assert_eq!((store.snapshot().revision, store.verify().unwrap().records), (2, 2));
    // A lock is held for longer than an answer usually takes.
    std::thread::scope(|scope| {
        let hold = "BEGIN; SELECT 1 FROM edgewright.head FOR UPDATE; SELECT pg_sleep(9); COMMIT";
        let held = scope.spawn(|| postgres.psql(&database, hold));
        let waits = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(9)%' AND wait_event = 'PgSleep'";
        until("the lock", || (!postgres.psql("postgres", waits).unwrap().is_empty()).then_some(()));
        commit(&store, vec![small(5)]).unwrap();
        held.join().unwrap().unwrap();
    });
    assert_eq!(store.verify().unwrap().records, 3);
}

#[test]
fn a_database_that_accepts_no_writes_or_cancels_them_is_told_of_as_away_and_nothing_is_kept() {
    let Some(postgres) = Postgres::start() else { return };
    let database = postgres.database();
    let alter = |setting: &str| postgres.psql("postgres", &format!("ALTER DATABASE {database} {setting}")).unwrap();
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(1)]).unwrap();
    alter("SET default_transaction_read_only = on");
    cut(&postgres, &database);
    let error = failed(commit(&store, vec![small(2)]));
    assert_eq!(error.code, Code::StoreUnavailable, "{error}");
    assert!(error.message.contains("accepts no writes"), "{error}");
    assert_eq!(error.cause, Some("accepts no writes"));
    assert!(store.readiness().is_err() && store.health().is_ok());
    // It keeps the lock of the writer from nobody, and needs no restart.
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
    assert_eq!(postgres.psql(&database, locks).unwrap(), "0");
    alter("RESET default_transaction_read_only");
    commit(&store, vec![small(3)]).unwrap();
    alter("SET statement_timeout = '1s'");
    cut(&postgres, &database);
    commit(&store, vec![small(4)]).unwrap();
    std::thread::scope(|scope| {
        let hold = "BEGIN; SET LOCAL statement_timeout = 0; SELECT 1 FROM edgewright.head FOR UPDATE; \
                    SELECT pg_sleep(6); COMMIT";
        let held = scope.spawn(|| postgres.psql(&database, hold));
        let waits = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6)%' AND wait_event = 'PgSleep'";
        until("the lock", || (!postgres.psql("postgres", waits).unwrap().is_empty()).then_some(()));
        let error = failed(commit(&store, vec![small(5)]));
        assert_eq!((error.code, error.cause), (Code::StoreUnavailable, Some("cancelled the statement")), "{error}");
        held.join().unwrap().unwrap();
    });
    commit(&store, vec![small(6)]).unwrap();
    assert_eq!((store.snapshot().len(), store.verify().unwrap().records), (4, 4));
}

#[test]
fn what_was_acknowledged_survives_the_death_of_the_server_and_nothing_is_there_twice() {
    let Some(postgres) = Postgres::start() else { return };
    let database = postgres.database();
    let mut store = postgres.open(&database).unwrap();
    let (next, acknowledged) = (AtomicUsize::new(1), Mutex::new(BTreeSet::new()));
    for round in 0..rounds(3, 30) {
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !ends.load(Ordering::SeqCst) {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if commit(&store, vec![small(number)]).is_ok() {
                            acknowledged.lock().unwrap().insert(number);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(200 + 37 * (round % 7)));
            postgres.kill();
            std::thread::sleep(Duration::from_millis(50));
            postgres.run();
            std::thread::sleep(Duration::from_millis(200));
            ends.store(true, Ordering::SeqCst);
        });
        // A group that was kept, though its writers were told otherwise, is read at a start.
        if store.health().is_err() || commit(&store, vec![small(next.fetch_add(1, Ordering::SeqCst))]).is_err() {
            drop(store);
            store = postgres.open(&database).unwrap();
        }
        let state = store.snapshot();
        assert_eq!(state.revision, state.len() as u64, "a commit is there twice, or is missing");
        assert_eq!(store.verify().unwrap().records, state.revision);
    }
    drop(store);
    let store = postgres.open(&database).unwrap();
    let present: BTreeSet<String> = store.snapshot().iter().map(|entry| entry.key.id.to_string()).collect();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(acknowledged.len() > 10, "{}", acknowledged.len());
    for number in acknowledged {
        assert!(present.contains(&format!("ipx_{number:027}")), "{number} was acknowledged");
    }
}

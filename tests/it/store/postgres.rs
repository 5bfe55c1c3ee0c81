//! A store on PostgreSQL: one writer, who knows it; what is acknowledged when the server dies; and what a database has not.
//!
//! `engines.rs` has what every engine must do.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use edgewright::{
    Code, Store,
    storage::{CommitError, MasterKeySource, Query, Retention, StoreError},
};

use super::{commit, content, deleted, described, edge, small};
use crate::support::{
    postgres::Postgres,
    program::{Folder, has, rounds, until, within},
    users::{client, run_with_token},
};

const ROUTE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec:\n  \
    hostports: ['a.example.com:443']\n  routes:\n    - {name: hook, match_type: path_prefix, match: /, \
    webhook_verification: {provider: github, secret: {from_file: s.txt}}}\n";

fn failed(result: Result<impl Sized, CommitError>) -> StoreError {
    match result.err().unwrap() {
        CommitError::Failed(error) => error,
        other => panic!("{other}"),
    }
}

/// Cuts the connections of the writers of a database.
fn cut(postgres: &Postgres, database: &str) {
    let sql = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = '{database}' AND application_name LIKE 'edgewright, process%'"
    );
    assert_ne!(postgres.psql("postgres", &sql).unwrap(), "0");
    let left = sql.replace("count(pg_terminate_backend(pid))", "count(*)");
    within(Duration::from_secs(10), "the end of a connection", || {
        (postgres.psql("postgres", &left).unwrap() == "0").then_some(())
    });
}

#[test]
fn a_store_comes_back_as_it_was() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    let mut states = vec![content(&store)];
    for operations in [
        vec![small(1), small(2)],
        edge(1, 300),
        vec![described(1, "second")],
        vec![deleted(1), small(3)],
        vec![small(1), deleted(2)],
    ] {
        commit(&store, operations).unwrap();
        states.push(content(&store));
    }
    let (verified, root) = (store.verify().unwrap(), store.root_secret());
    assert_eq!(verified.records, 5);
    drop(store);
    for store in [postgres.open(&database).unwrap(), postgres.open_to_read(&database).unwrap()] {
        assert_eq!(content(&store), *states.last().unwrap());
        assert_eq!((store.verify().unwrap(), store.root_secret()), (verified.clone(), root));
        for (revision, expected) in states.iter().enumerate().rev() {
            let state = store.snapshot_at(revision as u64).unwrap();
            let told = state.iter().map(|entry| format!("{} {:?} {}", entry.key, entry.spec(), entry.order));
            assert_eq!(told.chain([format!("revision {revision}")]).collect::<Vec<_>>(), *expected);
        }
    }
}

#[test]
fn a_second_writer_is_refused_and_readers_are_not() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(1)]).unwrap();
    let error = postgres.open(&database).err().unwrap();
    assert_eq!(error.code, Code::StoreLocked);
    assert!(error.message.contains(&format!("edgewright, process {}", std::process::id())), "{error}");
    let reader = postgres.open_to_read(&database).unwrap();
    assert_eq!(content(&reader), content(&store));
    assert_eq!(failed(commit(&reader, vec![small(2)])).message, reader.health().unwrap_err().message);
    commit(&store, vec![small(2)]).unwrap();
    assert_eq!(reader.history(&Query::All, u64::MAX, 9).unwrap().len(), 1, "it is as of when it was opened");
    drop(store);
    assert_eq!(postgres.open(&database).unwrap().snapshot().len(), 2);
}

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
fn a_writer_that_does_nothing_keeps_its_connection() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    let sql = format!(
        "SELECT pid FROM pg_stat_activity \
         WHERE datname = '{database}' AND application_name LIKE 'edgewright, process%'"
    );
    let connection = postgres.psql("postgres", &sql).unwrap();
    // The database ends the session of a process that has stopped for six seconds.
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(postgres.psql("postgres", &sql).unwrap(), connection);
    commit(&store, vec![small(1)]).unwrap();
    assert_eq!(postgres.psql("postgres", &sql).unwrap(), connection);
}

#[test]
fn a_writer_that_was_replaced_writes_nothing_more() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let former = postgres.open(&database).unwrap();
    commit(&former, vec![small(1)]).unwrap();
    cut(&postgres, &database);
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(2)]).unwrap();
    for _ in 0..2 {
        let error = failed(commit(&former, vec![small(3)]));
        assert_eq!(error.code, Code::StoreLocked, "{error}");
    }
    assert!(former.health().is_err() && former.snapshot().len() == 1, "it still reads");
    commit(&store, vec![small(3)]).unwrap();
    assert_eq!((store.snapshot().revision, store.verify().unwrap().records), (3, 3));
}

#[test]
fn a_database_that_is_away_is_told_of_quickly_and_nothing_has_to_be_restarted() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = format!("--store {} --master-key-file {}", postgres.url(&database), postgres.master_key().display());
    let serve = folder.serve(&options);
    let create = || serve.call("POST", "/ip_restrictions", r#"{"type": "api", "description": "a"}"#);
    assert_eq!(create().status, 201);
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

#[test]
fn a_store_is_copied_into_a_database_and_back() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.write("store/suspensions", "{}\n");
    let (database, key) = (postgres.database(), "--master-key-file store.master.key");
    let url = postgres.url(&database);
    has(&folder.ok(&format!("store copy store {url}")), &["Copied revision"]);
    has(&folder.run(&format!("store copy store {url}")), &["is not empty"]);
    folder.ok(&format!("store copy {url} back {key}"));
    let source = MasterKeySource::File(folder.path("store.master.key"));
    let open = |address: &str| Store::open_encrypted_to_read(address, &source).unwrap();
    let path = |name: &str| folder.path(name).display().to_string();
    let stores = [open(&path("store")), open(&url), open(&path("back"))];
    for copied in &stores {
        assert_eq!(content(copied), content(&stores[0]));
        assert_eq!(copied.verify().unwrap(), stores[0].verify().unwrap());
        assert_eq!(copied.root_secret(), stores[0].root_secret());
    }
    drop(stores);
    for options in [format!("--store {url}"), "--store back".to_owned()] {
        folder.ok(&format!("store check {options} {key}"));
        folder.ok(&format!("history verify {options} {key}"));
        assert!(folder.ok(&format!("plan storefront {options} {key}")).all().contains("No changes"));
    }
    assert_eq!(folder.read("back/suspensions"), folder.read("store/suspensions"));
}

/// A store in a folder with a history, keys of two times, a secret, and a suspended source. Returns the option of its master key.
fn eventful(folder: &Folder) -> &'static str {
    folder.ok("reconcile storefront");
    folder.ok("keys create --role viewer");
    folder.ok("store rekey");
    folder.ok("keys create --role admin");
    folder.write("store/suspensions", "{}\n");
    "--master-key-file store.master.key"
}

/// Opens stores for reading, all of which must be the same: their states, also earlier ones, their histories and their secrets.
fn are_same(folder: &Folder, addresses: &[String]) {
    let source = MasterKeySource::File(folder.path("store.master.key"));
    let stores: Vec<Store> =
        addresses.iter().map(|address| Store::open_encrypted_to_read(address, &source).unwrap()).collect();
    for store in &stores {
        assert_eq!(content(store), content(&stores[0]));
        assert_eq!(store.verify().unwrap(), stores[0].verify().unwrap());
        assert_eq!(store.root_secret(), stores[0].root_secret());
        for revision in 0..stores[0].snapshot().revision {
            let told = |store: &Store| {
                let state = store.snapshot_at(revision).unwrap();
                state
                    .iter()
                    .map(|entry| format!("{} {:?} {}", entry.key, entry.spec(), entry.order))
                    .collect::<Vec<_>>()
            };
            assert_eq!(told(store), told(&stores[0]), "{revision}");
        }
    }
}

#[test]
fn a_backup_is_restored_into_either_engine() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::with_storefront();
    let key = eventful(&folder);
    let [one, two, earlier] = [(); 3].map(|()| postgres.url(&postgres.database()));
    folder.ok("backup a.backup");
    let run = folder.ok(&format!("restore a.backup --store {one} {key}"));
    has(&run, &["Restored revision"]);
    assert!(!run.all().contains("Copy store.master.key"), "{}", run.all());
    folder.ok(&format!("backup b.backup --store {one} {key}"));
    folder.ok(&format!("restore b.backup --store {two} {key}"));
    folder.ok(&format!("backup c.backup --store {two} {key}"));
    folder.ok(&format!("restore c.backup --store back {key}"));
    let path = |name: &str| folder.path(name).display().to_string();
    are_same(&folder, &[path("store"), one.clone(), two.clone(), path("back")]);
    assert_eq!(folder.read("back/suspensions"), "{}\n");
    assert_eq!(folder.mode("b.backup"), 0o600);
    for name in ["a.backup", "b.backup", "c.backup"] {
        has(&folder.ok(&format!("store check {name} {key}")), &["revision", "No problems found."]);
        let bytes = std::fs::read(folder.path(name)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("BEGIN PRIVATE KEY"), "{name}");
    }
    for options in [format!("--store {one}"), format!("--store {two}"), "--store back".to_owned()] {
        folder.ok(&format!("store check {options} {key}"));
        folder.ok(&format!("history verify {options} {key}"));
        assert!(folder.ok(&format!("plan storefront {options} {key}")).all().contains("No changes"));
    }
    folder.ok(&format!("restore b.backup --store {earlier} --to 1 {key}"));
    folder.ok(&format!("restore b.backup --store first --to 1 {key}"));
    are_same(&folder, &[path("first"), earlier]);
}

#[test]
fn a_restore_into_a_database_replaces_nothing_and_is_whole_or_no_store() {
    let Some(postgres) = Postgres::shared() else { return };
    let folder = Folder::with_storefront();
    let key = eventful(&folder);
    folder.ok("backup a.backup");
    let database = postgres.database();
    let url = postgres.url(&database);
    for run in ["restore a.backup", "store check a.backup"] {
        has(&folder.run(&format!("{run} --store {url}")), &["MASTER_KEY", "--master-key-file"]);
    }
    has(&folder.run(&format!("plan storefront --store {url} {key}")), &["No store found"]);
    let bytes = std::fs::read(folder.path("a.backup")).unwrap();
    std::fs::write(folder.path("torn.backup"), &bytes[..bytes.len() - 100]).unwrap();
    has(&folder.run(&format!("restore torn.backup --store {url} {key}")), &["STORE_CORRUPT"]);
    folder.ok(&format!("restore a.backup --store {url} {key}"));
    let again = folder.run(&format!("restore a.backup --store {url} {key}"));
    has(&again, &["STORE_FORMAT", "empty database"]);
    // As one that was killed before its end leaves it.
    postgres.psql(&database, "UPDATE edgewright.head SET complete = false").unwrap();
    for run in ["restore a.backup", "backup b.backup", "store check", "keys create --role viewer"] {
        let run = folder.run(&format!("{run} --store {url} {key}"));
        assert_ne!(run.code, 0);
        has(&run, &["was interrupted", "DROP SCHEMA edgewright CASCADE"]);
    }
    postgres.psql(&database, "DROP SCHEMA edgewright CASCADE").unwrap();
    folder.ok(&format!("restore a.backup --store {url} {key}"));
    are_same(&folder, &[folder.path("store").display().to_string(), url]);
}

#[test]
fn a_backup_during_commits_is_one_revision() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let store = postgres.open(&database).unwrap();
    let key = format!("--master-key-file {}", postgres.master_key().display());
    let ends = AtomicBool::new(false);
    let revisions = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut number, began) = (1, Instant::now());
            while !ends.load(Ordering::SeqCst) && began.elapsed() < Duration::from_secs(60) {
                commit(&store, vec![small(number)]).unwrap();
                number += 1;
            }
        });
        let revisions = (0..3).map(|number| {
            until("commits", || (store.snapshot().revision > 5 * number).then_some(()));
            let (mut backup, mut bytes) = (store.backup().unwrap(), Vec::new());
            while let Some(piece) = backup.next_piece().unwrap() {
                bytes.extend_from_slice(&piece);
            }
            assert_eq!(bytes.len() as u64, backup.length());
            std::fs::write(folder.path(&format!("{number}.backup")), bytes).unwrap();
            backup.revision()
        });
        let revisions: Vec<u64> = revisions.collect();
        ends.store(true, Ordering::SeqCst);
        revisions
    });
    let source = MasterKeySource::File(postgres.master_key());
    for (number, revision) in revisions.into_iter().enumerate() {
        folder.ok(&format!("restore {number}.backup --store restored{number} {key}"));
        let path = folder.path(&format!("restored{number}"));
        let restored = Store::open_encrypted_to_read(path, &source).unwrap();
        let state = restored.snapshot();
        assert_eq!((state.revision, state.len() as u64), (revision, revision));
        assert_eq!(restored.verify().unwrap().records, revision);
    }
}

#[test]
fn a_server_backs_up_its_database() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::with_storefront(), postgres.database());
    let options = format!("--store {} --master-key-file {}", postgres.url(&database), postgres.master_key().display());
    folder.ok(&format!("reconcile storefront {options}"));
    let serve = folder.serve(&options);
    has(&client(&folder, &serve, "backup a.backup"), &["Backed up revision 2"]);
    // One that follows makes it, too.
    let other = Folder::new();
    let follower = other.serve(&options);
    has(&run_with_token(&folder, &follower, &serve.token, "backup b.backup"), &["Backed up revision 2"]);
    for name in ["a.backup", "b.backup"] {
        has(&folder.ok(&format!("store check {name} {options}")), &["revision 2", "No problems found."]);
    }
}

#[test]
fn the_history_is_cut_by_its_limits() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let source = MasterKeySource::File(postgres.master_key());
    let retention = Retention { records: 10, ..Retention::default() };
    let store = Store::open_encrypted(postgres.url(&database), retention, &source).unwrap();
    for number in 1..=30 {
        commit(&store, vec![small(number)]).unwrap();
    }
    let before = content(&store);
    drop(store);
    let folder = Folder::new();
    let key = postgres.master_key();
    let options = format!("--store {} --master-key-file {}", postgres.url(&database), key.display());
    folder.ok(&format!("store rekey --history-records 10 {options}"));
    let store = postgres.open(&database).unwrap();
    let verified = store.verify().unwrap();
    assert_eq!((verified.records, verified.oldest), (10, 21));
    assert_eq!(store.statistics().oldest, 21);
    assert_eq!(content(&store), before);
    assert!(store.snapshot_at(25).is_ok() && store.snapshot_at(15).is_err());
    commit(&store, vec![small(31)]).unwrap();
    assert_eq!(store.verify().unwrap().records, 11);
}

#[test]
fn the_history_is_cut_by_its_age_and_not_because_clocks_differ() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = format!("--store {} --master-key-file {}", postgres.url(&database), postgres.master_key().display());
    let store = postgres.open(&database).unwrap();
    for number in 1..=16 {
        commit(&store, vec![small(number)]).unwrap();
    }
    drop(store);
    let oldest_after = |sql: &str| {
        postgres.psql(&database, sql).unwrap();
        folder.ok(&format!("store rekey {options}"));
        postgres.open_to_read(&database).unwrap().verify().unwrap().oldest
    };
    // A server whose clock is a minute ahead has written the first ones.
    assert_eq!(oldest_after("UPDATE edgewright.commits SET at = at + 60 WHERE position <= 12"), 1);
    // Those that are too old go, and what such a server has written before them. At most a quarter goes at once.
    assert_eq!(oldest_after("UPDATE edgewright.commits SET at = 0 WHERE position IN (2, 3)"), 4);
    assert_eq!(oldest_after("UPDATE edgewright.commits SET at = 0"), 4, "nothing more is removed for a day");
}

#[test]
fn secrets_are_sealed_and_former_ones_can_be_destroyed() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = format!("--store {} --master-key-file {}", postgres.url(&database), postgres.master_key().display());
    folder.write("m/a.yaml", ROUTE);
    for secret in ["hunter2-first", "hunter2-second"] {
        folder.write("m/s.txt", secret);
        folder.ok(&format!("reconcile m {options}"));
    }
    let columns = ["state.value", "entries.entry", "commits.header", "commits.calls", "secrets.keys"];
    for column in columns {
        let (table, name) = column.split_once('.').unwrap();
        let sql = format!("SELECT count(*) FROM edgewright.{table} WHERE position('hunter2'::bytea IN {name}) > 0");
        assert_eq!(postgres.psql(&database, &sql).unwrap(), "0", "{column}");
    }
    let lost = |run: &str| folder.run(&format!("rollback --to 1 {run} {options}"));
    assert_eq!(lost("--dry-run").code, 0);
    folder.ok(&format!("store rekey --forget-secrets {options}"));
    has(&lost(""), &["SECRETS_GONE"]);
    folder.ok(&format!("store check {options}"));
    assert!(folder.ok(&format!("reconcile m {options}")).all().contains("No changes"));
    let other = folder.path("other.key");
    folder.write("other.key", &"ab".repeat(32));
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let url = postgres.url(&database);
    has(&folder.run(&format!("store check --store {url} --master-key-file other.key")), &["MASTER_KEY"]);
    has(&folder.run(&format!("store check --store {url}")), &["MASTER_KEY", "--master-key-file"]);
}

#[test]
fn what_a_database_has_not_is_refused_and_its_password_is_never_shown() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::with_storefront(), postgres.database());
    let url = postgres.url(&database).replace("edge@", "edge:hunter2@");
    let options = format!("--store {url} --master-key-file {}", postgres.master_key().display());
    let plan = folder.run(&format!("plan storefront {options}"));
    has(&plan, &["No store found in `postgres://edge@"]);
    let created = folder.ok(&format!("reconcile storefront {options}"));
    let mut said = vec![plan, created, folder.ok(&format!("backup a.backup {options}"))];
    for (line, help) in [
        ("restore a.backup", "empty database"),
        ("store repair", "PostgreSQL's tools"),
        ("security-log verify", "--security-log"),
    ] {
        let options = if line.starts_with("security") { format!("--store {url}") } else { options.clone() };
        let run = folder.run(&format!("{line} {options}"));
        assert_ne!(run.code, 0, "{line}");
        has(&run, &[help]);
        said.push(run);
    }
    said.push(folder.run(&format!("plan storefront --store {}", url.replace("/edge", "/none"))));
    said.push(folder.run(&format!("plan storefront --store {url}&hunter2=1")));
    said.push(folder.run("plan --help"));
    for run in said {
        assert!(!run.all().contains("hunter2"), "{}", run.all());
    }
}

#[test]
fn tables_of_a_newer_version_are_refused_unchanged() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    drop(postgres.open(&database).unwrap());
    postgres.psql(&database, "UPDATE edgewright.schema_version SET version = 99").unwrap();
    for error in [postgres.open(&database).err().unwrap(), postgres.open_to_read(&database).err().unwrap()] {
        assert_eq!(error.code, Code::StoreFormat);
        assert!(error.message.contains("version 99"), "{error}");
    }
}

#[test]
fn a_row_that_was_changed_is_found() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    commit(&store, vec![small(1), small(2)]).unwrap();
    commit(&store, vec![small(3)]).unwrap();
    let flip = "UPDATE edgewright.entries SET entry = set_byte(entry, 40, get_byte(entry, 40) # 1) WHERE position = 1";
    postgres.psql(&database, flip).unwrap();
    assert_eq!(store.verify().unwrap_err().code, Code::StoreCorrupt);
    postgres.psql(&database, flip).unwrap();
    store.verify().unwrap();
    postgres.psql(&database, "DELETE FROM edgewright.commits WHERE position = 1").unwrap();
    assert!(store.verify().unwrap_err().message.contains("record 1"));
    drop(store);
    postgres.psql(&database, "UPDATE edgewright.head SET hash = '\\x00'").unwrap();
    assert_eq!(postgres.open(&database).err().unwrap().code, Code::StoreCorrupt);
}

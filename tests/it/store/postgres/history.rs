//! What a database keeps: every revision within the limits of the history, and unchanged.

use edgewright::{
    Code, Store,
    storage::{MasterKeySource, Retention},
};

use crate::store::{commit, content, deleted, described, edge, small};
use crate::support::{
    postgres::Postgres,
    program::{Folder, has},
};

/// Makes commits in a new database. Returns its name, and the options of a command for its store.
fn committed(postgres: &Postgres, count: usize) -> (String, String) {
    let database = postgres.database();
    let store = postgres.open(&database).unwrap();
    for number in 1..=count {
        commit(&store, vec![small(number)]).unwrap();
    }
    let options = postgres.options(&database);
    (database, options)
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
    let options = postgres.options(&database);
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
    let (folder, (database, options)) = (Folder::new(), committed(&postgres, 16));
    let oldest_after = |sql: &str| {
        postgres.psql(&database, sql).unwrap();
        folder.ok(&format!("store rekey {options}"));
        // These times are not those of the records, which is damage when they are verified.
        postgres.open_to_read(&database).unwrap().statistics().oldest
    };
    // A server whose clock is a minute ahead has written the first ones.
    assert_eq!(oldest_after("UPDATE edgewright.commits SET at = at + 60 WHERE position <= 12"), 1);
    // Those that are too old go, and what such a server has written before them. At most a quarter goes at once.
    assert_eq!(oldest_after("UPDATE edgewright.commits SET at = 0 WHERE position IN (2, 3)"), 4);
    assert_eq!(oldest_after("UPDATE edgewright.commits SET at = 0"), 4, "nothing more is removed for a day");
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

#[test]
fn a_column_that_differs_from_what_it_repeats_is_found() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, (database, options)) = (Folder::new(), committed(&postgres, 3));
    folder.ok(&format!("store check {options}"));
    let places = [("commits", "position = 2"), ("entries", "position = 2"), ("head", "true")];
    for (table, condition) in places {
        let keep = format!("CREATE TABLE kept_{table} AS SELECT * FROM edgewright.{table} WHERE {condition}");
        postgres.psql(&database, &keep).unwrap();
    }
    for (number, change) in [
        (0, "made = 7"),
        (0, "at = at - 1"),
        (0, "source = 'shop'"),
        (0, "bytes = bytes + 1"),
        (0, "revision = 3"),
        (1, "path = NULL"),
        (1, "path = '/ip_restrictions/other'"),
        (1, "number = 1"),
        (2, "kept_revision = 1"),
        (2, "kept_hash = decode(repeat('00', 31) || '01', 'hex')"),
        (2, "revision = 2"),
        (2, "next_order = next_order + 1"),
    ] {
        let (table, condition) = places[number];
        let sql = format!("UPDATE edgewright.{table} SET {change} WHERE {condition}");
        postgres.psql(&database, &sql).unwrap();
        let run = folder.run(&format!("store check {options}"));
        assert_ne!(run.code, 0, "{table}: {change}");
        has(&run, &["STORE_CORRUPT"]);
        let back = format!(
            "DELETE FROM edgewright.{table} WHERE {condition}; \
             INSERT INTO edgewright.{table} SELECT * FROM kept_{table}"
        );
        postgres.psql(&database, &back).unwrap();
        folder.ok(&format!("store check {options}"));
    }
}

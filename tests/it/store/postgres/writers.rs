//! One writer, who knows it.

use std::time::Duration;

use edgewright::{Code, storage::Query};

use super::{cut, failed};
use crate::store::{commit, content, small};
use crate::support::postgres::Postgres;

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

//! The index of the history follows the log through checkpoints and retention, and after a crash it catches up.

use std::{fs, path::Path};

use edgewright::{
    Store,
    storage::{Query, Retention},
};

use super::{commit, edge};

/// Keeps the records of the last checkpoint.
const ONE: Retention = Retention { records: 1, age: std::time::Duration::MAX, bytes: u64::MAX };

/// Makes commits that are each followed by a checkpoint.
fn checkpoints(path: &Path, count: usize, retention: Retention) {
    for number in 0..count {
        let store = Store::open_with(path, retention).unwrap();
        commit(&store, edge(number, 12_000)).unwrap();
        drop(store);
        assert!(path.join(format!("history.{:010}", number + 1)).exists(), "no checkpoint was written");
    }
}

fn positions(path: &Path) -> Vec<u64> {
    let store = Store::open(path).unwrap();
    let records = store.history(&Query::All, u64::MAX, 100).unwrap_or_else(|error| panic!("{error}"));
    records.iter().map(|record| record.position).collect()
}

/// The key of the index row with the location of a record.
fn row(position: u64) -> Vec<u8> {
    [b"p/".as_slice(), &position.to_be_bytes()].concat()
}

#[test]
fn an_index_that_missed_a_checkpoint_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    checkpoints(folder.path(), 1, Retention::default());
    // What a crash leaves when sled had not written the new location yet.
    let index = sled::open(folder.path().join("index")).unwrap();
    let mut location = index.get(row(1)).unwrap().unwrap().to_vec();
    assert_eq!(location[0], 1, "the record is in a history file");
    location[0] = 0;
    index.insert(row(1), location).unwrap();
    drop(index);
    assert_eq!(positions(folder.path()), [1]);
}

#[test]
fn an_index_that_missed_a_retention_forgets_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    checkpoints(folder.path(), 2, ONE);
    let index = sled::open(folder.path().join("index")).unwrap();
    assert!(index.get(row(1)).unwrap().is_none(), "the first record is no longer kept");
    let location = index.get(row(2)).unwrap().unwrap();
    index.insert(row(1), location).unwrap();
    drop(index);
    assert_eq!(positions(folder.path()), [2]);
}

#[test]
fn retention_leaves_no_gap_after_an_empty_history() {
    let folder = tempfile::tempdir().unwrap();
    // A store of the first format in which nothing was ever committed.
    let old = sled::open(folder.path()).unwrap();
    old.insert("m/format", "edgewright 1").unwrap();
    old.insert("m/root", vec![7; 32]).unwrap();
    drop(old);
    checkpoints(folder.path(), 2, ONE);
    fs::remove_dir_all(folder.path().join("index")).unwrap();
    assert_eq!(positions(folder.path()), [2]);
    assert_eq!(Store::open(folder.path()).unwrap().statistics().oldest, 2);
}

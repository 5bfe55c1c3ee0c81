//! The index of the history follows the log through checkpoints and retention, and after a crash it catches up.

use std::{fs, path::Path};

use edgewright::{
    Store,
    storage::{Query, Retention},
};

use super::{commit, edge};
use crate::cli::Folder;

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
    let path = folder.path().join("store");
    checkpoints(&path, 1, Retention::default());
    // What a crash leaves when sled had not written the new location yet.
    let index = sled::open(path.join("index")).unwrap();
    let mut location = index.get(row(1)).unwrap().unwrap().to_vec();
    assert_eq!(location[0], 1, "the record is in a history file");
    location[0] = 0;
    index.insert(row(1), location).unwrap();
    drop(index);
    assert_eq!(positions(&path), [1]);
}

#[test]
fn an_index_that_missed_a_retention_forgets_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    checkpoints(&path, 2, ONE);
    let index = sled::open(path.join("index")).unwrap();
    assert!(index.get(row(1)).unwrap().is_none(), "the first record is no longer kept");
    let location = index.get(row(2)).unwrap().unwrap();
    index.insert(row(1), location).unwrap();
    drop(index);
    assert_eq!(positions(&path), [2]);
}

#[test]
fn retention_leaves_no_gap_after_an_empty_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    // A store of the first format in which nothing was ever committed.
    let old = sled::open(&path).unwrap();
    old.insert("m/format", "edgewright 1").unwrap();
    old.insert("m/root", vec![7; 32]).unwrap();
    drop(old);
    checkpoints(&path, 2, ONE);
    fs::remove_dir_all(path.join("index")).unwrap();
    assert_eq!(positions(&path), [2]);
    assert_eq!(Store::open(&path).unwrap().statistics().oldest, 2);
}

#[test]
fn a_command_leaves_the_checkpoint_to_the_next_one_and_the_index_to_a_server() {
    let folder = Folder::new();
    let edge = |at: usize| {
        let description = "x".repeat(250);
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: e{at}}}\nspec: {{description: {description}}}\n"
        )
    };
    let edges: Vec<String> = (0..9_000).map(edge).collect();
    folder.write("m/all.yaml", &edges.join("---\n"));
    let store = folder.path("store");
    let bases = || {
        let names = fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("base.")).collect::<Vec<_>>()
    };
    folder.ok("reconcile m");
    assert_eq!(bases(), ["base.0000000001"]);
    let journal = fs::metadata(store.join("journal.0000000001")).unwrap().len();
    assert!(journal > 8 << 20, "a checkpoint is not due: {journal} bytes");
    folder.ok("reconcile m");
    assert_eq!(bases(), ["base.0000000002"]);
    assert!(!store.join("index").exists(), "no command needs the index");
    assert!(folder.ok("history verify").out.starts_with("1 records verified: 1 to 1, "));
    assert_eq!(positions(&store), [1], "a process that stays makes the index");
    assert!(store.join("index").exists());
}

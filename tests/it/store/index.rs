//! The index of the history follows the log through checkpoints and retention, and after a crash it catches up.

use std::{fs, path::Path};

use edgewright::{
    Store,
    resources::Author,
    storage::{MasterKeySource, Query, Retention},
};

use super::{commit, described, edge, small, small_key};
use crate::support::manifests::edge_with;
use crate::support::program::{Folder, copy, until};

/// Keeps the records of the last checkpoint.
const ONE: Retention = Retention { records: 1, age: std::time::Duration::MAX, bytes: u64::MAX };

/// Makes commits that are each followed by a checkpoint: closing a store writes one.
fn checkpoints(path: &Path, count: usize, retention: Retention) {
    for number in 0..count {
        let store = Store::open_encrypted(path, retention, &MasterKeySource::Beside).unwrap();
        commit(&store, edge(number, 500)).unwrap();
        drop(store);
        assert!(path.join(format!("state.{:010}", number + 2)).exists(), "no checkpoint was written");
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
fn an_index_that_missed_a_retention_forgets_what_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    checkpoints(&path, 2, ONE);
    let index = opened(&path.join("index"));
    assert!(index.get(row(1)).unwrap().is_none(), "the first record is no longer kept");
    let location = index.get(row(2)).unwrap().unwrap();
    index.insert(row(1), location).unwrap();
    drop(index);
    assert_eq!(positions(&path), [2]);
}

#[test]
fn a_command_leaves_its_state_in_sled_and_the_index_to_a_server() {
    let folder = Folder::new();
    let edge = |at: usize| {
        let description = "x".repeat(250);
        edge_with(&format!("e{at}"), &format!("{{description: {description}}}"))
    };
    let edges: Vec<String> = (0..500).map(edge).collect();
    folder.write("m/all.yaml", &edges.join("---\n"));
    let store = folder.path("store");
    let states = || {
        let names = fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("state.")).collect::<Vec<_>>()
    };
    folder.ok("reconcile m");
    assert_eq!(states(), ["state.0000000002"]);
    folder.ok("reconcile m");
    assert_eq!(states(), ["state.0000000002"], "nothing has changed");
    assert!(!store.join("index").exists(), "no command needs the index");
    assert!(folder.ok("history verify").out.starts_with("1 record verified: 1 to 1, "));
    assert_eq!(positions(&store), [1], "a process that stays makes the index");
    assert!(store.join("index").exists());
}

/// The positions of the records that each kind of query finds.
fn found(store: &Store) -> Vec<Vec<u64>> {
    let of = |query: Option<Query>| -> Vec<u64> {
        let records = match &query {
            Some(query) => store.history(query, u64::MAX, 1000),
            None => store.history_of(&small_key(1).path(), u64::MAX, 1000),
        };
        let records = records.unwrap_or_else(|error| panic!("{query:?}: {error}"));
        records.iter().map(|record| record.position).collect()
    };
    let (revision, none) = (Query::Revision(3), Query::Revision(99));
    [Some(Query::All), None, Some(revision), Some(Query::Reconciliations), Some(none)].map(of).to_vec()
}

#[test]
fn a_commit_is_found_at_once_and_after_a_crash() {
    const LAST: u64 = 43;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    commit(&store, vec![small(1)]).unwrap();
    commit(&store, vec![small(2)]).unwrap();
    let author = Author::source("shop", None);
    store.commit(author, vec![described(1, "applied")]).unwrap();
    for number in 4..=LAST {
        commit(&store, vec![described(2, &number.to_string())]).unwrap();
        let newest = store.history(&Query::All, u64::MAX, 1).unwrap();
        assert_eq!(newest.first().map(|record| record.position), Some(number));
    }
    let expected: Vec<Vec<u64>> = vec![(1..=LAST).rev().collect(), vec![3, 1], vec![3], vec![3], vec![]];
    assert_eq!(found(&store), expected);
    // What a kill leaves: the next start adds what the index does not have.
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    assert_eq!(found(&Store::open(&killed).unwrap()), expected);
    drop(store);
    assert_eq!(found(&Store::open(&path).unwrap()), expected);
}

/// The row with the end of the index.
const END: &str = "m/end-4";

#[test]
fn the_index_goes_on_where_it_ends_and_is_made_anew_if_its_end_is_not_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let index = || opened(&path.join("index"));
    let add = |numbers: std::ops::RangeInclusive<usize>| {
        let store = Store::open(&path).unwrap();
        numbers.for_each(|number| drop(commit(&store, vec![small(number)]).unwrap()));
        drop(store);
        index().get(END).unwrap().unwrap().to_vec()
    };
    let (earlier, last) = (add(1..=12), add(13..=20));
    let check = |what: &str, damage: &dyn Fn(&sled::Db)| {
        damage(&index());
        assert_eq!(positions(&path), (1..=20).rev().collect::<Vec<u64>>(), "{what}");
        let index = index();
        (1..=20).for_each(|at| assert!(index.get(row(at)).unwrap().is_some(), "{what}: record {at}"));
        assert_eq!(index.get(END).unwrap().unwrap(), last, "{what}");
    };
    check("a crash between the rows of a commit", &|index| {
        (13..=20).filter(|at| at % 2 == 0).for_each(|at| drop(index.remove(row(at)).unwrap()));
        index.insert(END, earlier.as_slice()).unwrap();
    });
    check("no end, as in a version with other rows", &|index| drop(index.remove(END).unwrap()));
    check("an end after that of the log", &|index| {
        let later = [21_u64.to_le_bytes().as_slice(), &last[8..]].concat();
        index.insert(END, later).unwrap();
    });
    check("the end of another log", &|index| {
        let other = [20_u64.to_le_bytes().as_slice(), &[9; 32]].concat();
        index.insert(END, other).unwrap();
    });
    check("an end without its row", &|index| drop(index.remove(row(20)).unwrap()));
}

#[test]
fn the_log_answers_if_the_index_cannot_be_read() {
    let folder = Folder::new();
    let serve = folder.serve("");
    for number in 1..=5 {
        let body = format!(r#"{{"type": "api", "description": "number {number}"}}"#);
        assert_eq!(serve.call("POST", "/ip_restrictions", &body).status, 201);
    }
    let pages = ["/history?limit=1000", "/history/2", "/history?before_id=4&limit=1", "/history/blame?resource=/none"];
    let read =
        |serve: &crate::support::program::Serve| pages.map(|page| (page, serve.get(page).status, serve.get(page).body));
    let before = read(&serve);
    serve.stop();
    let serve = folder.serve_with("", &[("FAILPOINTS", "index.read=return(io)")]);
    let of_pages =
        |pages: [(&'static str, u16, String); 4]| pages.map(|(page, status, body)| (page, status, body.len()));
    assert_eq!(of_pages(read(&serve)), of_pages(before));
    serve.wait_for("/index");
    serve.stop();
}

#[test]
fn the_log_answers_if_the_index_cannot_be_written() {
    let folder = Folder::new();
    // Each checkpoint needs the index on the disk.
    let points = "checkpoint.bytes=return(1);index.write=return(full)";
    let serve = folder.serve_with("", &[("FAILPOINTS", points)]);
    let positions = |serve: &crate::support::program::Serve| {
        let page = serve.get("/history?limit=1000").json();
        page["history"].as_array().unwrap().len()
    };
    let before = positions(&serve);
    for number in 1..=40 {
        let body = format!(r#"{{"type": "api", "description": "number {number} {}"}}"#, "x".repeat(200));
        assert_eq!(serve.call("POST", "/ip_restrictions", &body).status, 201);
        assert_eq!(positions(&serve), before + number);
    }
    serve.wait_for("/index");
    assert_eq!(positions(&serve), before + 40);
    serve.stop();
    let serve = folder.serve("");
    assert_eq!(positions(&serve), before + 40, "the next start makes the index");
    serve.stop();
    assert!(folder.ok("store check").code == 0);
}

/// Opens an index that a store had open. A process that another test has just started can hold the lock for a moment.
fn opened(path: &Path) -> sled::Db {
    until("the index is free", || sled::open(path).ok())
}

//! A store that is only read: nothing in its folder changes, and no other process writes meanwhile (D61).

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use edgewright::{
    Code, Store,
    storage::{Attempt, Outcome, Query},
};

use super::{commit, content, deleted, described, edge, small, small_key};
use crate::support::program::Folder;

const EDGE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {description: one}\n";

/// Everything in a folder: bytes, permissions and the time of the last change.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64, i64)> {
    let entries = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let described = entries.map(|entry| {
        let found = entry.metadata().unwrap();
        let bytes = if found.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
        (entry.path().to_owned(), (bytes, found.mode(), found.mtime(), found.mtime_nsec()))
    });
    described.collect()
}

#[test]
fn commands_that_read_change_nothing() {
    let folder = Folder::new();
    folder.write("m/a.yaml", EDGE);
    folder.ok("reconcile m");
    folder.ok("keys create --role admin");
    // What a writer would repair or create: a torn write and the lock.
    let log = folder.path("store/log.0000000003");
    let torn = [fs::read(&log).unwrap().as_slice(), b"ewf3"].concat();
    fs::write(&log, torn).unwrap();
    fs::remove_file(folder.path("store/lock")).unwrap();
    let allow = |mode: u32, folder_mode: u32| {
        for entry in walkdir::WalkDir::new(folder.path("store")).contents_first(true) {
            let entry = entry.unwrap();
            let mode = if entry.file_type().is_dir() { folder_mode } else { mode };
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    allow(0o400, 0o500);
    let before = state(&folder.path("store"));
    let lines = [
        "plan --no-cache m",
        "reconcile --dry-run --no-cache m",
        "export",
        "history",
        "history --changes --format json",
        "history verify",
        "keys list",
        "owners list",
        "trace --manifests m --after https://shop.example.com/",
    ];
    let runs = lines.map(|line| (line, folder.run(line)));
    let after = state(&folder.path("store"));
    let refused = folder.run("keys create --role admin");
    allow(0o600, 0o700);
    for (line, run) in &runs {
        // No edge serves the host of the trace.
        assert_eq!(run.code, i32::from(line.starts_with("trace")), "{line}\n{}", run.all());
        assert!(!run.err.contains("ERR_EDGEWRIGHT"), "{line}\n{}", run.all());
    }
    assert!(runs[0].1.out.contains("No changes"), "{}", runs[0].1.all());
    assert!(runs[2].1.out.contains("HttpsEdge"), "{}", runs[2].1.all());
    assert!(runs[5].1.out.contains("2 records verified: 1 to 2"), "{}", runs[5].1.all());
    assert!(after == before, "a command that reads changed the store");
    // Permissions do not bind root, for whom the last command succeeds.
    assert!(refused.code == 0 || refused.err.contains("ERR_EDGEWRIGHT_STORE_FAILED"), "{}", refused.all());
}

#[test]
fn readers_share_a_store_and_exclude_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    commit(&store, vec![small(1)]).unwrap();
    let expected = content(&store);
    assert_eq!(Store::open_to_read(&path).err().unwrap().code, Code::StoreLocked);
    drop(store);
    let (one, two) = (Store::open_to_read(&path).unwrap(), Store::open_to_read(&path).unwrap());
    assert_eq!((content(&one), content(&two)), (expected.clone(), expected));
    assert_eq!(Store::open(&path).err().unwrap().code, Code::StoreLocked);
    assert!(commit(&one, vec![small(2)]).unwrap_err().to_string().contains("is open read-only"));
    drop((one, two));
    fs::remove_file(path.join("lock")).unwrap();
    let reader = Store::open_to_read(&path).unwrap();
    assert_eq!(Store::open(&path).err().unwrap().code, Code::StoreLocked, "the lock file was removed");
    drop(reader);
    assert_eq!(commit(&Store::open(&path).unwrap(), vec![small(2)]).unwrap().revision, 2);
}

#[test]
fn the_log_and_the_index_give_the_same_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    for number in 0..2 {
        let store = Store::open(&path).unwrap();
        commit(&store, vec![small(number)]).unwrap();
        commit(&store, edge(number, 10)).unwrap();
        commit(&store, vec![described(number, "other")]).unwrap();
        store.note(Attempt::new(super::Author::Local), Outcome::Failed, "a note".into()).unwrap();
        commit(&store, vec![deleted(number)]).unwrap();
    }
    let queries = [Query::All, Query::Revision(3), Query::Revision(99), Query::Reconciliations];
    let asked = |store: &Store| {
        let mut answers = Vec::new();
        for query in &queries {
            // A revision has one record, wherever a page begins.
            let pages = if matches!(query, Query::Revision(_)) { 1 } else { 6 };
            let asked = [(u64::MAX, 100), (u64::MAX, 2), (7, 3), (6, 1), (1, 5), (u64::MAX, 0)];
            for (before, limit) in asked.into_iter().take(pages) {
                let records = store.history(query, before, limit).unwrap();
                answers.push((Some(query.clone()), records.iter().map(|it| it.position).collect::<Vec<_>>()));
            }
        }
        for (before, limit) in [(u64::MAX, 100), (u64::MAX, 2), (7, 3), (6, 1), (1, 5), (u64::MAX, 0)] {
            let records = store.history_of(&small_key(1).path(), before, limit).unwrap();
            answers.push((None, records.iter().map(|it| it.position).collect::<Vec<_>>()));
        }
        answers
    };
    let indexed = asked(&Store::open(&path).unwrap());
    assert_eq!(asked(&Store::open_to_read(&path).unwrap()), indexed);
    assert!(path.join("log.0000000002").exists(), "no checkpoint was written");

    fs::remove_file(path.join("log.0000000001")).unwrap();
    let reader = Store::open_to_read(&path).unwrap();
    assert_eq!(reader.history(&Query::All, u64::MAX, 100).unwrap_err().code, Code::StoreCorrupt);
}

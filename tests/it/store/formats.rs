//! Stores of older versions open, with everything they held; those of newer ones are refused by name.

use std::{fs, path::Path};

use edgewright::{
    Code, Store,
    resources::{Author, Kind},
    storage::Query,
};

use super::{commit, content, small};
use crate::cli::{REPOSITORY, copy};

/// A store that `edgewright 1` has written: four revisions of two sources and the command line, a deleted edge, and a
/// record of 150 KB.
fn old_store(path: &Path) {
    copy(&Path::new(REPOSITORY).join("tests/it/data/edgewright-1"), path);
}

#[test]
fn a_store_of_the_first_format_is_migrated_with_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    old_store(&path);
    let store = Store::open(&path).unwrap();
    let snapshot = store.snapshot();
    assert_eq!((snapshot.revision, snapshot.count(Kind::ApiKey)), (4, 1));
    let docs: Vec<String> = snapshot.iter().filter(|it| it.is_owned_by("docs")).map(|it| it.key.to_string()).collect();
    assert_eq!(docs.len(), 3, "{docs:?}");
    assert_eq!(snapshot.tombstones().count(), 1);
    let history = store.history(&Query::All, u64::MAX, 10).unwrap();
    let authors: Vec<_> = history.iter().map(|it| (it.revision, it.author.clone())).collect();
    let by = |source: &str| Author::source(source, None);
    assert_eq!(authors[0], (Some(4), by("docs")));
    assert_eq!(authors[2], (Some(2), Author::Local));
    assert_eq!(history[3].calls.iter().filter(|call| call.starts_with("POST")).count(), 23);
    assert_eq!(store.verify().unwrap().records, 4);
    let expected = content(&store);
    drop(store);
    assert!(!path.join("db").exists() && !path.join("conf").exists() && !path.join("blobs").exists());
    let store = Store::open(&path).unwrap();
    assert_eq!(content(&store), expected);
    assert_eq!(commit(&store, vec![small(1)]).unwrap().snapshot.revision, 5);
}

#[test]
fn a_migration_that_was_interrupted_anywhere_goes_on() {
    let whole = tempfile::tempdir().unwrap();
    let path = whole.path().join("store");
    old_store(&path);
    let expected = content(&Store::open(&path).unwrap());
    // The files in the order in which a migration writes them, and a half-written one.
    let written = ["history.0000000000", "base.0000000001", "journal.0000000001"];
    for kept in 0..=written.len() {
        let folder = tempfile::tempdir().unwrap();
        let again = folder.path().join("store");
        old_store(&again);
        for name in &written[..kept] {
            fs::copy(path.join(name), again.join(name)).unwrap();
        }
        fs::write(again.join("base.tmp"), "half").unwrap();
        assert_eq!(content(&Store::open(&again).unwrap()), expected, "after {kept} files");
    }
    // The new store was whole, and the old files were not all gone.
    for gone in ["db", "conf", "blobs"] {
        let folder = tempfile::tempdir().unwrap();
        let again = folder.path().join("store");
        old_store(&again);
        copy(&path, &again);
        if again.join(gone).is_dir() {
            fs::remove_dir_all(again.join(gone)).unwrap();
        } else {
            fs::remove_file(again.join(gone)).unwrap();
        }
        assert_eq!(content(&Store::open(&again).unwrap()), expected, "without {gone}");
        assert!(!again.join("conf").exists());
    }
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(Store::open(&path).unwrap());
    let newer: [(&[&str], u8); 3] =
        [(&["base.0000000001", "copy.0000000001"], b'4'), (&["keys", "keys.copy"], b'2'), (&["head"], b'3')];
    for (files, newer) in newer {
        let original = fs::read(path.join(files[0])).unwrap();
        let mut changed = original.clone();
        changed[6] = newer;
        if files[0] == "head" {
            changed[4096 + 6] = newer;
        }
        files.iter().for_each(|file| fs::write(path.join(file), &changed).unwrap());
        let error = Store::open(&path).err().unwrap();
        assert_eq!(error.code, Code::StoreFormat, "{files:?}: {error}");
        assert!(error.message.contains("version of edgewright"), "{error}");
        files.iter().for_each(|file| fs::write(path.join(file), &original).unwrap());
    }
    assert!(Store::open(&path).is_ok());
}

#[test]
fn a_folder_with_other_files_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    assert_eq!(Store::open(folder.path()).err().unwrap().code, Code::StoreFormat);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was added");
}

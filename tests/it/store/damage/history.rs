//! The log, and the head that leads to it: parts of a write, gaps, and files of another store or time.

use std::{fs, path::Path};

use edgewright::{Code, Store, storage::Query};

use super::{grow, names, refused, small_store, whole_or_refused};
use crate::{
    store::{commit, content, edge, small},
    support::program::copy,
};

/// A kill in the middle of a write leaves a part of a record that nobody was told of.
#[test]
fn an_interrupted_write_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let expected = small_store(&path);
    let log = path.join("log.0000000001");
    let whole = fs::read(&log).unwrap();
    let last = whole.windows(4).rposition(|it| it == b"ewf3").unwrap();
    let next = &whole[last..];
    let killed = folder.path().join("killed");
    copy(&path, &killed);
    let lengths = [1, 3, 50, next.len() / 2, next.len() - 1];
    let torn = lengths.map(|length| (format!("{length} bytes of another record"), next[..length].to_vec()));
    for (what, more) in torn.into_iter().chain([("a hole that the file system has left".to_owned(), vec![0; 5000])]) {
        fs::remove_dir_all(&path).unwrap();
        copy(&killed, &path);
        fs::write(&log, [whole.as_slice(), &more].concat()).unwrap();
        assert!(whole_or_refused(&path, &expected, &what));
        assert!(fs::read(&log).unwrap() == whole, "{what} is cut off");
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(commit(&store, vec![small(9)]).unwrap().revision, 5);
}

#[test]
fn files_of_another_store_or_time_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    small_store(&at("one"));
    small_store(&at("two"));
    let copied = |from: &str, file: &Path| {
        let _ = fs::remove_dir_all(at("mixed"));
        copy(&at("one"), &at("mixed"));
        fs::copy(at(from).join(file), at("mixed").join(file)).unwrap();
        at("mixed")
    };
    for file in ["log.0000000001", "head"] {
        refused(&copied("two", Path::new(file)), &format!("{file} of another store"));
    }
    grow(&at("grown"), [0]);
    copy(&at("grown"), &at("backup"));
    grow(&at("grown"), 1..5);
    assert_ne!(names(&at("grown"), "state"), names(&at("backup"), "state"), "no checkpoint was written");
    copy(&at("backup"), &at("grown"));
    refused(&at("grown"), "a backup that was copied over a newer store");

    fs::remove_file(at("one/head")).unwrap();
    refused(&at("one"), "no head");
}

#[test]
fn two_processes_never_write_even_when_the_lock_file_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    fs::remove_file(path.join("lock")).unwrap();
    assert_eq!(Store::open(&path).err().unwrap().code, Code::StoreLocked);
    commit(&store, vec![small(1)]).unwrap();
    fs::remove_dir_all(&path).unwrap();
    assert!(commit(&store, vec![small(2)]).is_err(), "nothing of it would be left");
    assert!(store.health().is_err());
}

#[test]
fn a_gap_in_the_history_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A checkpoint ends a part of the log.
    for number in 0..3 {
        grow(&at("store"), [number]);
    }
    let mut histories = names(&at("store"), "log.");
    histories.pop();
    assert_eq!(histories.len(), 3, "checkpoints leave history");
    let broken = |what: &str, file: &Path, with_index: bool, damage: &dyn Fn(&Path)| {
        let _ = fs::remove_dir_all(at("broken"));
        copy(&at("store"), &at("broken"));
        if !with_index {
            fs::remove_dir_all(at("broken/index")).unwrap();
        }
        damage(&at("broken").join(file));
        let store = Store::open(at("broken")).unwrap();
        let error = store.history(&Query::All, u64::MAX, 10).err().unwrap_or_else(|| panic!("{what}: it is read"));
        assert_eq!(error.code, Code::StoreCorrupt, "{what}");
        assert!(store.verify().is_err(), "{what}");
    };
    let (first, last) = (histories.first().unwrap(), histories.last().unwrap());
    broken("a file is missing", last, false, &|path| fs::remove_file(path).unwrap());
    broken("the oldest file is missing", first, false, &|path| fs::remove_file(path).unwrap());
    broken("the oldest file is missing beside an index", first, true, &|path| fs::remove_file(path).unwrap());
    broken("a byte has changed", last, false, &|path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    });
}

#[test]
fn a_checkpoint_keeps_a_part_of_the_log_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let log = path.join("log.0000000001");
    let store = Store::open(&path).unwrap();
    commit(&store, vec![small(1)]).unwrap();
    commit(&store, vec![small(2)]).unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let first = bytes.windows(4).position(|it| it == b"ewf3").unwrap();
    bytes[first + 200] ^= 1;
    fs::write(&log, bytes).unwrap();
    commit(&store, edge(1, 10)).unwrap();
    let expected = content(&store);
    drop(store);
    assert!(!names(&path, "state").is_empty(), "no checkpoint was written");
    assert!(log.exists(), "the records after the damage are gone");
    let store = Store::open(&path).unwrap();
    assert_eq!(content(&store), expected);
    let error = store.verify().unwrap_err();
    assert!(error.code == Code::StoreCorrupt && error.message.contains("log.0000000001"), "{error}");
}

#[test]
fn a_store_without_a_head_is_not_made_anew_over_a_log_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    small_store(&path);
    fs::remove_file(path.join("head")).unwrap();
    let log = path.join("log.0000000001");
    let whole = fs::read(&log).unwrap();
    for at in [0, whole.windows(4).position(|it| it == b"ewf3").unwrap()] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&log, bytes).unwrap();
        refused(&path, &format!("no head, and byte {at} of the log is damaged"));
    }
}

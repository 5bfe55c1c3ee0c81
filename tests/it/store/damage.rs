//! Damage on the disk: a store opens at its last acknowledged revision, or says what is damaged and changes nothing.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use edgewright::{
    Code, Store,
    storage::{Query, StoreError},
};

use super::{commit, content, deleted, described, edge, small};
use crate::support::program::{copy, rounds};

/// A small store whose process was killed: it has no state, so everything is in the log.
fn small_store(path: &Path) -> Vec<String> {
    let alive = path.with_extension("alive");
    let expected = store_with_commits(&alive, &|| copy(&alive, path));
    fs::remove_dir_all(alive).unwrap();
    expected
}

/// A small store that was closed in good order: its state is in sled.
fn closed_store(path: &Path) -> Vec<String> {
    store_with_commits(path, &|| {})
}

fn store_with_commits(path: &Path, before_end: &dyn Fn()) -> Vec<String> {
    let store = Store::open(path).unwrap();
    commit(&store, edge(1, 2)).unwrap();
    commit(&store, vec![small(1), small(2)]).unwrap();
    commit(&store, vec![described(1, "other")]).unwrap();
    commit(&store, vec![deleted(2)]).unwrap();
    let expected = content(&store);
    // The index is complete before the store is closed.
    assert_eq!(store.history(&Query::All, u64::MAX, 10).unwrap().len(), 4);
    before_end();
    expected
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries =
        walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap).filter(|entry| entry.file_type().is_file());
    entries
        .map(|entry| (entry.path().strip_prefix(folder).unwrap().to_owned(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// Opens a damaged store: it must be whole, history included, or refuse and leave its own files as they are.
fn whole_or_refused(path: &Path, expected: &[String], what: &str) -> bool {
    let before = files(path);
    match Store::open(path) {
        Ok(store) => {
            assert_eq!(content(&store), expected, "{what}");
            let records = store.history(&Query::All, u64::MAX, 10).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(records.len(), 4, "{what}");
            assert_eq!(store.verify().unwrap().records, 4, "{what}");
            true
        }
        Err(error) => {
            assert!(matches!(error.code, Code::StoreCorrupt | Code::StoreFormat), "{what}: {} {error}", error.code);
            assert!(files(path) == before, "{what}: a refused store was changed");
            false
        }
    }
}

/// The files of a small store that have the same content as another one.
const TWICE: [&str; 2] = ["keys", "keys.copy"];

fn is_twice(name: &Path) -> bool {
    TWICE.iter().any(|twice| name == Path::new(twice))
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original");
    let expected = small_store(&original);
    let (mut opened, mut refused) = (0, 0);
    let damaged = folder.path().join("damaged");
    copy(&original, &damaged);
    for (name, bytes) in files(&original) {
        // The index is rebuilt when it is damaged; a few places of it are enough here.
        let step = rounds(7, 1) * if name.starts_with("index") { 97 } else { 1 };
        // A short run begins at another place of each file.
        let mut at = name.as_os_str().len() % rounds(7, 1);
        while at < bytes.len() {
            // The two slots of the head are far apart; nothing is written between them.
            if bytes[at] == 0 && name == Path::new("head") && (128..4096).contains(&at) {
                at += 509;
                continue;
            }
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(damaged.join(&name), changed).unwrap();
            let what = format!("{} byte {at}", name.display());
            let is_open = whole_or_refused(&damaged, &expected, &what);
            assert!(is_open || !is_twice(&name), "{what}: the other file has the same content");
            if is_open {
                opened += 1;
                if is_twice(&name) {
                    assert!(fs::read(damaged.join(&name)).unwrap() == bytes, "{what}: it was not restored");
                }
                fs::remove_dir_all(&damaged).unwrap();
                copy(&original, &damaged);
            } else {
                // Nothing else was changed.
                refused += 1;
                fs::write(damaged.join(&name), &bytes).unwrap();
            }
            at += step;
        }
    }
    println!("flipped bits: {opened} opened whole, {refused} refused, 0 unnoticed");
    assert!(refused > rounds(140, 1000), "{opened} opened, {refused} refused");
}

#[test]
fn a_missing_or_cut_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let original = folder.path().join("original");
    let expected = small_store(&original);
    for (name, bytes) in
        files(&original).into_iter().filter(|(name, _)| !name.starts_with("index") && name != Path::new("lock"))
    {
        let cuts = (0..bytes.len()).step_by(bytes.len().div_ceil(rounds(10, 40))).map(Some).chain([None]);
        for cut in cuts {
            let damaged = folder.path().join("damaged");
            let _ = fs::remove_dir_all(&damaged);
            copy(&original, &damaged);
            match cut {
                Some(length) => fs::write(damaged.join(&name), &bytes[..length]).unwrap(),
                None => fs::remove_file(damaged.join(&name)).unwrap(),
            }
            let opened = whole_or_refused(&damaged, &expected, &format!("{} cut to {cut:?}", name.display()));
            if is_twice(&name) {
                assert!(opened, "{} cut to {cut:?}: the other file has the same content", name.display());
                assert!(fs::read(damaged.join(&name)).unwrap() == bytes, "{} was not restored", name.display());
                assert_eq!(fs::metadata(damaged.join(&name)).unwrap().permissions().mode() & 0o777, 0o600);
                continue;
            }
            // A cut between the slots of the head leaves one of them; everything else that is short was longer once.
            assert!(!opened || name == Path::new("head"), "{} cut to {cut:?} was not noticed", name.display());
        }
    }
}

#[test]
fn a_store_without_a_copy_of_its_keys_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let expected = small_store(&path);
    let before = files(&path);
    fs::remove_file(path.join("keys.copy")).unwrap();
    let without = files(&path);
    drop(Store::open_to_read(&path).unwrap());
    assert_eq!(files(&path), without, "a reader changes nothing");
    assert!(whole_or_refused(&path, &expected, "no copy"));
    for name in TWICE {
        assert!(fs::read(path.join(name)).unwrap() == before[Path::new(name)], "{name}");
    }
}

#[test]
fn what_is_kept_twice_is_refused_if_both_files_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    small_store(&path);
    for pair in TWICE.chunks(2) {
        let [one, other] = [pair[0], pair[1]].map(|name| fs::read(path.join(name)).unwrap());
        for (name, bytes) in pair.iter().zip([&one, &other]) {
            let mut changed = bytes.clone();
            changed[bytes.len() / 2] ^= 1;
            fs::write(path.join(name), changed).unwrap();
        }
        refused(&path, pair[0]);
        fs::write(path.join(pair[0]), one).unwrap();
        fs::write(path.join(pair[1]), other).unwrap();
    }
    assert!(Store::open(&path).is_ok());
}

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
    assert_eq!(commit(&store, vec![small(9)]).unwrap().snapshot.revision, 5);
}

#[test]
fn a_lost_index_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let expected = small_store(&path);
    fs::remove_dir_all(path.join("index")).unwrap();
    assert!(whole_or_refused(&path, &expected, "no index"));
    fs::write(path.join("index/db"), "not of sled").unwrap();
    assert!(whole_or_refused(&path, &expected, "a foreign index"));
}

/// Adds commits to a store, and another generation: closing it writes a checkpoint.
fn grow(path: &Path, commits: impl IntoIterator<Item = usize>) {
    let store = Store::open(path).unwrap();
    for number in commits {
        commit(&store, edge(number, 10)).unwrap();
    }
}

fn names(folder: &Path, part: &str) -> Vec<PathBuf> {
    files(folder).into_keys().filter(|name| name.to_string_lossy().starts_with(part)).collect()
}

fn refused(path: &Path, what: &str) {
    let before = unread(path);
    let error = Store::open(path).err().unwrap_or_else(|| panic!("{what}: it opens"));
    assert_eq!(error.code, Code::StoreCorrupt, "{what}: {error}");
    assert!(unread(path) == before, "{what}: a refused store was changed");
}

/// The files that nobody writes to only to read.
fn unread(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(path).into_iter().filter(|(name, _)| !name.to_string_lossy().starts_with("state.")).collect()
}

/// Opens a store whose state is damaged: the log leads to it, and somebody is told.
fn rebuilt(path: &Path, expected: &[String], what: &str) {
    let store = Store::open_to_read(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(content(&store), expected, "{what}");
    let told = store.warnings().join(" ");
    drop(store);
    assert!(told.contains("state.") && told.contains("Nothing is lost"), "{what}: {told}");
    assert!(whole_or_refused(path, expected, what), "{what}");
    // It was written again when the store was closed.
    assert!(Store::open_to_read(path).unwrap().warnings().is_empty(), "{what}");
}

#[test]
fn a_damaged_state_is_told_and_built_again_from_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (original, damaged) = (folder.path().join("original"), folder.path().join("damaged"));
    let expected = closed_store(&original);
    let state = original.join(names(&original, "state").pop().unwrap()).parent().unwrap().to_owned();
    let in_copy = |path: &Path| damaged.join(path.strip_prefix(&original).unwrap());
    let fresh = || {
        let _ = fs::remove_dir_all(&damaged);
        copy(&original, &damaged);
    };
    let mut harmless = 0;
    for (name, bytes) in files(&original).into_iter().filter(|(name, _)| name.to_string_lossy().starts_with("state.")) {
        for at in (0..bytes.len()).step_by(bytes.len().div_ceil(rounds(12, 60))) {
            fresh();
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(damaged.join(&name), changed).unwrap();
            let what = format!("{} byte {at}", name.display());
            // Not every byte of a database has a content.
            let opened = Store::open_to_read(&damaged).unwrap_or_else(|error| panic!("{what}: {error}"));
            let is_told = !opened.warnings().is_empty();
            drop(opened);
            if is_told {
                rebuilt(&damaged, &expected, &what);
            }
            harmless += usize::from(!is_told);
            assert!(whole_or_refused(&damaged, &expected, &what), "{what}");
        }
        fresh();
        fs::write(damaged.join(&name), &bytes[..bytes.len() / 2]).unwrap();
        assert!(whole_or_refused(&damaged, &expected, &format!("{} is cut", name.display())));
    }
    assert!(harmless < 100, "{harmless} bytes have no content");
    fresh();
    fs::remove_dir_all(in_copy(&state)).unwrap();
    rebuilt(&damaged, &expected, "the folder is missing");
    fresh();
    fs::remove_file(in_copy(&state).join("db")).unwrap();
    rebuilt(&damaged, &expected, "the database is missing");
    let other = folder.path().join("other");
    closed_store(&other);
    fresh();
    fs::remove_dir_all(in_copy(&state)).unwrap();
    copy(&other.join(state.file_name().unwrap()), &in_copy(&state));
    rebuilt(&damaged, &expected, "the state of another store");
    // Without the log, nothing leads there: that is told, and never an empty gateway.
    fresh();
    fs::remove_dir_all(in_copy(&state)).unwrap();
    fs::remove_file(damaged.join("log.0000000001")).unwrap();
    refused(&damaged, "neither the state nor the log");
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

/// Runs something that must not wait for what is in a store's folder.
fn in_time<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(run()));
    receiver.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| panic!("{what}: opening the store hangs"))
}

fn opened_in_time(path: &Path, what: &str) -> Result<Store, StoreError> {
    let path = path.to_owned();
    in_time(what, move || Store::open(path))
}

/// Puts something at a path that is not a regular file.
fn put_special(kind: &str, path: &Path) {
    match kind {
        "fifo" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "socket" => drop(UnixListener::bind(path).unwrap()),
        "folder" => fs::create_dir(path).unwrap(),
        _ => symlink("/dev/zero", path).unwrap(),
    }
}

const SPECIAL: [&str; 4] = ["fifo", "socket", "folder", "link"];

#[test]
fn a_file_that_is_not_regular_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (original, damaged) = (folder.path().join("original"), folder.path().join("damaged"));
    small_store(&original);
    for name in ["head", "log.0000000001", "keys", "lock"] {
        for kind in SPECIAL {
            let _ = fs::remove_dir_all(&damaged);
            copy(&original, &damaged);
            fs::remove_file(damaged.join(name)).unwrap();
            put_special(kind, &damaged.join(name));
            let what = format!("a {kind} at `{name}`");
            let error = opened_in_time(&damaged, &what).err().unwrap_or_else(|| panic!("{what}: the store opens"));
            assert!(matches!(error.code, Code::StoreFailed | Code::StoreCorrupt), "{what}: {} {error}", error.code);
            assert!(error.message.contains(&format!("/{name}")), "{what}: {error}");
            assert!(error.message.contains("not a regular file"), "{what}: {error}");
        }
    }
}

#[test]
fn an_index_that_is_not_regular_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let (original, damaged) = (folder.path().join("original"), folder.path().join("damaged"));
    let expected = small_store(&original);
    for name in ["index", "index/db", "index/conf"] {
        for kind in SPECIAL {
            let _ = fs::remove_dir_all(&damaged);
            copy(&original, &damaged);
            let at = damaged.join(name);
            if at.is_dir() { fs::remove_dir_all(&at) } else { fs::remove_file(&at) }.unwrap();
            put_special(kind, &at);
            let what = format!("a {kind} at `{name}`");
            let path = damaged.clone();
            in_time(&what, move || drop(Store::open(path)));
            assert!(whole_or_refused(&damaged, &expected, &what), "{what}");
        }
    }
}

#[test]
fn an_index_elsewhere_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (store, elsewhere) = (folder.path().join("store"), folder.path().join("elsewhere"));
    let expected = small_store(&store);
    fs::rename(store.join("index"), &elsewhere).unwrap();
    symlink(&elsewhere, store.join("index")).unwrap();
    let before = files(&elsewhere);
    assert!(whole_or_refused(&store, &expected, "a link to an index"));
    assert_eq!(files(&elsewhere), before);
    assert!(fs::symlink_metadata(store.join("index")).unwrap().is_dir());
}

#[test]
fn leftovers_of_an_interrupted_write_are_replaced() {
    for kind in ["fifo", "socket", "link"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        fs::create_dir(&path).unwrap();
        for name in ["state.tmp", "log.tmp", "head.tmp", "keys.tmp"] {
            put_special(kind, &path.join(name));
        }
        let store = opened_in_time(&path, kind).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(commit(&store, vec![small(1)]).unwrap().snapshot.revision, 1, "{kind}");
    }
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

//! Pipes, sockets, folders and links where a file of the store belongs.

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    process::Command,
    time::Duration,
};

use edgewright::{Code, Store, storage::StoreError};

use super::{files, small_store, whole_or_refused};
use crate::{
    store::{commit, small},
    support::program::copy,
};

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
        assert_eq!(commit(&store, vec![small(1)]).unwrap().revision, 1, "{kind}");
    }
}

//! Damage on the disk: a store opens at its last acknowledged revision, or says what is damaged and changes nothing.

mod changed_bytes;
mod history;
mod special_files;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use edgewright::{Code, Store, storage::Query};

use super::{commit, content, deleted, described, edge, small};
use crate::support::program::copy;

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

fn names(folder: &Path, part: &str) -> Vec<PathBuf> {
    files(folder).into_keys().filter(|name| name.to_string_lossy().starts_with(part)).collect()
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

/// Adds commits to a store, and another generation: closing it writes a checkpoint.
fn grow(path: &Path, commits: impl IntoIterator<Item = usize>) {
    let store = Store::open(path).unwrap();
    for number in commits {
        commit(&store, edge(number, 10)).unwrap();
    }
}

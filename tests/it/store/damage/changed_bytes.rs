//! Files with a changed byte, cut or missing.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use edgewright::Store;

use super::{closed_store, files, names, refused, small_store, whole_or_refused};
use crate::{
    store::content,
    support::program::{copy, rounds},
};

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
        let step = rounds(19, 1) * if name.starts_with("index") { 97 } else { 1 };
        // A short run begins at another place of each file.
        let mut at = name.as_os_str().len() % rounds(19, 1);
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
    assert!(refused > rounds(100, 1000), "{opened} opened, {refused} refused");
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

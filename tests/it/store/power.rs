//! Loss of power: the disk has what was synced and nothing else. A file system in an image is mounted through a loop
//! device, and the image is copied right after the answer, without an orderly end.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use edgewright::{Store, storage::Query};

use super::{commit, content, deleted, described, edge, small};
use crate::support::{disk::Disk, program::rounds};

fn same(store: &Store, expected: &[String], records: u64) {
    assert_eq!(content(store), expected);
    assert_eq!(store.verify().unwrap().records, records);
    assert_eq!(store.history(&Query::All, u64::MAX, 100_000).unwrap().len() as u64, records);
}

#[test]
fn a_first_start_survives() {
    let Some(mut disk) = Disk::new() else { return };
    let store = Store::open(disk.store()).unwrap();
    let (root, expected) = (store.root_secret(), content(&store));
    disk.after_power_loss(|found| {
        same(&found, &expected, 0);
        assert_eq!(found.root_secret(), root);
    });
    drop(store);
}

#[test]
fn each_small_commit_survives() {
    let Some(mut disk) = Disk::new() else { return };
    let store = Store::open(disk.store()).unwrap();
    for round in 0..6 {
        for number in 0..=round * 5 {
            commit(&store, vec![small(round * 1000 + number)]).unwrap();
        }
        let (expected, records) = (content(&store), store.position());
        disk.after_power_loss(|found| same(&found, &expected, records));
    }
    drop(store);
}

/// Values of this size were what sled kept in files of their own, which nothing synced.
#[test]
fn a_large_commit_survives_with_the_small_ones_behind_it() {
    let Some(mut disk) = Disk::new() else { return };
    let store = Store::open(disk.store()).unwrap();
    commit(&store, edge(1, 3000)).unwrap();
    let expected = content(&store);
    disk.after_power_loss(|found| same(&found, &expected, 1));
    commit(&store, (0..3000).map(small).collect()).unwrap();
    for number in 0..50 {
        commit(&store, vec![described(number, "changed")]).unwrap();
    }
    let expected = content(&store);
    disk.after_power_loss(|found| same(&found, &expected, 52));
    drop(store);
}

#[test]
fn sixty_four_writers_lose_nothing_that_was_acknowledged() {
    let Some(mut disk) = Disk::new() else { return };
    let store = Store::open(disk.store()).unwrap();
    for round in 0..3 {
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for writer in 0..64 {
                let (store, acknowledged) = (&store, &acknowledged);
                scope.spawn(move || {
                    for number in 0..5 {
                        commit(store, vec![small(round * 100_000 + writer * 100 + number)]).unwrap();
                        acknowledged.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(acknowledged.into_inner(), 320);
        let expected = content(&store);
        let records = (round as u64 + 1) * 320;
        disk.after_power_loss(|found| same(&found, &expected, records));
    }
    drop(store);
}

#[test]
fn checkpoints_on_the_way_lose_nothing() {
    let Some(mut disk) = Disk::new() else { return };
    let store = Store::open(disk.store()).unwrap();
    let mut records = 0;
    for round in 0..8 {
        commit(&store, edge(round, 2000)).unwrap();
        commit(&store, vec![small(round)]).unwrap();
        commit(&store, vec![deleted(round)]).unwrap();
        records += 3;
        let expected = content(&store);
        // The checkpoint of this round is on its way, or done. A usual run looks in each third round, also in the last.
        if round % rounds(3, 1) == rounds(1, 0) {
            disk.after_power_loss(|found| same(&found, &expected, records));
        }
    }
    assert!(generations(&disk.store()) > 1, "no checkpoint was written");
    drop(store);
}

fn generations(store: &Path) -> u64 {
    let names = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter_map(|name| name.strip_prefix("state.")?.parse().ok()).max().unwrap_or_default()
}

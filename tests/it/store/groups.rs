//! Group commit: many writers share one sync, in an order that everybody agrees on.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use edgewright::{
    Store,
    storage::{Engine, MasterKeySource, Query, Retention},
};

use super::{commit, content, deleted, described, edge, small};
use crate::support::{
    engine::{FailingEngine, Failure},
    program::{rounds, until},
};

/// Commits per second of so many writers, for a while.
fn rate(store: &Store, writers: usize, time: Duration) -> f64 {
    let (began, done) = (Instant::now(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let done = &done;
            scope.spawn(move || {
                for round in 0.. {
                    if began.elapsed() > time {
                        break;
                    }
                    commit(store, vec![described(writer, &format!("round {round}"))]).unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    done.into_inner() as f64 / began.elapsed().as_secs_f64()
}

#[test]
fn many_writers_make_one_history_without_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..20 {
                    let revision = commit(store, vec![small(writer * 100 + round)]).unwrap().revision;
                    assert!(store.snapshot().revision >= revision, "an acknowledged revision is visible");
                }
            });
        }
    });
    assert_eq!((store.snapshot().revision, store.snapshot().len()), (320, 320));
    let revisions: BTreeSet<_> =
        store.history(&Query::All, u64::MAX, 1000).unwrap().iter().map(|it| it.revision).collect();
    assert_eq!(revisions.len(), 320);
    let expected = content(&store);
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(content(&store), expected);
    assert_eq!(store.verify().unwrap().records, 320);
}

/// Measured with a generous margin, for a test machine has other things to do; `cargo bench` gives the figures.
#[test]
fn sixty_four_writers_are_faster_than_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("store")).unwrap();
    commit(&store, (0..64).map(small).collect()).unwrap();
    let one = rate(&store, 1, Duration::from_millis(500));
    let many = rate(&store, 64, Duration::from_millis(500));
    eprintln!("one writer {one:.0}/s, 64 writers {many:.0}/s");
    assert!(many > one, "64 writers: {many:.0}/s, one: {one:.0}/s");
}

/// Whatever fails, every writer of a group is told, nobody waits for ever, and the state is what was acknowledged.
#[test]
fn a_group_that_fails_leaves_what_was_acknowledged() {
    for failure in [Failure::Append, Failure::Panic] {
        let engine = Arc::new(FailingEngine::new(failure));
        let store = Store::with_engine(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default()).unwrap();
        commit(&store, (0..16).map(small).collect()).unwrap();
        let expected = content(&store);
        engine.fail(true);
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let store = &store;
                scope.spawn(move || commit(store, vec![described(writer, "lost")]).unwrap_err());
            }
        });
        assert_eq!(content(&store), expected, "{failure:?}");
        assert!(store.readiness().is_err(), "{failure:?}");
        engine.fail(false);
        assert_eq!(store.readiness().is_ok(), failure == Failure::Append, "a passing failure passes");
        // After a panic nobody knows what was written; after an error the engine says that nothing was.
        let next = commit(&store, vec![described(1, "kept")]).map(|snapshot| snapshot.revision);
        match failure {
            Failure::Panic => assert!(next.is_err() && store.health().is_err()),
            _ => assert_eq!(next.unwrap(), 2),
        }
        assert_eq!(store.verify().unwrap().records, if failure == Failure::Panic { 1 } else { 2 });
    }
}

/// Checkpoints and retention bound what a store takes on the disk, whatever it has been through.
#[test]
fn a_busy_store_stays_small() {
    // So many have several checkpoints.
    let rounds = rounds(350, 500);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let retention = Retention { records: 50, ..Retention::default() };
    let store = Store::open_encrypted(&path, retention, &MasterKeySource::Beside).unwrap();
    commit(&store, edge(1, 10)).unwrap();
    let big = "x".repeat(250);
    let mut most = 0;
    for round in 0..rounds {
        let operations = (0..40).map(|number| small(round * 100 + number)).collect();
        commit(&store, operations).unwrap();
        commit(&store, (0..40).map(|number| described(round * 100 + number, &big)).collect()).unwrap();
        commit(&store, (0..40).map(|number| deleted(round * 100 + number)).collect()).unwrap();
        most = most.max(store.statistics().bytes);
    }
    let expected = content(&store);
    assert!(most < 60 << 20, "{most} bytes");
    // The last checkpoint may still be on its way.
    until("the oldest records are dropped", || (store.statistics().oldest > 100).then_some(()));
    assert!(store.snapshot().tombstones().count() < rounds * 40, "tombstones grow for ever");
    let verified = store.verify().unwrap();
    assert_eq!(verified.oldest + verified.records - 1, store.position());
    drop(store);
    let store = Store::open_encrypted(&path, retention, &MasterKeySource::Beside).unwrap();
    assert_eq!(content(&store), expected);
    assert_eq!(store.history(&Query::All, u64::MAX, 5).unwrap().len(), 5);
}

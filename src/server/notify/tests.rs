//! Deliveries to files: nothing is told twice after a restart, and a gap is told.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;

use super::Notifier;
use super::config::{NotificationSink, NotificationTarget};
use super::cursors::Cursors;
use super::delivery::{Delivery, LONGEST_WAIT, backoff};
use super::event_filter::EventFilter;
use super::events::EventType;
use super::outbox::{Outbox, StopSignal};
use super::transitions::{EventContent, ObservedSource, ReportedState, TransitionLog};
use crate::model::kind::ip_restriction::Traffic;
use crate::model::{IpRestriction, Operation};
use crate::server::prelude::*;
use crate::store::engine::{Engine, SidecarFiles};
use crate::store::memory::MemoryEngine;
use crate::store::patched_engine::PatchedEngine;
use crate::store::{Retention, ids};

fn commit(store: &Store) {
    let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
    let key = Key::new(Kind::IpRestriction, ids::fresh_id(Kind::IpRestriction));
    let operations = vec![Operation::create(key, Arc::new(spec))];
    store.commit(Author::Local, operations).unwrap();
}

fn target(path: &Path) -> NotificationTarget {
    let sink = NotificationSink::File(path.to_owned());
    NotificationTarget { name: "audit".into(), filter: EventFilter::default(), sink }
}

/// Delivers what follows the present revision to a file.
fn delivery(store: &Arc<Store>, log: &Path) -> (Arc<Outbox>, Delivery) {
    let cursors = Cursors::open(store, 0, ["audit"].into_iter()).unwrap();
    let (transitions, names) = (TransitionLog::open(store).unwrap(), vec!["audit".into()]);
    let (store, base_url, scope, stop) = (Arc::clone(store), String::new(), [0; 32], StopSignal::default());
    let outbox = Arc::new(Outbox { store, cursors, transitions, names, base_url, scope, stop });
    (Arc::clone(&outbox), Delivery::new(outbox, target(log)))
}

/// The lines of a file, once it has so many.
fn lines(path: &Path, count: usize) -> Vec<Value> {
    for _ in 0..1000 {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Vec::new()
}

fn revisions(lines: &[Value]) -> Vec<u64> {
    lines.iter().map(|line| line["data"]["revision"].as_u64().unwrap_or_default()).collect()
}

#[test]
fn a_target_is_told_of_what_follows_its_start_and_not_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("store"), folder.path().join("changes.jsonl"));
    let open = || Arc::new(Store::open(&path).unwrap());
    let start = |store: &Arc<Store>| Notifier::start(store, vec![target(&log)], "http://edge").unwrap().unwrap();
    let store = open();
    commit(&store);
    let notifier = start(&store);
    commit(&store);
    commit(&store);
    assert_eq!(revisions(&lines(&log, 2)), [2, 3]);
    drop(notifier);
    // What is committed while nobody delivers, such as by a command, is delivered at the next start.
    commit(&store);
    drop(store);
    let store = open();
    let notifier = start(&store);
    let told = lines(&log, 3);
    assert_eq!(revisions(&told), [2, 3, 4]);
    assert_eq!(told[2]["data"]["changes"][0]["event"], "created");
    let lags: Vec<u64> = notifier.outbox().lags().map(|(_, lag)| lag).collect();
    assert_eq!(lags.len(), 1);
}

#[test]
fn revisions_that_are_no_longer_kept_are_told_as_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("changes.jsonl");
    let engine = Arc::new(MemoryEngine::default());
    let store = Arc::new(Store::with_engine(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default()).unwrap());
    commit(&store);
    // The target's cursor is after revision 1.
    let (_, mut delivery) = delivery(&store, &log);
    for _ in 0..6 {
        commit(&store);
    }
    engine.forget(5);
    while delivery.step().unwrap() {}
    let told = lines(&log, 3);
    assert_eq!(told[0]["type"], "gap");
    assert_eq!(told[0]["data"], serde_json::json!({"from_revision": 2, "to_revision": 5}));
    assert_eq!(revisions(&told[1..]), [6, 7]);
}

/// The files of a store that another process can take over.
struct OvertakenFiles(Arc<Lock<Option<StoreError>>>);

impl SidecarFiles for OvertakenFiles {
    fn read(&self, _name: &str, _most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn write(&self, _name: &str, _bytes: &[u8]) -> Result<(), StoreError> {
        self.0.lock().clone().map_or(Ok(()), Err)
    }
}

#[test]
fn a_writer_that_was_overtaken_notifies_nobody_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("changes.jsonl");
    let refusal: Arc<Lock<Option<StoreError>>> = Arc::default();
    let files: Arc<dyn SidecarFiles> = Arc::new(OvertakenFiles(Arc::clone(&refusal)));
    let (is_shared, files) = (true, Some(files));
    let engine = PatchedEngine { refusal: Arc::clone(&refusal), is_shared, files, ..PatchedEngine::default() };
    let store = Arc::new(Store::with_engine(Arc::new(engine), Retention::default()).unwrap());
    let (outbox, mut delivery) = delivery(&store, &log);
    for _ in 0..5 {
        commit(&store);
    }
    assert!(delivery.step().unwrap());
    *refusal.lock() = Some(StoreError::new(Code::StoreLocked, "another process writes to the store"));
    delivery.run();
    // The second one was on its way before anybody could know.
    assert_eq!(revisions(&lines(&log, 2)), [1, 2]);
    assert!(outbox.stop.is_set());
}

#[test]
fn an_event_follows_the_revision_of_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("changes.jsonl");
    let store = Arc::new(Store::open("memory:").unwrap());
    let (outbox, mut delivery) = delivery(&store, &log);
    commit(&store);
    let reported = |digest: &str| ReportedState {
        r#type: EventType::SourceInvalid,
        state: "Invalid".into(),
        digests: [digest.to_owned()].into(),
    };
    for digest in ["a", "b"] {
        outbox.transitions.note_source(
            "shop",
            store.snapshot().revision,
            || ObservedSource::Troubled(reported(digest)),
            |r#type, _| {
                let (source, data) = (Some("shop".to_owned()), Value::Null);
                EventContent { r#type, source, kind: None, text: digest.to_owned(), data }
            },
        );
        commit(&store);
    }
    while delivery.step().unwrap() {}
    let types: Vec<Value> = lines(&log, 5).into_iter().map(|line| line["type"].clone()).collect();
    let (revision, invalid) = ("revision.applied", "source.invalid");
    assert_eq!(types, [revision, invalid, revision, invalid, revision]);
    assert!(outbox.transitions.after(0).is_none(), "all targets were told");
}

#[test]
fn the_wait_doubles_up_to_a_limit_and_varies() {
    assert_eq!(backoff(0, 0.0), Duration::from_millis(500));
    assert_eq!(backoff(0, 1.0), Duration::from_secs(1));
    assert_eq!(backoff(3, 1.0), Duration::from_secs(8));
    for failures in [9, 31, 32, u32::MAX] {
        assert_eq!(backoff(failures, 1.0), LONGEST_WAIT);
    }
}

//! Syncs during commits of others that are not durable yet.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::manifests;
use crate::model::{Author, HttpsEdge, Key, Kind, Operation};
use crate::reconcile::Options;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::run::result::RunResult;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::store::engine::Engine;
use crate::store::patched_engine::PatchedEngine;
use crate::store::{Retention, Store, ids};

/// Much longer than anything takes that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// Holds the next write. Returns who is told when it waits, and whose end it waits for.
fn hold(engine: &PatchedEngine) -> (Receiver<()>, Sender<()>) {
    let ((writing, is_writing), (go_on, waits)) = (channel(), channel());
    *engine.before_append.lock() = Some(Box::new(move || {
        writing.send(()).unwrap();
        let _ = waits.recv_timeout(LONG);
    }));
    (is_writing, go_on)
}

/// Runs an edge in the manifests of `shop`.
fn run(store: &Store, metadata: &str) -> RunResult {
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: one}}\n\
         spec: {{hostports: ['one.example.com:443'], metadata: {metadata}}}\n"
    );
    super::run(store, Options { source: "shop".into(), ..Options::new(manifests(text)) }, DriftPolicy::Warn)
}

fn commit(store: &Store, operation: Operation) {
    store.commit(Author::Local, vec![operation]).unwrap();
}

fn edge(description: &str) -> Arc<HttpsEdge> {
    Arc::new(HttpsEdge { description: description.into(), ..HttpsEdge::default() })
}

fn another() -> Operation {
    let key = Key::new(Kind::HttpsEdge, ids::fresh_id(Kind::HttpsEdge));
    Operation::create(key, edge(""))
}

/// Runs while others commit after each of its plans. The commit after the last plan without the lock is not durable when
/// the run plans again under the lock.
fn beside(last: impl FnOnce(Key) -> Operation) -> RunReport {
    let engine = Arc::new(PatchedEngine::default());
    let store = Arc::new(Store::with_engine(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default()).unwrap());
    assert!(matches!(run(&store, "a").report, RunReport::Applied { revision: 1, .. }));
    let mut last = Some(last(store.snapshot().iter().find(|it| it.key.kind == Kind::HttpsEdge).unwrap().key.clone()));
    let (others, holding, mut go_on, mut searches) = (Arc::clone(&store), Arc::clone(&engine), None, 0);
    *engine.after_search.lock() = Some(Box::new(move || {
        searches += 1;
        match searches {
            1 | 2 => commit(&others, another()),
            3 => {
                let (is_writing, end) = hold(&holding);
                go_on = Some(end);
                let (others, last) = (Arc::clone(&others), last.take().unwrap());
                thread::spawn(move || commit(&others, last));
                is_writing.recv_timeout(LONG).unwrap();
            }
            _ => drop(go_on.take()),
        }
    }));
    run(&store, "b").report
}

#[test]
fn a_source_that_reports_drift_is_applied_beside_commits_that_do_not_concern_it() {
    let report = beside(|_| another());
    assert!(matches!(report, RunReport::Applied { revision: 5, .. }), "{report:?}");
}

#[test]
fn drift_that_is_not_durable_yet_is_waited_for_and_found() {
    let patch = |key: Key| Operation::Patch { key, spec: edge("by hand"), fields: vec!["description".into()] };
    let report = beside(patch);
    assert!(matches!(report, RunReport::Drifted { drifted: 1, .. }), "{report:?}");
}

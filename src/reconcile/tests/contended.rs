//! Syncs during commits of others that are not durable yet.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::manifests;
use crate::model::{Author, HttpsEdge, Key, Kind, Operation};
use crate::reconcile::Options;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::run::result::RunResult;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::store::commit::batch::Batch;
use crate::store::commit::header::CommitHeader;
use crate::store::engine::{
    BatchVisit, Engine, History, Query, ResourceHistoryQuery, ResourceHistoryVisit, State, Statistics,
};
use crate::store::memory::MemoryEngine;
use crate::store::{Retention, Store, StoreError, ids};

/// Much longer than anything takes that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// The effect when the history is searched from the newest record, by the number of the search.
type OnSearch = Box<dyn FnMut(usize) + Send>;

/// An engine whose writes can be held, and that tells of searches.
#[derive(Default)]
struct HeldEngine {
    inner: MemoryEngine,
    searches: AtomicUsize,
    on_search: Mutex<Option<OnSearch>>,
    /// Told when the next write waits, and what it waits for.
    held: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl HeldEngine {
    /// Holds the next write. Returns who is told when it waits, and whose end it waits for.
    fn hold(&self) -> (Receiver<()>, Sender<()>) {
        let ((writing, is_writing), (go_on, waits)) = (channel(), channel());
        *self.held.lock().unwrap() = Some((writing, waits));
        (is_writing, go_on)
    }
}

impl Engine for HeldEngine {
    fn load(&self) -> Result<State, StoreError> {
        self.inner.load()
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let held = self.held.lock().unwrap().take();
        if let Some((writing, waits)) = held {
            writing.send(()).unwrap();
            let _ = waits.recv_timeout(LONG);
        }
        self.inner.append(after, batches)
    }

    fn history(&self) -> &dyn History {
        self
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

impl History for HeldEngine {
    fn headers(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<CommitHeader>, StoreError> {
        self.inner.headers(query, before, limit)
    }

    fn commit(&self, position: u64) -> Result<Option<Batch>, StoreError> {
        self.inner.commit(position)
    }

    fn walk(&self, revision: u64, upto: u64, visit: &mut BatchVisit<'_>) -> Result<(), StoreError> {
        self.inner.walk(revision, upto, visit)
    }

    fn resource_histories(
        &self,
        wanted: ResourceHistoryQuery<'_>,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<(), StoreError> {
        let found = self.inner.resource_histories(wanted, visit);
        if let Some(on_search) = self.on_search.lock().unwrap().as_mut() {
            on_search(self.searches.fetch_add(1, Ordering::SeqCst) + 1);
        }
        found
    }
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
    let engine = Arc::new(HeldEngine::default());
    let store = Arc::new(Store::with_engine(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default()).unwrap());
    assert!(matches!(run(&store, "a").report, RunReport::Applied { revision: 1, .. }));
    let mut last = Some(last(store.snapshot().iter().find(|it| it.key.kind == Kind::HttpsEdge).unwrap().key.clone()));
    let (others, holding, mut go_on) = (Arc::clone(&store), Arc::clone(&engine), None);
    *engine.on_search.lock().unwrap() = Some(Box::new(move |search: usize| match search {
        1 | 2 => commit(&others, another()),
        3 => {
            let (is_writing, end) = holding.hold();
            go_on = Some(end);
            let (others, last) = (Arc::clone(&others), last.take().unwrap());
            thread::spawn(move || commit(&others, last));
            is_writing.recv_timeout(LONG).unwrap();
        }
        _ => drop(go_on.take()),
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

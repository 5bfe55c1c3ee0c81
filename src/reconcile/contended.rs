//! Runs beside commits of others that are not durable yet.
#![allow(clippy::unwrap_used)]

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use super::{
    Options, Prepared,
    run::{OnDrift, RunReport, RunResult, run_once},
};
use crate::{
    manifest::tree::{Sent, SentFile},
    model::{
        Kind,
        key::Key,
        kind::https_edge::HttpsEdge,
        operation::{Author, Operation},
    },
    store::{
        Commit, Store, StoreError,
        engine::{Batch, Engine, Query, State, Statistics, Visit},
        history::Retention,
        memory::MemoryEngine,
        mint,
    },
};

/// Much longer than anything takes that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// An engine whose next write waits until its history was searched from the newest record so many times.
struct HeldEngine {
    inner: MemoryEngine,
    searches: AtomicUsize,
    /// Told when a write waits, and dropped when it goes on.
    writing: Mutex<Option<Sender<()>>>,
    go_on: Mutex<Option<Sender<()>>>,
    waits: Mutex<Option<Receiver<()>>>,
}

impl HeldEngine {
    fn new() -> Self {
        Self {
            inner: MemoryEngine::default(),
            searches: AtomicUsize::new(0),
            writing: Mutex::default(),
            go_on: Mutex::default(),
            waits: Mutex::default(),
        }
    }

    /// Holds the next write. The receiver is told when it waits.
    fn hold(&self, searches: usize) -> Receiver<()> {
        let ((writing, is_writing), (go_on, waits)) = (channel(), channel());
        *self.writing.lock().unwrap() = Some(writing);
        *self.go_on.lock().unwrap() = Some(go_on);
        *self.waits.lock().unwrap() = Some(waits);
        self.searches.store(searches, Ordering::SeqCst);
        is_writing
    }
}

impl Engine for HeldEngine {
    fn load(&self) -> Result<State, StoreError> {
        self.inner.load()
    }

    fn append(&self, after: u64, batches: &[Batch]) -> Result<(), StoreError> {
        let waits = self.waits.lock().unwrap().take();
        if let Some(waits) = waits {
            let writing = self.writing.lock().unwrap().take().unwrap();
            writing.send(()).unwrap();
            // Ends when the other end is dropped.
            let _ = waits.recv_timeout(LONG);
        }
        self.inner.append(after, batches)
    }

    fn changes_since(&self, position: u64) -> Result<Option<Vec<Batch>>, StoreError> {
        self.inner.changes_since(position)
    }

    fn history(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<Arc<[u8]>>, StoreError> {
        let found = self.inner.history(query, before, limit);
        if before == u64::MAX && self.searches.fetch_sub(1, Ordering::SeqCst) == 1 {
            *self.go_on.lock().unwrap() = None;
        }
        found
    }

    fn walk(&self, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.inner.walk(visit)
    }

    fn wait_for_newer(&self, position: u64, timeout: Duration) -> u64 {
        self.inner.wait_for_newer(position, timeout)
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }
}

/// An edge in the manifests of `shop`.
fn prepared(metadata: &str) -> Prepared {
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: one}}\n\
         spec: {{hostports: ['one.example.com:443'], metadata: {metadata}}}\n"
    );
    let tree = Sent::new(vec![SentFile { name: "shop.yaml".into(), text, values: Vec::new() }], None);
    Prepared::load(Options { source: "shop".into(), ..Options::new(tree) })
}

fn run(store: &Store, metadata: &str) -> RunResult {
    run_once(store, &prepared(metadata), OnDrift::Report, &|| true, |_, _| {})
}

/// Runs while a commit of somebody else to an edge is held. The write goes on when the run has planned on its result.
fn beside(of_key: impl FnOnce(Key) -> Operation) -> RunReport {
    let engine = Arc::new(HeldEngine::new());
    let store = Arc::new(Store::on(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default()).unwrap());
    assert!(matches!(run(&store, "a").report, RunReport::Applied { revision: 1, .. }));
    let operations =
        vec![of_key(store.snapshot().iter().find(|it| it.key.kind == Kind::HttpsEdge).unwrap().key.clone())];
    // It looks for drift once before it waits for the lock, which the other commit has.
    let is_writing = engine.hold(1);
    let other = Arc::clone(&store);
    let commit =
        thread::spawn(move || other.commit(Commit { base: None, operations, author: Author::Local, at: mint::now() }));
    is_writing.recv_timeout(LONG).unwrap();
    let run = run(&store, "b");
    commit.join().unwrap().unwrap();
    run.report
}

fn edge(description: &str) -> Arc<HttpsEdge> {
    let hostports = vec!["two.example.com:443".to_owned()];
    Arc::new(HttpsEdge { description: description.into(), hostports, ..HttpsEdge::default() })
}

#[test]
fn a_source_that_reports_drift_is_applied_beside_commits_that_do_not_concern_it() {
    let create = |one: Key| {
        let key = Key::new(one.kind, mint::fresh_id(one.kind));
        Operation::Create { key, spec: edge(""), claim: None, token: None }
    };
    let report = beside(create);
    assert!(matches!(report, RunReport::Applied { revision: 3, .. }), "{report:?}");
}

#[test]
fn drift_that_is_not_durable_yet_is_waited_for_and_found() {
    let patch = |key: Key| Operation::Patch { key, spec: edge("by hand"), fields: vec!["description".into()] };
    let report = beside(patch);
    assert!(matches!(report, RunReport::Drifted { drifted: 1, .. }), "{report:?}");
}

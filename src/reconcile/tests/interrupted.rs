//! Sources that are suspended while a run is in progress.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::manifests;
use crate::manifest::ManifestFile;
use crate::manifest::tree::Tree;
use crate::model::{Author, Code, Diagnostic, Fault};
use crate::reconcile::run::decision::{RunMode, run};
use crate::reconcile::run::report::RunReport;
use crate::reconcile::run::result::RunResult;
use crate::reconcile::sources::handle::{FollowedSource, INTERVAL, SourceHandle};
use crate::reconcile::sync_loop::WatchedSource;
use crate::reconcile::sync_loop::clock::Clock;
use crate::reconcile::sync_loop::condition::Reason;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::reconcile::sync_loop::suspension::{SourceRecords, Suspension};
use crate::reconcile::{Options, Prepared};
use crate::store::{Store, clock};

/// Much longer than anything takes that is waited for.
const LONG: Duration = Duration::from_secs(60);

/// Manifests that cannot be read before the other end of `waits` is dropped.
#[derive(Debug)]
struct StuckTree {
    reading: Mutex<Sender<()>>,
    waits: Mutex<Receiver<()>>,
}

const EDGE: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: one}\nspec: {hostports: ['one.example.com:443']}\n";

impl Tree for StuckTree {
    fn manifests(&self) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>) {
        let _ = self.reading.lock().unwrap().send(());
        let _ = self.waits.lock().unwrap().recv();
        manifests(EDGE).manifests()
    }

    fn commit(&self) -> Option<String> {
        None
    }

    fn file(&self, _manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        Err(Fault::new(Code::FileUnreadable, name.to_owned()))
    }
}

fn source(tree: Arc<dyn Tree>) -> FollowedSource {
    let options = Options { tree, source: "shop".to_owned(), ..Options::default() };
    FollowedSource { options, interval: INTERVAL, ..FollowedSource::default() }
}

fn suspension(reason: &str) -> Suspension {
    Suspension::new(reason.to_owned(), "usr_a", clock::now(), None).unwrap()
}

fn applied(store: &Store, prepared: &Prepared, may_apply: &dyn Fn() -> bool) -> RunResult {
    let (drift, rests_until) = (DriftPolicy::Enforce, None);
    let mode = RunMode::Apply { drift, rests_until, content: None, changed_values: &[], may_apply };
    run(store, prepared, mode, |_, _| {})
}

#[test]
fn a_suspension_does_not_wait_for_a_run_that_is_stuck_and_that_then_applies_nothing() {
    let (reading, has_begun) = channel();
    let (go_on, waits) = channel();
    let tree = StuckTree { reading: Mutex::new(reading), waits: Mutex::new(waits) };
    let store = Arc::new(Store::open("memory:").unwrap());
    let records = Arc::new(SourceRecords::open(Arc::clone(&store)).unwrap());
    let (reported, reports) = channel();
    let report = move |report: RunReport, _: &Author| {
        let _ = reported.send(report.condition().0);
    };
    let guard = WatchedSource::new(source(Arc::new(tree))).start(Arc::clone(&store), records, None, report).unwrap();
    has_begun.recv_timeout(LONG).unwrap();

    let handle = guard.handle();
    let (suspending, (done, is_done)) = (Arc::clone(&handle), channel());
    thread::spawn(move || {
        let _ = done.send(suspending.set_suspension(Some(suspension("a fix")), Author::Local).unwrap());
    });
    assert_eq!(is_done.recv_timeout(LONG).unwrap(), None, "nothing is replaced");
    assert_eq!(handle.suspension().unwrap().reason, "a fix");
    drop(go_on);
    // The stuck run has no result. The next one reports what it would do.
    assert_eq!(reports.recv_timeout(LONG).unwrap(), Reason::Suspended);
    assert_eq!(store.snapshot().revision, 0);

    let replaced = handle.set_suspension(Some(suspension("another fix")), Author::Local).unwrap();
    assert_eq!(replaced.unwrap().reason, "a fix");
    handle.set_suspension(None, Author::Local).unwrap();
    assert_eq!(reports.recv_timeout(LONG).unwrap(), Reason::Applied);
    assert_eq!(store.snapshot().revision, 1);
}

#[test]
fn a_status_tells_of_a_loop_that_has_ended_unless_it_was_asked_to() {
    let store = Arc::new(Store::open("memory:").unwrap());
    let records = Arc::new(SourceRecords::open(store).unwrap());
    let (source, (signals, _received)) = (source(Arc::new(manifests(EDGE))), channel());
    let handle = SourceHandle::new(&source, records, signals, None, Clock::default());
    handle.health.result(Reason::InSync, "1 unchanged".to_owned(), 1);
    assert_eq!(handle.shown_condition(), handle.health.condition());
    handle.health.record_end();
    let shown = handle.shown_condition();
    assert_eq!(shown.reason, Reason::Failed);
    assert!(shown.message.starts_with("the reconcile loop has ended, since "), "{}", shown.message);
    handle.stop();
    assert_eq!(handle.shown_condition(), handle.health.condition());
}

#[test]
fn a_plan_is_not_committed_after_a_suspension() {
    let store = Arc::new(Store::open("memory:").unwrap());
    let records = Arc::new(SourceRecords::open(Arc::clone(&store)).unwrap());
    let tree: Arc<dyn Tree> = Arc::new(manifests(EDGE));
    let source = source(tree);
    let (signals, _received) = channel();
    let handle = SourceHandle::new(&source, Arc::clone(&records), signals, None, Clock::default());
    let options = Options { cancel: handle.begin_run(), ..source.options };
    let prepared = Prepared::load(options);
    assert!(handle.may_apply());
    // Recorded, before anybody has cancelled the run.
    records.set_suspension("shop", Some(suspension("a fix")), Author::Local).unwrap();
    assert!(!handle.may_apply());
    let run = applied(&store, &prepared, &|| handle.may_apply());
    assert!(run.is_cut_short(&prepared.options));
    assert_eq!(store.snapshot().revision, 0);

    records.set_suspension("shop", None, Author::Local).unwrap();
    let prepared = Prepared::load(Options { cancel: handle.begin_run(), ..prepared.options });
    let run = applied(&store, &prepared, &|| false);
    assert!(matches!(run.report, RunReport::Failed(_)), "{:?}", run.report);
    assert_eq!(store.snapshot().revision, 0, "the last word is inside the commit");
    let run = applied(&store, &prepared, &|| handle.may_apply());
    assert!(matches!(run.report, RunReport::Applied { revision: 1, .. }), "{:?}", run.report);
}

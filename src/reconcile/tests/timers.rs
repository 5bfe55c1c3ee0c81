//! Days of a followed source on a paused clock: what the timers of its loop do, and when.
#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;

use super::manifests;
use super::paused::PausedTime;
use crate::lint;
use crate::manifest::ManifestFile;
use crate::manifest::tree::Tree;
use crate::model::{Author, Code, Diagnostic, Fault, Name};
use crate::reconcile::Options;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::sources::handle::{FollowedSource, INTERVAL, SourceHandle};
use crate::reconcile::sync_loop::WatchedSource;
use crate::reconcile::sync_loop::clock::Clock;
use crate::reconcile::sync_loop::condition::Reason;
use crate::reconcile::sync_loop::health::Verdict;
use crate::reconcile::sync_loop::suspension::{SourceRecords, Suspension};
use crate::store::Store;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A text that panics when it is read.
const PANICS: &str = "panics";

/// A manifest in memory, and when it was read.
#[derive(Debug)]
struct ScriptedTree {
    text: Mutex<String>,
    reads: Mutex<Vec<u64>>,
    paused: Arc<PausedTime>,
}

impl ScriptedTree {
    fn set(&self, text: &str) {
        text.clone_into(&mut self.text.lock().unwrap());
    }
}

impl Tree for ScriptedTree {
    fn manifests(&self) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>) {
        self.reads.lock().unwrap().push(self.paused.passed().as_secs());
        let text = self.text.lock().unwrap().clone();
        assert_ne!(text, PANICS, "on purpose");
        manifests(text).manifests()
    }

    fn commit(&self) -> Option<String> {
        None
    }

    fn file(&self, _manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        Err(Fault::new(Code::FileUnreadable, name.to_owned()))
    }
}

/// A followed source whose time passes only while its loop waits.
struct Simulation {
    paused: Arc<PausedTime>,
    tree: Arc<ScriptedTree>,
    handle: Arc<SourceHandle>,
}

/// The outcome.
struct Simulated {
    /// When the manifests were read, in seconds.
    reads: Vec<u64>,
    /// When which result was reported.
    reports: Vec<(u64, Reason)>,
}

impl Simulation {
    /// Adds a change of the manifests that causes no event.
    fn set(&self, after: Duration, text: &str) {
        let (tree, text) = (Arc::clone(&self.tree), text.to_owned());
        self.paused.at(after, move || tree.set(&text));
    }

    /// Adds something to do with the loop.
    fn act(&self, after: Duration, act: impl FnOnce(&SourceHandle) + Send + 'static) {
        let handle = Arc::clone(&self.handle);
        self.paused.at(after, move || act(&handle));
    }
}

/// Follows a source from a time of day, while what `script` adds happens to it, in order.
fn simulate(began: &str, text: &str, time: Duration, script: impl FnOnce(&Simulation)) -> Simulated {
    let paused = Arc::new(PausedTime::new(began.parse().unwrap()));
    let clock = Clock { paused: Some(Arc::clone(&paused)) };
    let tree = Arc::new(ScriptedTree {
        text: Mutex::new(text.to_owned()),
        reads: Mutex::default(),
        paused: Arc::clone(&paused),
    });
    let options = Options { tree: Arc::clone(&tree) as Arc<dyn Tree>, source: "shop".to_owned(), ..Options::default() };
    let source = FollowedSource { options, interval: INTERVAL, ..FollowedSource::default() };
    let store = Arc::new(Store::open("memory:").unwrap());
    let records = Arc::new(SourceRecords::open(Arc::clone(&store)).unwrap());
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (reported, at) = (Arc::clone(&reports), Arc::clone(&paused));
    let report = move |report: RunReport, _: &Author| {
        reported.lock().unwrap().push((at.passed().as_secs(), report.condition().0));
    };
    let (mut watch, received) = WatchedSource::new(source).into_loop(store, records, None, clock, report);
    let simulation = Simulation { paused, tree: Arc::clone(&tree), handle: Arc::clone(&watch.handle) };
    script(&simulation);
    simulation.act(time, SourceHandle::stop);
    let (looked, _first) = oneshot::channel();
    watch.run(&received, looked);
    let reads = tree.reads.lock().unwrap().clone();
    let reports = reports.lock().unwrap().clone();
    Simulated { reads, reports }
}

fn edge(description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: one}}\nspec: {{description: {description}, hostports: ['one.example.com:443']}}\n"
    )
}

/// Asserts what the status says of the certificate of the source.
fn assert_expires(handle: &SourceHandle, expected: &str) {
    let diagnostics = handle.status.current().findings.diagnostics;
    let found = diagnostics.iter().find(|(name, _)| *name == Name::Lint("expiring-certificate"));
    let found = found.map(|(_, it)| it.message.as_str());
    assert!(found.is_some_and(|message| message.ends_with(expected)), "{found:?}, expected {expected}");
    assert!(handle.health.is_up());
    assert_eq!(handle.health.verdict(), Verdict::Ready);
}

#[test]
fn two_days_of_an_idle_source_are_looks_at_its_interval_and_lints_that_know_the_day() {
    // Its certificate expires at the beginning of 2030-01-15.
    let text = lint::find("expiring-certificate").unwrap().example();
    let two_days = 48 * HOUR;
    let simulated = simulate("2030-01-10T12:00:00Z", text, two_days, |simulation| {
        simulation.act(HOUR, |handle| assert_expires(handle, "in 4 days"));
        simulation.act(12 * HOUR - MINUTE, |handle| assert_expires(handle, "in 4 days"));
        simulation.act(12 * HOUR + MINUTE, |handle| assert_expires(handle, "in 3 days"));
        simulation.act(36 * HOUR - MINUTE, |handle| assert_expires(handle, "in 3 days"));
        simulation.act(36 * HOUR + MINUTE, |handle| assert_expires(handle, "in 2 days"));
    });
    let expected: Vec<u64> = (0..two_days.as_secs()).step_by(30).collect();
    assert_eq!(simulated.reads, expected);
    // The first full run after an hour tells that there is nothing to do.
    assert_eq!(simulated.reports, [(0, Reason::Applied), (3600, Reason::InSync)]);
}

#[test]
fn a_suspension_ends_at_its_time() {
    let began = "2030-01-10T12:00:00Z";
    let start: Timestamp = began.parse().unwrap();
    let until = start + (50 * MINUTE + Duration::from_secs(7));
    let simulated = simulate(began, &edge("first"), 55 * MINUTE, |simulation| {
        simulation.act(30 * MINUTE, move |handle| {
            let (reason, by) = ("a fix".to_owned(), "usr_a".to_owned());
            let suspension = Suspension { reason, by, since: start, until: Some(until) };
            handle.set_suspension(Some(suspension), Author::Local).unwrap();
        });
        simulation.set(45 * MINUTE, &edge("second"));
        simulation.act(50 * MINUTE, |handle| assert!(handle.suspension().is_some()));
        simulation.act(51 * MINUTE, |handle| assert!(handle.suspension().is_none()));
    });
    assert_eq!(simulated.reports, [(0, Reason::Applied), (2700, Reason::Suspended), (3007, Reason::Applied)]);
}

#[test]
fn a_source_that_fails_is_looked_at_until_it_recovers() {
    let broken = edge("broken").replace("hostports", "hostprots");
    let simulated = simulate("2030-01-10T12:00:00Z", &edge("first"), 30 * MINUTE, |simulation| {
        simulation.set(10 * MINUTE, &broken);
        simulation.act(15 * MINUTE, |handle| {
            let verdict = handle.health.verdict();
            assert!(matches!(&verdict, Verdict::Degraded(why) if why.contains("Invalid")), "{verdict:?}");
        });
        simulation.set(20 * MINUTE, &edge("second"));
    });
    assert_eq!(simulated.reports, [(0, Reason::Applied), (600, Reason::Invalid), (1200, Reason::Applied)]);
}

#[test]
fn the_pauses_after_panics_grow_and_end_with_the_panics() {
    let simulated = simulate("2030-01-10T12:00:00Z", PANICS, 5 * MINUTE, |simulation| {
        // No event ends a pause.
        simulation.act(100 * Duration::from_secs(1), SourceHandle::request_sync);
        simulation.set(200 * Duration::from_secs(1), &edge("first"));
    });
    assert_eq!(simulated.reads, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 273]);
    assert_eq!(simulated.reports, [(0, Reason::Panicked), (243, Reason::Applied)]);
}

#[test]
fn an_event_triggers_a_sync_and_the_interval_begins_anew() {
    let second = Duration::from_secs(1);
    let simulated = simulate("2030-01-10T12:00:00Z", &edge("first"), 2 * MINUTE, |simulation| {
        simulation.act(10 * second, SourceHandle::request_sync);
        for after in (80..=110).step_by(10) {
            simulation.act(after * second, SourceHandle::request_sync);
        }
    });
    assert_eq!(simulated.reads, [0, 10, 40, 70, 80, 90, 100, 110]);
}

//! The loop that follows a source: it keeps the store in sync with manifests that change at any time.
//!
//! # The problem
//!
//! Editors, deployments and Git change manifests, clients change the store, and any of that can happen while the loop works.
//! Events tell of some of it, late, more than once, or not at all. A loop that applied each event would apply half of a
//! file, and would never notice what it missed.
//!
//! # The idea
//!
//! An event only says that something may have changed, and triggers a *sync*: one pass that reads the manifests, compares
//! all of them with the store, and applies the difference. A sync needs nothing that an earlier one left, so it can be
//! repeated, postponed or cut short at any time, and the next one makes up for it. A timer triggers one at each interval,
//! which finds changes that caused no event.
//!
//! # What happens to a saved file
//!
//! 1. **Trigger.** [`Folders`] notes the event in [`OpenWrites`] and sends a [`Signal`]. [`Schedule`] waits until events pause
//!    for the debounce. Before each sync, a remote repository is fetched if its
//!    [`FetchSchedule`](super::sources::fetch_schedule::FetchSchedule) says so.
//! 2. **Writes are quiet.** [`WriteQuiescence`] knows the files that are incomplete. The sync waits for them, and is
//!    tried again (D92). The next step is followed by another check, because only manifests tell which values they take.
//! 3. **Read.** All files to [`Prepared`], whatever triggered the sync (D74). If nothing has changed since the last sync
//!    ([`Freshness`]), or since a run of an earlier process
//!    ([`plan_cache`](super::run::plan_cache), D73), the sync ends here.
//! 4. **Plan.** [`Prepared`] and a Snapshot to [`PlanResult`](super::PlanResult).
//! 5. **Decide.** Errors, a rollback, the deletion limit, a suspension and drift, in this order: what of the plan may be
//!    applied, or why nothing is (`PlannedRun::decide`). The plan and the decision are repeated if others commit meanwhile.
//! 6. **Apply.** One commit, or none if there is nothing to do. Inside it, a suspension has the last word.
//! 7. **Report.** A [`RunReport`] to the status, the health and the history of the source, and to the caller of the loop if
//!    it is new (`record`).
//!
//! `sync` has all of a sync, and [`run`](super::run) the steps from the plan on.
//!
//! # What it never does
//!
//! - It applies no part of a reading: an incomplete file, or one invalid file of a source that is not isolated, keeps the last
//!   good state in service.
//! - It does not end by itself: an error is a result, and after a panic it goes on with a pause.
//! - It applies nothing beside another loop of its source, after it was asked to stop, or once its source is suspended.

mod applied_commits;
pub(crate) mod attempt_notes;
pub(crate) mod clock;
pub(crate) mod condition;
pub(crate) mod drift_policy;
mod freshness;
pub(crate) mod health;
pub(crate) mod known_condition;
pub(crate) mod open_writes;
pub(crate) mod plan_drift;
pub(crate) mod put_back;
mod report_dedup;
mod resource_fight;
pub(crate) mod schedule;
pub(crate) mod status;
pub(crate) mod suspension;
pub(crate) mod sync_log;
mod write_quiescence;

mod record;
mod sync;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use tokio::sync::oneshot;

use super::run::apply::measure;
use super::run::options::Options;
use super::run::report::RunReport;
use super::run::stages::Prepared;
use super::sources::folders::Folders;
use super::sources::handle::{FollowedSource, INTERVAL, LoopGuard, SourceHandle};
use super::sources::location::SourceLocation;
use crate::background::lower_priority;
use crate::manifest::tree::Recorder;
use crate::reconcile::prelude::*;
use clock::Clock;
use freshness::Freshness;
use open_writes::OpenWrites;
use resource_fight::Repairs;
use schedule::{Schedule, Signal};
use suspension::SourceRecords;
use write_quiescence::WriteQuiescence;

/// The pause after a panic, which grows with each one, so that repeated panics do not overload the machine.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Reconciles the manifests and watches their paths in a separate thread. `report` is called after each run with a new
/// result, with the author of the run.
pub fn follow(
    store: Arc<Store>,
    options: Options,
    paths: &[PathBuf],
    report: impl FnMut(RunReport, &Author) + Send + 'static,
) -> notify::Result<LoopGuard> {
    let unreadable = |error: Diagnostic| notify::Error::generic(&error.message);
    let records = Arc::new(SourceRecords::open(Arc::clone(&store)).map_err(unreadable)?);
    let location = SourceLocation { paths: paths.to_vec(), ..SourceLocation::default() };
    let (watched, interval) = (paths.to_vec(), INTERVAL);
    let source = FollowedSource { options, watched, interval, location, ..FollowedSource::default() };
    WatchedSource::new(source).start(store, records, None, report)
}

/// A source to watch, whose loop has not started.
pub(crate) struct WatchedSource {
    source: FollowedSource,
    folders: Folders,
    writes: Arc<OpenWrites>,
    signals: Sender<Signal>,
    received: Receiver<Signal>,
}

impl WatchedSource {
    /// Prepares to follow a source. Its watch starts with the first sync, before anything is read: no change is lost, and a
    /// folder that takes long to watch holds up nothing but its source.
    pub(crate) fn new(source: FollowedSource) -> Self {
        let (signals, received) = channel();
        let (events, writes) = (signals.clone(), Arc::new(OpenWrites::default()));
        let folders = Folders::new(&source.watched, Arc::clone(&writes), move || {
            let _ = events.send(Signal::Sync);
        });
        Self { source, folders, writes, signals, received }
    }

    /// Starts the loop like [`follow`], and takes over from the loop `before` of the same source, which the caller
    /// stops: only one of them runs at a time.
    pub(crate) fn start(
        self,
        store: Arc<Store>,
        records: Arc<SourceRecords>,
        before: Option<&SourceHandle>,
        report: impl FnMut(RunReport, &Author) + Send + 'static,
    ) -> notify::Result<LoopGuard> {
        let (mut watch, received) = self.into_loop(store, records, before, Clock::default(), report);
        let handle = Arc::clone(&watch.handle);
        let (synced, first) = oneshot::channel();
        let thread = std::thread::Builder::new().name("reconcile".into()).spawn(move || {
            lower_priority();
            watch.run(&received, synced);
        });
        Ok(LoopGuard::new(handle, first, thread.map_err(notify::Error::io)?))
    }

    /// The loop, which does nothing yet, and the other end of its signals.
    pub(super) fn into_loop<F: FnMut(RunReport, &Author)>(
        self,
        store: Arc<Store>,
        records: Arc<SourceRecords>,
        before: Option<&SourceHandle>,
        clock: Clock,
        report: F,
    ) -> (Loop<F>, Receiver<Signal>) {
        let Self { source, folders, writes, signals, received } = self;
        let handle = Arc::new(SourceHandle::new(&source, records, signals, before, clock.clone()));
        let mut options = source.options;
        let recorder = Arc::new(Recorder::new(Arc::clone(&options.tree)));
        options.tree = Arc::clone(&recorder) as Arc<dyn Tree>;
        let quiescence = WriteQuiescence::new(&options.source, writes);
        let new = Loop {
            store,
            options,
            recorder,
            folders,
            report,
            reported: None,
            freshness: None,
            prepared: None,
            repairs: Repairs::default(),
            handle,
            quiescence,
            searched: None,
            clock,
        };
        (new, received)
    }
}

/// The loop and its state between runs.
pub(super) struct Loop<F> {
    store: Arc<Store>,
    options: Options,
    recorder: Arc<Recorder>,
    folders: Folders,
    report: F,
    /// The digest of the last report. A persistent error is reported once, not with every run.
    reported: Option<blake3::Hash>,
    freshness: Option<Freshness>,
    /// The files that the last sync read.
    prepared: Option<Prepared>,
    /// The fields that were reverted recently.
    repairs: Repairs,
    pub(super) handle: Arc<SourceHandle>,
    /// The files that are still being written.
    quiescence: WriteQuiescence,
    /// The revision at which the history was searched for the manifests that are in effect.
    searched: Option<u64>,
    clock: Clock,
}

/// How a turn of the loop ended.
#[derive(Clone, Copy)]
enum TurnEnd {
    /// The source was synced, with any result.
    Synced,
    /// A file is still being written: wait for this time.
    Waits(Duration),
    /// The sync panicked: rest for this time.
    Rests(Duration),
}

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    /// Syncs again and again until it is asked to stop. `synced` gets a message after the first sync.
    pub(super) fn run(&mut self, received: &Receiver<Signal>, synced: oneshot::Sender<()>) {
        let _end = EndNotice(Arc::clone(&self.handle));
        let (mut synced, mut end) = (Some(synced), TurnEnd::Synced);
        loop {
            self.handle.status.begin_sync();
            self.fetch();
            end = self.turn(end);
            // A sync that waits for a file has not finished.
            if !matches!(end, TurnEnd::Waits(_)) {
                self.handle.status.end_sync();
                if let Some(synced) = synced.take() {
                    let _ = synced.send(());
                }
            }
            if self.handle.is_stopping() || !self.wait(received, end) {
                return;
            }
        }
    }

    /// Waits until the next sync: for an event, for its time, or until the paths lead elsewhere. Returns false if the loop
    /// should stop.
    fn wait(&self, received: &Receiver<Signal>, end: TurnEnd) -> bool {
        let (now, idle_wait) = (self.clock.now(), self.idle_wait());
        let mut schedule = match end {
            TurnEnd::Synced => Schedule::within(now, idle_wait),
            TurnEnd::Waits(time) => Schedule::within(now, time.min(idle_wait)),
            TurnEnd::Rests(time) => Schedule::rest(now, time),
        };
        loop {
            let Some(time) = schedule.left(self.clock.now()) else { return true };
            match self.clock.wait(received, time) {
                Ok(Signal::Sync) => schedule.event(self.clock.now()),
                Err(RecvTimeoutError::Timeout) if schedule.is_idle() && self.folders.have_moved() => return true,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// How long the loop may wait without an event: the end of a rest is not noticed later than it is due.
    fn idle_wait(&self) -> Duration {
        let longest = self.handle.idle_wait();
        self.repairs.rests(self.clock.now()).map_or(longest, |rest| rest.min(longest))
    }

    /// Fetches a remote repository if that is due, before the sync: a suspension must not wait for a slow server.
    fn fetch(&mut self) {
        let handle = Arc::clone(&self.handle);
        let Some(fetches) = &handle.settings.fetches else { return };
        let has_turned = fetches.fetch_if_due(&mut || {
            handle.health.beat();
            !handle.is_stopping()
        });
        if has_turned {
            // The status has changed, even if the manifests have not.
            self.freshness = None;
        }
    }

    /// Syncs once and catches a panic. `last` is how the turn before this one ended.
    fn turn(&mut self, last: TurnEnd) -> TurnEnd {
        let handle = Arc::clone(&self.handle);
        let _running = handle.running();
        self.handle.health.begin();
        let began = Instant::now();
        // A panic loses at most this loop's state: the store changes only by atomic commits.
        let end = match catch_unwind(AssertUnwindSafe(|| self.sync())) {
            Ok(end) => end,
            Err(_) => TurnEnd::Rests(self.rest(last, began)),
        };
        handle.status.notice(&self.quiescence.notices());
        let time = match end {
            TurnEnd::Synced => self.idle_wait(),
            TurnEnd::Waits(time) | TurnEnd::Rests(time) => time,
        };
        handle.status.waits(self.clock.time(), time);
        self.handle.health.end();
        end
    }

    /// Reports that a sync panicked. Returns how long to rest: longer if the turn before it panicked, too.
    fn rest(&mut self, last: TurnEnd, began: Instant) -> Duration {
        let rest = match last {
            TurnEnd::Rests(rest) => (rest * 2).min(LONGEST_REST),
            TurnEnd::Synced | TurnEnd::Waits(_) => FIRST_REST,
        };
        self.freshness = None;
        measure("panicked", began);
        tracing::error!(source = self.handle.source, rest_seconds = rest.as_secs(), "the reconcile loop panicked");
        let fault = Diagnostic::error(Code::Internal, "internal error in edgewright: the sync panicked");
        let found = vec![fault.help("report it with the panic message in the log; the loop continues")];
        // The manifests or the report may have panicked.
        let _ = catch_unwind(AssertUnwindSafe(|| self.fail(found)));
        rest
    }
}

/// Records that the thread of the loop has ended, even by a panic.
struct EndNotice(Arc<SourceHandle>);

impl Drop for EndNotice {
    fn drop(&mut self) {
        self.0.health.record_end();
    }
}

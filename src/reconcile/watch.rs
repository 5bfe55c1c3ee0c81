//! The loop that reconciles a store with a source: an event only triggers a run, and a timer covers lost events.

mod look;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    Options, Prepared,
    clock::Clock,
    drift::DriftPolicy,
    fight::Repairs,
    folders::Folders,
    following::{FollowedSource, Following, Handle, INTERVAL, Signal, SourceLocation},
    measure,
    run::RunReport,
    schedule::{NextStep, Schedule},
    settled::Settled,
    stillness::Stillness,
    suspension::Suspensions,
    writes::Writes,
};
use crate::{
    background::lower_priority,
    manifest::tree::{ReadingDepth, Recorder, Tree},
    model::{code::Code, diagnostic::Diagnostic, operation::Author},
    store::Store,
};

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
) -> notify::Result<Handle> {
    let unreadable = |error: Diagnostic| notify::Error::generic(&error.message);
    let suspensions = Arc::new(Suspensions::open(Arc::clone(&store)).map_err(unreadable)?);
    let location = SourceLocation { paths: paths.to_vec(), ..SourceLocation::default() };
    let watched = paths.to_vec();
    let source = FollowedSource {
        options,
        watched,
        interval: INTERVAL,
        location,
        is_suspended: false,
        drift: DriftPolicy::Enforce,
        fetching: None,
        lineage: None,
        values: Arc::default(),
        observer: None,
    };
    WatchedSource::new(source)?.start(store, suspensions, None, report)
}

/// A source whose files are watched, and whose loop has not started.
pub(crate) struct WatchedSource {
    source: FollowedSource,
    folders: Folders,
    writes: Arc<Writes>,
    depth: ReadingDepth,
    signals: Sender<Signal>,
    received: Receiver<Signal>,
}

impl WatchedSource {
    /// Watches the files of a source. The watch starts first, so that no change is lost before the first run.
    pub(crate) fn new(source: FollowedSource) -> notify::Result<Self> {
        let (signals, received) = channel();
        let (events, writes, depth) = (signals.clone(), Arc::new(Writes::default()), ReadingDepth::default());
        let reading = depth.clone();
        let folders = Folders::watch(&source.watched, Arc::clone(&writes), move || {
            reading.hurry();
            let _ = events.send(Signal::Look);
        })?;
        Ok(Self { source, folders, writes, depth, signals, received })
    }

    /// Starts the loop like [`follow`]. It takes over from the loop `before` of the same source, which the caller stops:
    /// only one of them runs at a time.
    pub(crate) fn start(
        self,
        store: Arc<Store>,
        suspensions: Arc<Suspensions>,
        before: Option<&Following>,
        report: impl FnMut(RunReport, &Author) + Send + 'static,
    ) -> notify::Result<Handle> {
        let (mut watch, received) = self.into_loop(store, suspensions, before, Clock::default(), report);
        let following = watch.following();
        let (looked, first) = oneshot::channel();
        let thread = std::thread::Builder::new().name("reconcile".into()).spawn(move || {
            lower_priority();
            watch.run(&received, looked);
        });
        Ok(Handle::new(following, first, thread.map_err(notify::Error::io)?))
    }

    /// The loop, which does nothing yet, and the other end of its signals.
    pub(super) fn into_loop<F: FnMut(RunReport, &Author)>(
        self,
        store: Arc<Store>,
        suspensions: Arc<Suspensions>,
        before: Option<&Following>,
        clock: Clock,
        report: F,
    ) -> (Loop<F>, Receiver<Signal>) {
        let Self { source, folders, writes, depth, signals, received } = self;
        let following = Arc::new(Following::new(&source, suspensions, signals, before, clock.clone()));
        let mut options = source.options;
        let recorder = Arc::new(Recorder::again(Arc::clone(&options.tree), depth.clone()));
        options.tree = Arc::clone(&recorder) as Arc<dyn Tree>;
        let stillness = Stillness::new(&options.source, writes);
        let new = Loop {
            store,
            options,
            recorder,
            folders,
            report,
            reported: None,
            settled: None,
            prepared: None,
            repairs: Repairs::default(),
            following,
            stillness,
            searched: None,
            depth,
            reading: None,
            read_in_full: None,
            reason: LookReason::Time,
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
    settled: Option<Settled>,
    /// What the last run read.
    prepared: Option<Prepared>,
    /// What was put back lately.
    repairs: Repairs,
    following: Arc<Following>,
    /// The files that are still being written.
    stillness: Stillness,
    /// The revision at which the history was searched for the manifests that are in effect.
    searched: Option<u64>,
    /// How much of the files the look reads.
    depth: ReadingDepth,
    /// When the last reading began.
    reading: Option<Instant>,
    /// When a look last read all files.
    read_in_full: Option<Instant>,
    /// Why the loop looks now.
    reason: LookReason,
    clock: Clock,
}

/// Why the loop looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookReason {
    /// There was an event, or it waited for a file.
    Event,
    /// It is time, or the paths lead elsewhere. An event may be missing.
    Time,
}

/// How a turn of the loop ended.
enum TurnEnd {
    /// It looked at the source.
    Looked,
    /// It waits so long for a file that is still being written.
    Waits(Duration),
    /// It panicked, and rests so long.
    Rests(Duration),
}

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    /// The status of the loop, and a way to control it.
    pub(super) fn following(&self) -> Arc<Following> {
        Arc::clone(&self.following)
    }

    /// Looks again and again until it is asked to stop. `looked` is told when the first look is over.
    pub(super) fn run(&mut self, received: &Receiver<Signal>, looked: oneshot::Sender<()>) {
        let _gone = Gone(Arc::clone(&self.following));
        let (mut looked, mut rested) = (Some(looked), None);
        loop {
            self.fetch();
            let end = self.turn(rested);
            rested = match end {
                TurnEnd::Rests(rest) => Some(rest),
                TurnEnd::Looked | TurnEnd::Waits(_) => None,
            };
            // What waits for a file has not looked at the source.
            if !matches!(end, TurnEnd::Waits(_))
                && let Some(looked) = looked.take()
            {
                let _ = looked.send(());
            }
            if self.following.is_stopping() {
                return;
            }
            let Some(reason) = self.wait(received, &end) else { return };
            self.reason = reason;
        }
    }

    /// Waits for the next look, and returns its reason. Returns none if the loop should stop.
    fn wait(&self, received: &Receiver<Signal>, end: &TurnEnd) -> Option<LookReason> {
        let (now, patience) = (self.clock.now(), self.patience());
        let mut schedule = match *end {
            TurnEnd::Looked => Schedule::within(now, patience),
            TurnEnd::Waits(time) => Schedule::within(now, time.min(patience)),
            TurnEnd::Rests(time) => Schedule::rest(now, time),
        };
        loop {
            let NextStep::Wait(time) = schedule.next(self.clock.now()) else {
                let is_timely = matches!(end, TurnEnd::Looked) && schedule.is_idle();
                return Some(if is_timely { LookReason::Time } else { LookReason::Event });
            };
            match self.clock.wait(received, time) {
                Ok(Signal::Look) => schedule.event(self.clock.now()),
                Err(RecvTimeoutError::Timeout) if schedule.is_idle() && self.folders.have_moved() => {
                    return Some(LookReason::Time);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Begins to read the files. Those that seem not to have changed are read when it is time to look and until something
    /// is saved, and if no look has read all of them for long: a file system may not show every change (D74).
    fn begin_reading(&mut self) {
        let now = self.clock.now();
        if self.depth.is_full() {
            self.read_in_full = self.reading;
        }
        self.reading = Some(now);
        let longest = 2 * self.following.interval;
        let is_overdue = |last: Instant| now.saturating_duration_since(last) >= longest;
        if self.read_in_full.is_none_or(is_overdue) {
            self.depth.read_all();
        } else if self.reason == LookReason::Time {
            self.depth.read_all_until_saved();
        } else {
            self.depth.read_changed();
        }
        self.stillness.begin();
        self.recorder.begin_look();
    }

    /// Fetches a remote repository if that is due, before the run: a suspension must not wait for a slow server.
    fn fetch(&mut self) {
        let following = Arc::clone(&self.following);
        let Some(fetching) = &following.fetching else { return };
        let has_turned = fetching.fetch_if_due(&mut || {
            following.health.beat();
            !following.is_stopping()
        });
        if has_turned {
            // The status has changed, even if the manifests have not.
            self.settled = None;
        }
    }

    /// Runs once and catches a panic. `rested` is the pause after the last one.
    fn turn(&mut self, rested: Option<Duration>) -> TurnEnd {
        let following = Arc::clone(&self.following);
        let _running = following.running();
        self.following.health.begin();
        let began = Instant::now();
        // A panic loses at most this loop's state: the store changes only by atomic commits.
        let end = match catch_unwind(AssertUnwindSafe(|| self.look())) {
            Ok(None) => TurnEnd::Looked,
            Ok(Some(time)) => TurnEnd::Waits(time),
            Err(_) => TurnEnd::Rests(rested.map_or(FIRST_REST, |rest| (rest * 2).min(LONGEST_REST))),
        };
        if let TurnEnd::Rests(rest) = end {
            self.settled = None;
            measure("panicked", began);
            tracing::error!(source = following.source, rest_seconds = rest.as_secs(), "the reconcile loop panicked");
            let fault = Diagnostic::error(Code::Internal, "internal error in edgewright: the run panicked");
            let found = vec![fault.help("report it with the panic message in the log; the loop continues")];
            // The manifests or the report may have panicked.
            let _ = catch_unwind(AssertUnwindSafe(|| self.fail(found)));
        }
        following.status.notice(&self.stillness.notices());
        let time = match end {
            TurnEnd::Looked => self.patience(),
            TurnEnd::Waits(time) | TurnEnd::Rests(time) => time,
        };
        following.status.waits(self.clock.time(), time);
        self.following.health.end();
        end
    }
}

/// Records that the thread of the loop has ended, even by a panic.
struct Gone(Arc<Following>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.health.gone();
    }
}

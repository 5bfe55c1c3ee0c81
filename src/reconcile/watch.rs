//! The loop that reconciles a store with a source: an event only triggers a run, and a timer covers lost events.

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
    Options, Planned, Prepared,
    clock::Clock,
    drift::DriftPolicy,
    fight::{Fight, Repairs, put_back},
    folders::Folders,
    following::{FollowedSource, Following, Handle, INTERVAL, Signal, SourceLocation},
    health::{Reason, Status},
    measure,
    remembered::{recall, remember},
    run::{OnDrift, RunReport, RunResult, digest, run_once, run_suspended},
    schedule::{NextStep, Schedule},
    settled::Settled,
    spans::SyncSpan,
    status::{LookRecord, RunFindings},
    stillness::{ReadingCheck, Stillness},
    suspension::{Suspension, Suspensions},
    writes::Writes,
};
use crate::{
    manifest::tree::{Recorder, Tree, changed_while_read},
    model::{code::Code, diagnostic::Diagnostic, operation::Author},
    store::{Attempt, Store, background::lower_priority, history::Outcome as AttemptOutcome},
};

/// The resources that loops have put back.
pub(crate) const REPAIRS: &str = "edgewright_drift_repairs_total";
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
    };
    WatchedSource::new(source)?.start(store, suspensions, None, report)
}

/// A source whose files are watched, and whose loop has not started.
pub(crate) struct WatchedSource {
    source: FollowedSource,
    folders: Folders,
    writes: Arc<Writes>,
    signals: Sender<Signal>,
    received: Receiver<Signal>,
}

impl WatchedSource {
    /// Watches the files of a source. The watch starts first, so that no change is lost before the first run.
    pub(crate) fn new(source: FollowedSource) -> notify::Result<Self> {
        let (signals, received) = channel();
        let (events, writes) = (signals.clone(), Arc::new(Writes::default()));
        let folders = Folders::watch(&source.watched, Arc::clone(&writes), move || {
            let _ = events.send(Signal::Look);
        })?;
        Ok(Self { source, folders, writes, signals, received })
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
        let Self { source, folders, writes, signals, received } = self;
        let following = Arc::new(Following::new(&source, suspensions, signals, before, clock.clone()));
        // A counter that appears with its first event hides that event from `increase()`.
        metrics::counter!(REPAIRS, "source" => following.source.clone()).increment(0);
        let mut options = source.options;
        let recorder = Arc::new(Recorder::new(Arc::clone(&options.tree)));
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
            suspension: None,
            repairs: Repairs::default(),
            following,
            stillness,
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
    /// The suspension at the last look.
    suspension: Option<Suspension>,
    /// What was put back lately.
    repairs: Repairs,
    following: Arc<Following>,
    /// The files that are still being written.
    stillness: Stillness,
    clock: Clock,
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
            if self.following.is_stopping() || !self.wait(received, &end) {
                return;
            }
        }
    }

    /// Waits for the next look. Returns false if the loop should stop.
    fn wait(&self, received: &Receiver<Signal>, end: &TurnEnd) -> bool {
        let (now, patience) = (self.clock.now(), self.patience());
        let mut schedule = match *end {
            TurnEnd::Looked => Schedule::within(now, patience),
            TurnEnd::Waits(time) => Schedule::within(now, time.min(patience)),
            TurnEnd::Rests(time) => Schedule::rest(now, time),
        };
        loop {
            let NextStep::Wait(time) = schedule.next(self.clock.now()) else { return true };
            match self.clock.wait(received, time) {
                Ok(Signal::Look) => schedule.event(self.clock.now()),
                Err(RecvTimeoutError::Timeout) if schedule.is_idle() && self.folders.have_moved() => return true,
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
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

    /// Looks at the source, and applies it. Returns how long to wait if a file is still being written.
    fn look(&mut self) -> Option<Duration> {
        self.folders.refresh(&self.options.source);
        let is_suspended = self.check_suspension();
        if let Some(left) = self.stillness.left(self.clock.moment()) {
            return Some(left);
        }
        let began = Instant::now();
        if self.settled.as_ref().is_some_and(|it| it.holds(self.store.as_ref(), &self.clock))
            && self.recorder.unchanged()
        {
            measure("in_sync", began);
            self.following.health.unchanged();
            // The commit may be another one that changes no manifest.
            let (commit, revision) = (self.options.tree.commit(), self.store.snapshot().revision);
            self.following.status.confirm(self.look_record(commit, revision), self.following.fetch_failure().is_none());
            return None;
        }
        if self.reported.is_none()
            && let Some(run) = self.recalled()
        {
            measure("in_sync", began);
            if let RunReport::InSync { revision, .. } = run.report {
                self.settled = Some(Settled::at(revision, &self.clock));
            }
            self.tell(run);
            return None;
        }
        let span = SyncSpan::start(&self.options.source);
        let prepared = Prepared::load_again(self.options.clone(), self.prepared.take()).on(self.clock.clone());
        if self.following.is_stopping() {
            // What was read may be a part.
            span.set_result("cancelled");
            self.leave(prepared);
            return None;
        }
        match self.stillness.check(self.recorder.files_read(), self.clock.moment()) {
            ReadingCheck::Complete => {}
            ReadingCheck::Wait(time) => {
                span.set_result("waiting");
                self.leave(prepared);
                return Some(time);
            }
            ReadingCheck::Torn(path) => {
                span.set_result("failed");
                self.leave(prepared);
                self.fail(vec![changed_while_read(&path)]);
                return None;
            }
        }
        let on_drift = self.on_drift();
        let mut settled = None;
        let remember = |planned: &Planned, revision: u64| {
            settled = planned.settles().then(|| Settled::of(planned, revision, &self.options, &self.clock));
            if let Some(on_disk) = self.store.on_disk(revision) {
                remember(&on_disk, &self.options, &self.recorder, planned, revision);
            }
        };
        let run = match is_suspended {
            true => run_suspended(self.store.as_ref(), &prepared, remember),
            false => run_once(self.store.as_ref(), &prepared, on_drift, remember),
        };
        span.end(&run, self.store.snapshot().revision);
        self.prepared = Some(prepared);
        self.note_repairs(&run.report);
        // A cancelled run has no result.
        if self.following.is_stopping() && matches!(run.report, RunReport::Invalid(_)) {
            return None;
        }
        self.settled = settled;
        self.tell(run);
        None
    }

    /// Keeps a reading that is not applied. The next look must not take the files for unchanged.
    fn leave(&mut self, prepared: Prepared) {
        self.settled = None;
        self.prepared = Some(prepared);
    }

    /// Reports that a run has failed before its plan.
    fn fail(&mut self, found: Vec<Diagnostic>) {
        let findings = RunFindings::default().failed(&found);
        self.tell(RunResult { report: RunReport::Failed(found), findings, author: self.options.author() });
    }

    /// What the next run does with drift.
    fn on_drift(&self) -> OnDrift {
        match self.following.drift {
            DriftPolicy::Warn => OnDrift::Report,
            DriftPolicy::Off => OnDrift::Count,
            DriftPolicy::Enforce if self.repairs.rests(self.clock.now()).is_some() => OnDrift::Rest,
            DriftPolicy::Enforce => OnDrift::PutBack,
        }
    }

    /// How long the loop may wait without an event: the end of a rest is not noticed later than it is due.
    fn patience(&self) -> Duration {
        let patience = self.following.patience();
        self.repairs.rests(self.clock.now()).map_or(patience, |rest| rest.min(patience))
    }

    /// Counts what a run has put back, and logs a fight.
    fn note_repairs(&mut self, report: &RunReport) {
        let RunReport::Applied { plan, .. } = report else { return };
        let put_back: Vec<_> = put_back(plan).collect();
        if put_back.is_empty() {
            return;
        }
        let source = self.options.source.as_str();
        metrics::counter!(REPAIRS, "source" => source.to_owned()).increment(plan.summary().drift as u64);
        if let Some(Fight { key, field, rest }) = self.repairs.note(put_back.into_iter(), self.clock.now()) {
            tracing::warn!(
                source,
                kind = %key.kind,
                id = %key.id,
                field,
                rest_seconds = rest.as_secs(),
                "fight: others keep changing what is put back; drift of the source is left as is meanwhile"
            );
        }
    }

    /// Whether the source is suspended; logs when that has changed.
    fn check_suspension(&mut self) -> bool {
        self.following.end_suspension();
        let now = self.following.suspension();
        let source = self.options.source.as_str();
        match (&self.suspension, &now) {
            (before, Some(suspension)) if before.as_ref() != Some(suspension) => {
                let Suspension { reason, by, since, until } = suspension;
                let until = until.map_or_else(|| "it is resumed".to_owned(), |until| until.to_string());
                tracing::warn!(source, by, %since, until, reason, "the source is suspended: changes are not applied");
            }
            (Some(_), None) => tracing::info!(source, "the source is no longer suspended"),
            _ => {}
        }
        self.suspension = now;
        self.suspension.is_some()
    }

    /// The result of a run that was remembered by an earlier process and still holds.
    fn recalled(&self) -> Option<RunResult> {
        let revision = self.store.snapshot().revision;
        let recalled = recall(&self.store.on_disk(revision)?, &self.options, &self.recorder)?;
        if recalled.revision != revision {
            return None;
        }
        let report = RunReport::InSync { unchanged: recalled.unchanged, revision };
        Some(RunResult { report, findings: RunFindings::recalled(&recalled), author: self.options.author() })
    }

    /// Records the result of a run, and reports it if it is new.
    fn tell(&mut self, run: RunResult) {
        let commit = run.commit();
        let RunResult { report: outcome, mut findings, author } = run;
        let snapshot = self.store.snapshot();
        let (mut reason, mut message) = outcome.condition();
        if let Some(failure) = self.following.fetch_failure()
            && reason != Reason::FetchFailed
        {
            findings = findings.after(std::slice::from_ref(&failure));
            // The store matches an old commit. Errors in it are more urgent.
            if matches!(reason, Reason::Applied | Reason::InSync) {
                (reason, message) = (Reason::FetchFailed, failure.message);
            }
        }
        let health = &self.following.health;
        health.result(reason, message, snapshot.revision);
        let is_synced = health.condition().status == Status::Synced;
        let now = digest(&outcome, commit.as_deref());
        let look = self.look_record(commit, snapshot.revision);
        self.following.status.record(look, findings, is_synced);
        if !health.is_applied() {
            let source = self.options.source.as_str();
            let owned = snapshot.iter().any(|it| it.claim.as_ref().is_some_and(|claim| claim.source == source));
            if owned {
                health.has_resources();
            }
        }
        if self.reported != Some(now) {
            // Set first: if `report` panics, it must not panic again in every run.
            self.reported = Some(now);
            self.note(&outcome, &author);
            (self.report)(outcome, &author);
        }
    }
}

impl<F> Loop<F> {
    fn look_record(&self, commit: Option<String>, revision: u64) -> LookRecord {
        LookRecord { at: self.clock.time(), commit, revision }
    }

    /// Records an attempt that changed nothing in the history; a persistent error is one attempt (D58).
    fn note(&self, report: &RunReport, author: &Author) {
        let outcome = match report {
            RunReport::Invalid(_) => AttemptOutcome::Refused,
            RunReport::Failed(_) if report.condition().0 == Reason::Refused => AttemptOutcome::Refused,
            RunReport::Failed(_) => AttemptOutcome::Failed,
            RunReport::Applied { .. }
            | RunReport::InSync { .. }
            | RunReport::Partly(_)
            | RunReport::Suspended(_)
            | RunReport::Drifted { .. }
            | RunReport::RolledBack { .. } => return,
        };
        if let Err(error) = self.store.note(Attempt::new(author.clone()), outcome, report.condition().1) {
            let source = self.options.source.as_str();
            tracing::warn!(source, code = %error.code, "cannot record the attempt in the history: {error}");
        }
    }
}

/// Records that the thread of the loop has ended, even by a panic.
struct Gone(Arc<Following>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.health.gone();
    }
}

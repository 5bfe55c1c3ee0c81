//! The loop that reconciles a store with a folder: an event only triggers a run, and a timer covers lost events.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    ApplyError, Options, Planned, Prepared, apply_current,
    cancel::Cancel,
    folders::Folders,
    health::{Health, Reason},
    measure,
    remembered::{recall, remember},
    token::TokenFiles,
};
use crate::{
    manifest::tree::{Recorder, Tree},
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name, Severity},
        operation::Author,
        snapshot::Snapshot,
    },
    plan::Plan,
    store::{Attempt, Store, history::Outcome as AttemptOutcome},
};

/// The grace period for a run during shutdown.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

/// How long the folder must be quiet before a run.
const QUIET: Duration = Duration::from_millis(150);
/// The longest wait for a quiet folder.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(2);
/// How often the paths are resolved: swapping a link or folder far above causes no event.
const TICK: Duration = Duration::from_secs(1);
/// The interval of runs without events.
const FULL_LOOK: Duration = Duration::from_secs(30);
/// The interval of full runs, even without changes.
const LONGEST_SETTLED: Duration = Duration::from_secs(3600);
/// The pause after a panic, which grows with each one, so that repeated panics do not overload the machine.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A report of the loop.
#[derive(Debug)]
pub enum RunReport {
    /// A plan was applied.
    Applied {
        /// The plan.
        plan: Plan,
        /// The new revision of the store.
        revision: u64,
    },
    /// The store matches the folder.
    InSync {
        /// The number of resources of the source.
        unchanged: usize,
        /// The revision of the store.
        revision: u64,
    },
    /// The manifests have errors; the store keeps its last good state.
    Invalid(Planned),
    /// Some manifests have errors; the rest is applied (D44).
    Partly(Planned),
    /// The plan was refused or failed.
    Failed(Vec<Diagnostic>),
}

/// A request to the loop.
#[derive(Debug)]
enum Signal {
    Look,
    Stop,
}

/// The status of the loop, and a way to control it.
#[derive(Debug)]
pub struct Following {
    /// The reconciled source.
    pub source: String,
    /// The health of the loop.
    pub health: Health,
    signals: Sender<Signal>,
    cancel: Cancel,
    stopped: OnceLock<Instant>,
}

impl Following {
    /// Requests a run now.
    pub fn look(&self) {
        let _ = self.signals.send(Signal::Look);
    }

    /// Asks the loop to stop. A current run ends before its next step.
    pub fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
        self.cancel.cancel();
        let _ = self.signals.send(Signal::Stop);
    }
}

/// Stops the loop on drop. A run that does not end within the grace period is abandoned: its commit is atomic.
pub struct Handle {
    following: Arc<Following>,
    first: Option<oneshot::Receiver<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Handle {
    /// The status of the loop, and a way to control it.
    pub fn following(&self) -> Arc<Following> {
        Arc::clone(&self.following)
    }

    /// Completes after the first run.
    pub fn first_look(&mut self) -> impl Future<Output = ()> + use<> {
        let first = self.first.take();
        async move {
            if let Some(first) = first {
                let _ = first.await;
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.following.stop();
        let Some(thread) = self.thread.take() else { return };
        let since = *self.following.stopped.get_or_init(Instant::now);
        while !thread.is_finished() {
            if since.elapsed() > GRACE {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = thread.join();
    }
}

/// Reconciles once, like the `reconcile` command. `settled` is called if the store matches the manifests now, with its
/// revision.
fn run_once(store: &Store, prepared: &Prepared, author: &Author, settled: impl FnOnce(&Planned, u64)) -> RunReport {
    let began = Instant::now();
    let report = look(store, prepared, author, settled);
    let result = match report {
        RunReport::Applied { .. } => "applied",
        RunReport::InSync { .. } => "in_sync",
        RunReport::Invalid(_) => "invalid",
        RunReport::Partly(_) => "partly_applied",
        RunReport::Failed(_) => "failed",
    };
    measure(result, began);
    report
}

fn look(store: &Store, prepared: &Prepared, author: &Author, settled: impl FnOnce(&Planned, u64)) -> RunReport {
    /// Why a plan must not run.
    enum RunStop {
        Invalid(Box<Planned>),
        Refused(Vec<Diagnostic>),
        Failed(ApplyError),
    }
    impl From<ApplyError> for RunStop {
        fn from(error: ApplyError) -> Self {
            RunStop::Failed(error)
        }
    }
    let accept = |_: &Snapshot, planned: Planned| match &planned.plan {
        None => Err(RunStop::Invalid(Box::new(planned))),
        Some(plan) if !plan.refusals.is_empty() => Err(RunStop::Refused(plan.refusals.clone())),
        Some(_) => Ok(planned),
    };
    match apply_current(store, prepared, author.clone(), &mut TokenFiles::default(), accept) {
        Ok((planned, _)) if planned.has_errors() => RunReport::Partly(planned),
        Ok((planned, applied)) => {
            let plan = planned.plan.as_ref();
            let (unchanged, base) = plan.map(|plan| (plan.unchanged, plan.base)).unwrap_or_default();
            settled(&planned, applied.unwrap_or(base));
            match (planned.plan, applied) {
                (Some(plan), Some(revision)) => RunReport::Applied { plan, revision },
                _ => RunReport::InSync { unchanged, revision: base },
            }
        }
        Err(RunStop::Invalid(planned)) => RunReport::Invalid(*planned),
        Err(RunStop::Refused(refusals)) => RunReport::Failed(refusals),
        Err(RunStop::Failed(error)) => RunReport::Failed(vec![error.diagnostic()]),
    }
}

/// Reconciles the manifests and watches their paths in a separate thread. `report` is called after each run with a new
/// result, with the author of the run.
pub fn follow(
    store: Arc<Store>,
    mut options: Options,
    paths: &[PathBuf],
    report: impl FnMut(RunReport, &Author) + Send + 'static,
) -> notify::Result<Handle> {
    let (signals, received) = channel();
    // The watch starts first, so that no change is lost before the first run.
    let events = signals.clone();
    let folders = Folders::watch(paths, move || {
        let _ = events.send(Signal::Look);
    })?;
    let recorder = Arc::new(Recorder::new(Arc::clone(&options.tree)));
    options.tree = Arc::clone(&recorder) as Arc<dyn Tree>;
    let following = Arc::new(Following {
        source: options.source.clone(),
        health: Health::new(3 * FULL_LOOK),
        signals,
        cancel: options.cancel.clone(),
        stopped: OnceLock::new(),
    });
    let (looked, first) = oneshot::channel();
    let mut watch = Loop {
        store,
        options,
        recorder,
        folders,
        report,
        reported: None,
        settled: None,
        prepared: None,
        following: Arc::clone(&following),
    };
    let thread = std::thread::Builder::new().name("reconcile".into()).spawn(move || watch.run(&received, looked));
    Ok(Handle { following, first: Some(first), thread: Some(thread.map_err(notify::Error::io)?) })
}

/// The loop and its state between runs.
struct Loop<F> {
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
    following: Arc<Following>,
}

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    fn run(&mut self, received: &Receiver<Signal>, looked: oneshot::Sender<()>) {
        let _gone = Gone(Arc::clone(&self.following));
        let mut rest = self.turn(None);
        let _ = looked.send(());
        while !self.following.cancel.is_cancelled() {
            let goes_on = match rest {
                Some(rest) => pause(received, rest),
                None => wait(received, &self.folders),
            };
            if !goes_on {
                return;
            }
            rest = self.turn(rest);
        }
    }

    /// Runs once and catches a panic. Returns how long to pause after a panic.
    fn turn(&mut self, rested: Option<Duration>) -> Option<Duration> {
        self.following.health.begin();
        let began = Instant::now();
        // A panic loses at most this loop's state: the store changes only by atomic commits.
        let looked = catch_unwind(AssertUnwindSafe(|| self.look()));
        let rest = looked.is_err().then(|| rested.map_or(FIRST_REST, |rest| (rest * 2).min(LONGEST_REST)));
        if let Some(rest) = rest {
            self.settled = None;
            measure("panicked", began);
            tracing::error!(rest_seconds = rest.as_secs(), "the reconcile loop panicked");
            let fault = Diagnostic::error(Code::Internal, "internal error in edgewright: the run panicked");
            let report =
                RunReport::Failed(vec![fault.help("report it with the panic message in the log; the loop continues")]);
            // The report itself may have panicked.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let author = self.options.author();
                self.tell(report, &author);
            }));
        }
        self.following.health.end();
        rest
    }

    fn look(&mut self) {
        self.folders.refresh();
        let began = Instant::now();
        if self.settled.as_ref().is_some_and(|it| it.holds(self.store.as_ref())) && self.recorder.unchanged() {
            measure("in_sync", began);
            self.following.health.unchanged();
            return;
        }
        if self.reported.is_none()
            && let Some(report) = self.recalled()
        {
            measure("in_sync", began);
            if let RunReport::InSync { revision, .. } = report {
                self.settled = Some(Settled::at(revision));
            }
            let author = self.options.author();
            return self.tell(report, &author);
        }
        let mut settled = None;
        let remember = |planned: &Planned, revision: u64| {
            settled = planned.settles().then(|| Settled::at(revision));
            if let Some(on_disk) = self.store.on_disk(revision) {
                remember(&on_disk, &self.options, &self.recorder, planned, revision);
            }
        };
        let prepared = Prepared::load_again(self.options.clone(), self.prepared.take());
        let author = prepared.options.author();
        let outcome = run_once(self.store.as_ref(), &prepared, &author, remember);
        self.prepared = Some(prepared);
        // A cancelled run has no result.
        if self.following.cancel.is_cancelled() && matches!(outcome, RunReport::Invalid(_)) {
            return;
        }
        self.settled = settled;
        self.tell(outcome, &author);
    }

    /// The report of a run that was remembered by an earlier process and still holds.
    fn recalled(&self) -> Option<RunReport> {
        let revision = self.store.snapshot().revision;
        let recalled = recall(&self.store.on_disk(revision)?, &self.options, &self.recorder)?;
        (recalled.revision == revision).then_some(RunReport::InSync { unchanged: recalled.unchanged, revision })
    }

    /// Records the result of a run, and reports it if it is new.
    fn tell(&mut self, outcome: RunReport, author: &Author) {
        let snapshot = self.store.snapshot();
        let (reason, message) = outcome.condition();
        let health = &self.following.health;
        health.result(reason, message, snapshot.revision);
        if !health.is_applied() {
            let source = self.options.source.as_str();
            let owned = snapshot.iter().any(|it| it.claim.as_ref().is_some_and(|claim| claim.source == source));
            if owned {
                health.has_resources();
            }
        }
        let now = digest(&outcome);
        if self.reported != Some(now) {
            // Set first: if `report` panics, it must not panic again in every run.
            self.reported = Some(now);
            self.note(&outcome, author);
            (self.report)(outcome, author);
        }
    }
}

impl<F> Loop<F> {
    /// Records an attempt that changed nothing in the history; a persistent error is one attempt (D58).
    fn note(&self, report: &RunReport, author: &Author) {
        let outcome = match report {
            RunReport::Invalid(_) => AttemptOutcome::Refused,
            RunReport::Failed(_) => AttemptOutcome::Failed,
            RunReport::Applied { .. } | RunReport::InSync { .. } | RunReport::Partly(_) => return,
        };
        if let Err(error) = self.store.note(Attempt::new(author.clone()), outcome, report.condition().1) {
            tracing::warn!(code = %error.code, "cannot record the attempt in the history: {error}");
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

impl RunReport {
    /// The reason for the loop's condition (D33).
    fn condition(&self) -> (Reason, String) {
        let errors = |planned: &Planned| {
            let count = planned.diagnostics.iter().filter(|it| it.severity == Severity::Error).count();
            format!("{count} error{} in the manifests", if count == 1 { "" } else { "s" })
        };
        match self {
            RunReport::Applied { plan, .. } => (Reason::Applied, plan.summary().to_string()),
            RunReport::InSync { unchanged, .. } => (Reason::InSync, format!("{unchanged} unchanged")),
            RunReport::Invalid(planned) => (Reason::Invalid, errors(planned)),
            RunReport::Partly(planned) => (Reason::PartlyApplied, errors(planned)),
            RunReport::Failed(diagnostics) => {
                let message = diagnostics.first().map(|it| it.message.clone()).unwrap_or_default();
                let reason = match diagnostics.first().map(|it| it.code) {
                    Some(Name::Code(Code::PreventDestroy | Code::TooManyDeletions)) => Reason::Refused,
                    Some(Name::Code(Code::Internal)) => Reason::Panicked,
                    _ => Reason::Failed,
                };
                (reason, message)
            }
        }
    }
}

/// A record that the store matched the folder.
struct Settled {
    revision: u64,
    at: Instant,
}

impl Settled {
    fn at(revision: u64) -> Self {
        Self { revision, at: Instant::now() }
    }

    /// Whether the store is unchanged since. Expires, because lints depend on the time.
    fn holds(&self, store: &Store) -> bool {
        store.snapshot().revision == self.revision && self.at.elapsed() < LONGEST_SETTLED
    }
}

/// The digest of a report, hashed while writing because the text may be as large as the manifests.
fn digest(report: &RunReport) -> blake3::Hash {
    struct HashWriter(blake3::Hasher);
    impl fmt::Write for HashWriter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut writer = HashWriter(blake3::Hasher::new());
    let _ = match report {
        // Changes by others are not news about the manifests.
        RunReport::InSync { unchanged, .. } => fmt::Write::write_fmt(&mut writer, format_args!("in sync {unchanged}")),
        RunReport::Partly(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.len());
            let news = (&planned.diagnostics, planned.left_out_names(), changes);
            fmt::Write::write_fmt(&mut writer, format_args!("partly {news:?}"))
        }
        _ => fmt::Write::write_fmt(&mut writer, format_args!("{report:?}")),
    };
    writer.0.finalize()
}

/// Waits for a trigger and a quiet folder. Returns false if the loop should stop.
fn wait(received: &Receiver<Signal>, folders: &Folders) -> bool {
    let began = Instant::now();
    loop {
        match received.recv_timeout(TICK) {
            Ok(Signal::Look) => break,
            Err(RecvTimeoutError::Timeout) if folders.have_moved() || began.elapsed() >= FULL_LOOK => return true,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    let since = Instant::now();
    while since.elapsed() < LONGEST_DEBOUNCE {
        match received.recv_timeout(QUIET) {
            Ok(Signal::Look) => {}
            Err(RecvTimeoutError::Timeout) => break,
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

/// Pauses and ignores events. Returns false if the loop should stop.
fn pause(received: &Receiver<Signal>, time: Duration) -> bool {
    let since = Instant::now();
    while let Some(left) = time.checked_sub(since.elapsed()) {
        match received.recv_timeout(left) {
            Ok(Signal::Look) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Ok(Signal::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
    true
}

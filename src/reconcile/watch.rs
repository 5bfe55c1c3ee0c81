//! The loop that reconciles a store with a source: an event only triggers a run, and a timer covers lost events.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{
    Options, Planned, Prepared,
    folders::Folders,
    following::{FollowedSource, Following, Handle, INTERVAL, Signal, SourceLocation},
    health::{Reason, Status},
    measure,
    remembered::{recall, remember},
    run::{RunReport, RunResult, digest, run_once, run_suspended},
    status::RunFindings,
    suspension::{Suspension, Suspensions},
};
use crate::{
    manifest::tree::{Recorder, Tree},
    model::{code::Code, diagnostic::Diagnostic, operation::Author},
    store::{Attempt, Store, background::lower_priority, history::Outcome as AttemptOutcome},
};

/// How long the folder must be quiet before a run.
const QUIET: Duration = Duration::from_millis(150);
/// The longest wait for a quiet folder.
const LONGEST_DEBOUNCE: Duration = Duration::from_secs(2);
/// How often the paths are resolved: swapping a link or folder far above causes no event.
const TICK: Duration = Duration::from_secs(1);
/// The interval of full runs, even without changes.
const LONGEST_SETTLED: Duration = Duration::from_secs(3600);
/// The pause after a panic, which grows with each one, so that repeated panics do not overload the machine.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// How long the start of the server waits for the first fetch.
const LONGEST_START: Duration = Duration::from_secs(10);

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
    let source = FollowedSource { options, watched, interval: INTERVAL, location, is_suspended: false, fetching: None };
    follow_source(store, source, suspensions, report)
}

/// Like [`follow`], for a source that may have its own interval.
pub(crate) fn follow_source(
    store: Arc<Store>,
    source: FollowedSource,
    suspensions: Arc<Suspensions>,
    report: impl FnMut(RunReport, &Author) + Send + 'static,
) -> notify::Result<Handle> {
    let (signals, received) = channel();
    // The watch starts first, so that no change is lost before the first run.
    let events = signals.clone();
    let folders = Folders::watch(&source.watched, move || {
        let _ = events.send(Signal::Look);
    })?;
    let following = Arc::new(Following::new(&source, suspensions, signals));
    let mut options = source.options;
    let recorder = Arc::new(Recorder::new(Arc::clone(&options.tree)));
    options.tree = Arc::clone(&recorder) as Arc<dyn Tree>;
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
        suspension: None,
        following: Arc::clone(&following),
    };
    let thread = std::thread::Builder::new().name("reconcile".into()).spawn(move || watch.run(&received, looked));
    Ok(Handle::new(following, first, thread.map_err(notify::Error::io)?))
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
    /// The suspension at the last look.
    suspension: Option<Suspension>,
    following: Arc<Following>,
}

impl<F: FnMut(RunReport, &Author)> Loop<F> {
    fn run(&mut self, received: &Receiver<Signal>, looked: oneshot::Sender<()>) {
        lower_priority();
        let _gone = Gone(Arc::clone(&self.following));
        let mut looked = Some(looked);
        self.fetch(&mut looked);
        let mut rest = self.turn(None);
        if let Some(looked) = looked {
            let _ = looked.send(());
        }
        while !self.following.is_stopping() {
            let goes_on = match rest {
                Some(rest) => pause(received, rest),
                None => wait(received, &self.folders, self.following.patience()),
            };
            if !goes_on {
                return;
            }
            self.fetch(&mut None);
            rest = self.turn(rest);
        }
    }

    /// Fetches a remote repository if that is due, before the run: a suspension must not wait for a slow server. A first
    /// fetch that takes long is reported as the first look.
    fn fetch(&mut self, looked: &mut Option<oneshot::Sender<()>>) {
        let following = Arc::clone(&self.following);
        let Some(fetching) = &following.fetching else { return };
        let began = Instant::now();
        let has_turned = fetching.fetch_if_due(&mut || {
            following.health.beat();
            if began.elapsed() > LONGEST_START
                && let Some(looked) = looked.take()
            {
                let _ = looked.send(());
            }
            !following.is_stopping()
        });
        if has_turned {
            // The status has changed, even if the manifests have not.
            self.settled = None;
        }
    }

    /// Runs once and catches a panic. Returns how long to pause after a panic.
    fn turn(&mut self, rested: Option<Duration>) -> Option<Duration> {
        let following = Arc::clone(&self.following);
        let _running = following.running();
        self.following.health.begin();
        let began = Instant::now();
        // A panic loses at most this loop's state: the store changes only by atomic commits.
        let looked = catch_unwind(AssertUnwindSafe(|| self.look()));
        let rest = looked.is_err().then(|| rested.map_or(FIRST_REST, |rest| (rest * 2).min(LONGEST_REST)));
        if let Some(rest) = rest {
            self.settled = None;
            measure("panicked", began);
            tracing::error!(source = following.source, rest_seconds = rest.as_secs(), "the reconcile loop panicked");
            let fault = Diagnostic::error(Code::Internal, "internal error in edgewright: the run panicked");
            let found = vec![fault.help("report it with the panic message in the log; the loop continues")];
            let findings = RunFindings::default().failed(&found);
            // The manifests or the report may have panicked.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                self.tell(RunResult { report: RunReport::Failed(found), findings, author: self.options.author() });
            }));
        }
        following.status.waits(rest.unwrap_or_else(|| following.patience()));
        self.following.health.end();
        rest
    }

    fn look(&mut self) {
        self.folders.refresh(&self.options.source);
        let is_suspended = self.check_suspension();
        let began = Instant::now();
        if self.settled.as_ref().is_some_and(|it| it.holds(self.store.as_ref())) && self.recorder.unchanged() {
            measure("in_sync", began);
            self.following.health.unchanged();
            // The commit may be another one that changes no manifest.
            let (commit, revision) = (self.options.tree.commit(), self.store.snapshot().revision);
            return self.following.status.confirm(commit, revision, self.following.fetch_failure().is_none());
        }
        if self.reported.is_none()
            && let Some(run) = self.recalled()
        {
            measure("in_sync", began);
            if let RunReport::InSync { revision, .. } = run.report {
                self.settled = Some(Settled::at(revision));
            }
            return self.tell(run);
        }
        let mut settled = None;
        let remember = |planned: &Planned, revision: u64| {
            settled = planned.settles().then(|| Settled::at(revision));
            if let Some(on_disk) = self.store.on_disk(revision) {
                remember(&on_disk, &self.options, &self.recorder, planned, revision);
            }
        };
        let prepared = Prepared::load_again(self.options.clone(), self.prepared.take());
        let run = match is_suspended {
            true => run_suspended(self.store.as_ref(), &prepared, remember),
            false => run_once(self.store.as_ref(), &prepared, remember),
        };
        self.prepared = Some(prepared);
        // A cancelled run has no result.
        if self.following.is_stopping() && matches!(run.report, RunReport::Invalid(_)) {
            return;
        }
        self.settled = settled;
        self.tell(run);
    }

    /// Whether the source is suspended; logs when that has changed.
    fn check_suspension(&mut self) -> bool {
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
        self.following.status.record(commit, snapshot.revision, findings, is_synced);
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
            self.note(&outcome, &author);
            (self.report)(outcome, &author);
        }
    }
}

impl<F> Loop<F> {
    /// Records an attempt that changed nothing in the history; a persistent error is one attempt (D58).
    fn note(&self, report: &RunReport, author: &Author) {
        let outcome = match report {
            RunReport::Invalid(_) => AttemptOutcome::Refused,
            RunReport::Failed(_) => AttemptOutcome::Failed,
            RunReport::Applied { .. }
            | RunReport::InSync { .. }
            | RunReport::Partly(_)
            | RunReport::Suspended(_)
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

/// Waits for a trigger and a quiet folder. Returns false if the loop should stop.
fn wait(received: &Receiver<Signal>, folders: &Folders, interval: Duration) -> bool {
    let began = Instant::now();
    loop {
        match received.recv_timeout(TICK) {
            Ok(Signal::Look) => break,
            Err(RecvTimeoutError::Timeout) if folders.have_moved() || began.elapsed() >= interval => return true,
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

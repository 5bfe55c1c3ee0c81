//! The handle of a followed source: the status of its loop, and a way to control it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{MutexGuard, OnceLock};
use std::thread::JoinHandle;

use tokio::sync::oneshot::{self, error::TryRecvError};

use super::{fetch_schedule::FetchSchedule, location::SourceLocation};
use crate::manifest::tree::remote::RemoteUrl;
use crate::manifest::tree::{Lineage, SourceValues};
use crate::reconcile::prelude::*;
use crate::reconcile::run::cancel::Cancel;
use crate::reconcile::run::options::Options;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::sync_loop::clock::Clock;
use crate::reconcile::sync_loop::condition::{Condition, Status};
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::reconcile::sync_loop::health::Health;
use crate::reconcile::sync_loop::known_condition::KnownCondition;
use crate::reconcile::sync_loop::schedule::Signal;
use crate::reconcile::sync_loop::status::{SourceStatus, StatusBoard};
use crate::reconcile::sync_loop::suspension::{SourceRecords, Suspension};
use crate::reconcile::sync_loop::sync_log::or_warn;
use crate::store::history::after_rollback::SyncedManifests;
use crate::store::history::external_writes::Baseline;

/// The grace period for a run during shutdown.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// How long the start of a server, or a reload, waits for the first syncs of its sources.
pub(crate) const LONGEST_START: Duration = Duration::from_secs(10);
/// The interval of syncs without events, unless the source sets another one.
pub(crate) const INTERVAL: Duration = Duration::from_secs(30);

/// Observes when a source stops or resumes being applied.
pub(crate) trait SourceObserver: fmt::Debug + Send + Sync {
    /// Called with a source whose run has ended, or that was suspended or resumed.
    fn observe(&self, handle: &SourceHandle);
}

/// A source to follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct FollowedSource {
    /// The manifests, the name and the limits.
    pub options: Options,
    /// The files and folders whose changes trigger a sync.
    pub watched: Vec<PathBuf>,
    /// How often to sync without an event.
    pub interval: Duration,
    /// The location of the manifests, for display.
    pub location: SourceLocation,
    /// Whether the configuration suspends it.
    pub is_suspended: bool,
    /// The drift policy.
    pub drift: DriftPolicy,
    /// The fetches of its repository, if that is a remote one.
    pub fetches: Option<Arc<FetchSchedule>>,
    /// The commit that was applied last, if the manifests are in a repository.
    pub lineage: Option<Arc<Lineage>>,
    /// The values that its commits do not have.
    pub values: Arc<SourceValues>,
    /// The observer of its state after each run.
    pub observer: Option<Arc<dyn SourceObserver>>,
}

/// The status of the loop, and a way to control it.
#[derive(Debug)]
pub struct SourceHandle {
    /// The reconciled source.
    pub source: String,
    /// The health of the loop.
    pub health: Health,
    /// The settings of the source.
    pub(crate) settings: FollowedSource,
    /// The status: the last attempt, findings and applied revision.
    pub(crate) status: StatusBoard,
    records: Arc<SourceRecords>,
    /// The suspension that was logged last, if the source was suspended then.
    logged: Lock<Option<Suspension>>,
    /// The suspension by the configuration file, if any.
    pub(crate) configured: Option<Suspension>,
    /// Held during a run. A loop that takes over shares it with the one before: only one of them runs at a time.
    running: Arc<Lock<()>>,
    /// Cancels the current run.
    run: Lock<Cancel>,
    /// The resources that the loop, and those before it, have reverted.
    pub(crate) repairs: Arc<AtomicU64>,
    signals: Sender<Signal>,
    clock: Clock,
    stopped: OnceLock<Instant>,
}

impl SourceHandle {
    /// Creates the status of a loop that starts now and receives the other end of `signals`. It takes over from the loop
    /// `before` of the same source, if any; what that one found still holds for manifests at the same location.
    pub(crate) fn new(
        source: &FollowedSource,
        records: Arc<SourceRecords>,
        signals: Sender<Signal>,
        before: Option<&SourceHandle>,
        clock: Clock,
    ) -> Self {
        // A loop that syncs more often still has the time of the default.
        let health = Health::new(clock.clone(), 3 * source.interval.max(INTERVAL));
        let known = match before {
            Some(before) => {
                health.take_over(&before.health);
                None
            }
            None => records.conditions.get(&source.options.source),
        };
        if let Some(KnownCondition { reason, since, .. }) = known {
            health.restore(reason, since);
        }
        let at_same_place = before.filter(|before| before.settings.location == source.location);
        if let Some(before) = at_same_place {
            health.take_over_condition(&before.health);
        }
        let configured = || {
            let since = || known.as_ref().and_then(|known| known.suspended_since).unwrap_or_else(|| clock.time());
            before.and_then(|it| it.configured.clone()).unwrap_or_else(|| Suspension::configured(since()))
        };
        Self {
            source: source.options.source.clone(),
            health,
            settings: source.clone(),
            status: at_same_place.map(|it| it.status.taken_over()).unwrap_or_default(),
            records,
            logged: Lock::default(),
            configured: source.is_suspended.then(configured),
            running: before.map(|it| Arc::clone(&it.running)).unwrap_or_default(),
            run: Lock::default(),
            repairs: before.map(|it| Arc::clone(&it.repairs)).unwrap_or_default(),
            signals,
            clock,
            stopped: OnceLock::new(),
        }
    }

    /// The suspension of the source, if it is suspended now.
    pub(crate) fn suspension(&self) -> Option<Suspension> {
        self.records.suspension(&self.source, self.clock.time()).or_else(|| self.configured.clone())
    }

    /// Suspends the source, or resumes it, durably. Returns the suspension that was in effect before. Once it returns, a
    /// suspended source is not applied: a current run is cancelled, however long its current step takes.
    pub(crate) fn set_suspension(
        &self,
        suspension: Option<Suspension>,
        author: Author,
    ) -> Result<Option<Suspension>, StoreError> {
        let is_suspended = suspension.is_some();
        let before = self.records.set_suspension(&self.source, suspension, author)?;
        if is_suspended {
            self.run.lock().cancel();
        }
        // Before the next sync, because it may be replaced until then.
        self.note_suspension();
        self.request_sync();
        Ok(before)
    }

    /// The condition as the status shows it. A loop that was asked to stop has no problem when it ends.
    pub(crate) fn shown_condition(&self) -> Condition {
        if self.is_stopping() { self.health.condition() } else { self.health.condition_at(self.clock.now()) }
    }

    /// The condition and the status of one moment: once a sync has ended in the status, both are of that one.
    pub(crate) fn observed(&self) -> (Condition, SourceStatus) {
        loop {
            let before = self.status.ended();
            let (condition, status) = (self.shown_condition(), self.status.current());
            if status.ended == before {
                return (condition, status);
            }
        }
    }

    /// Begins a run, which a suspension or the end of the loop cancels.
    pub(crate) fn begin_run(&self) -> Cancel {
        let cancel = self.settings.options.cancel.child();
        *self.run.lock() = cancel.clone();
        cancel
    }

    /// Whether the current run may apply its plan. Asked inside the commit: a suspension that is recorded later comes
    /// after the commit in the history, too.
    pub(crate) fn may_apply(&self) -> bool {
        let run = self.run.lock();
        if self.suspension().is_some() {
            run.cancel();
        }
        !run.is_cancelled()
    }

    /// Records that the time of a suspension is over, if it is.
    pub(crate) fn end_suspension(&self) {
        let ended = self.records.end_suspension(&self.source, self.clock.time());
        or_warn(&self.source, "cannot record the end of the suspension", ended);
    }

    /// Whether the source is suspended now; logs when that has changed, and shows the state to the observer.
    pub(crate) fn note_suspension(&self) -> bool {
        let mut logged = self.logged.lock();
        let (source, now) = (self.source.as_str(), self.suspension());
        match (logged.as_ref(), &now) {
            (before, Some(suspension)) if before != Some(suspension) => {
                let Suspension { reason, by, since, until } = suspension;
                let until = until.map_or_else(|| "it is resumed".to_owned(), |until| until.to_string());
                tracing::warn!(source, by, %since, until, reason, "the source is suspended: changes are not applied");
            }
            (Some(_), None) => {
                tracing::info!(source, "the source is no longer suspended");
                self.health.end_suspension();
                let since = self.health.condition().last_transition_time;
                self.keep(|known| KnownCondition { since, ..known });
            }
            // The status of a source that is not suspended must not say that it is.
            (None, None) => self.health.resume(),
            _ => {}
        }
        *logged = now;
        let is_suspended = logged.is_some();
        drop(logged);
        if let Some(observer) = &self.settings.observer {
            observer.observe(self);
        }
        is_suspended
    }

    /// Shows that a rollback undid the manifests of the last sync: until the next one, the status must not say that they are in
    /// effect. They still are if it only undid what others had changed since.
    pub(crate) fn note_rollback(&self, store: &Store, after: &Snapshot) {
        let known = self.health.condition();
        if self.suspension().is_some() || known.status != Status::Synced {
            return;
        }
        let has_same = store.has_same(&self.source, known.observed_revision, after);
        if or_warn(&self.source, "cannot tell what the rollback undid", has_same) == Some(true) {
            return;
        }
        let commit = self.status.applied().and_then(|sync| sync.commit);
        self.status.find_applied(store, &self.source);
        // Last: a reader who sees the state also sees the commit.
        let (reason, message) = RunReport::RolledBack { commit }.condition();
        self.health.result(reason, message, after.revision);
    }

    /// Whether the history has an attempt with this digest, and the source has been so since.
    pub(crate) fn has_recorded(&self, attempt: &str) -> bool {
        self.records.conditions.get(&self.source).is_some_and(|known| known.attempt.as_deref() == Some(attempt))
    }

    /// Keeps since when the source is in its state, and the digest of its attempt, for the next process.
    pub(crate) fn keep_condition(&self, attempt: Option<String>) {
        let suspended_since = self.configured.as_ref().map(|suspension| suspension.since);
        let now = KnownCondition::new(&self.health.condition());
        self.keep(|known| {
            let KnownCondition { manifests, baseline, .. } = known;
            KnownCondition { suspended_since, attempt, manifests, baseline, ..now }
        });
    }

    /// The revision that the manifests of the last sync led to, if manifests with another content declare the same, such as those
    /// with a comment more. Beside drift, the state does not tell.
    pub(crate) fn led_to_before(&self, store: &Store, content: &str, declares: &str) -> Option<u64> {
        let known = self.records.conditions.get(&self.source)?.manifests?;
        let declared = store.declared_by(&self.source, &known);
        let declared = or_warn(&self.source, "cannot tell what the manifests declared before", declared)??;
        known.revision.filter(|_| known.content != content && declared == declares)
    }

    /// Keeps the content of the manifests that are in effect after a sync, for rollbacks (D78). `led_to` is the revision that
    /// they led to, and `declares` the digest of what they declare beside drift, if these are known. If the sync covered all of
    /// them, `found` is the revision that it found or made, for drift (D85), and `left` the paths of the resources that it left
    /// as they were.
    pub(crate) fn keep_manifests(
        &self,
        content: String,
        led_to: Option<u64>,
        declares: Option<String>,
        found: Option<u64>,
        left: &BTreeSet<String>,
    ) {
        self.keep(|known| {
            let baseline = match found {
                Some(found) => {
                    let before = known.baseline.filter(|before| before.is_reached_at(found));
                    Baseline::after(before, found, left)
                }
                None => known.baseline,
            };
            let manifests = Some(SyncedManifests::after(known.manifests, content, led_to, declares));
            KnownCondition { manifests, baseline, ..known }
        });
    }

    /// The last revision at which a sync found manifests with a content in effect, if none with another content were since.
    pub(crate) fn in_effect_at(&self, content: &str) -> Option<u64> {
        let KnownCondition { manifests, baseline, .. } = self.records.conditions.get(&self.source)?;
        let is_in_effect = manifests.is_some_and(|manifests| manifests.content == content);
        baseline.filter(|_| is_in_effect).map(|baseline| baseline.revision)
    }

    fn keep(&self, change: impl FnOnce(KnownCondition) -> KnownCondition) {
        let first = KnownCondition::new(&self.health.condition());
        let kept = self.records.conditions.change(&self.source, |known| change(known.unwrap_or(first)));
        or_warn(&self.source, "cannot record the state of the source", kept);
    }

    /// Finds the commit that was applied last, if the manifests are in a repository and it is not known.
    pub(crate) fn find_lineage(&self) -> Result<(), Diagnostic> {
        let Some(lineage) = self.settings.lineage.as_ref().filter(|lineage| !lineage.is_known()) else { return Ok(()) };
        let commit = self.records.applied.last(&self.source, &self.settings.location).map_err(|error| {
            let message = format!("cannot find out which commit was applied last: {error}");
            Diagnostic::error(error.code, message).help(error.code.info().cure)
        })?;
        lineage.set_applied(commit.as_deref());
        Ok(())
    }

    /// The warning about the commit that was read, if it does not descend from the one that was applied before.
    pub(crate) fn lineage_warning(&self) -> Option<Diagnostic> {
        self.settings.lineage.as_ref()?.warning()
    }

    /// Records the commit that is applied now: the next one must descend from it.
    pub(crate) fn note_applied(&self, commit: Option<&str>) {
        let (Some(lineage), Some(commit)) = (&self.settings.lineage, commit) else { return };
        self.settings.values.note_applied(commit);
        if lineage.set_applied(Some(commit)) {
            let recorded = self.records.applied.set(&self.source, &self.settings.location, commit);
            or_warn(&self.source, "cannot record which commit was applied last", recorded);
        }
    }

    /// Accepts a commit in place of the one that was applied last, durably. The next sync applies it, or one that descends
    /// from it.
    pub(crate) fn accept_commit(&self, commit: &str, author: Author) -> Result<(), StoreError> {
        self.records.applied.accept(&self.source, Some(&self.settings.location), commit, author)?;
        if let Some(lineage) = &self.settings.lineage {
            lineage.set_applied(Some(commit));
        }
        Ok(())
    }

    /// The number of resources whose drift was reverted since the source is followed.
    pub(crate) fn repairs(&self) -> u64 {
        self.repairs.load(Ordering::Relaxed)
    }

    /// Waits for the end of a current run, and holds up the next one.
    pub(crate) fn running(&self) -> MutexGuard<'_, ()> {
        self.running.lock()
    }

    /// How long the loop may wait without an event: a suspension that ends earlier must not be noticed later.
    pub(crate) fn idle_wait(&self) -> Duration {
        let until = self.suspension().and_then(|suspension| suspension.until);
        let left = until.map(|until| until.duration_since(self.clock.time()));
        let left = left.map(|left| Duration::try_from(left).unwrap_or_default());
        let left = left.map_or(self.settings.interval, |left| left.min(self.settings.interval));
        self.settings.fetches.as_ref().map_or(left, |fetches| left.min(fetches.pause()))
    }

    /// Requests a fetch and a run if one of the URLs is that of the source's repository. Returns whether it is.
    pub(crate) fn request_fetch(&self, urls: &[RemoteUrl]) -> bool {
        let fetches = self.settings.fetches.as_ref().filter(|fetches| fetches.is_of_any(urls));
        // However many requests there are, they cause one sync at a time.
        if fetches.is_some_and(|fetches| fetches.request()) {
            self.request_sync();
        }
        fetches.is_some()
    }

    /// Whether the loop was asked to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.settings.options.cancel.is_cancelled()
    }

    /// Requests a sync now.
    pub fn request_sync(&self) {
        let _ = self.signals.send(Signal::Sync);
    }

    /// Requests a sync now, which fetches a remote repository first.
    pub(crate) fn request_whole_sync(&self) {
        if let Some(fetches) = &self.settings.fetches {
            fetches.request();
        }
        self.request_sync();
    }

    /// Asks the loop to stop. A current run ends before its next step.
    pub fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
        self.settings.options.cancel.cancel();
        let _ = self.signals.send(Signal::Stop);
    }
}

/// Stops the loop on drop. A run that does not end within the grace period is abandoned: its commit is atomic.
pub struct LoopGuard {
    handle: Arc<SourceHandle>,
    first: Option<oneshot::Receiver<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LoopGuard {
    /// Takes over a loop and the signal of its first run.
    pub(crate) fn new(handle: Arc<SourceHandle>, first: oneshot::Receiver<()>, thread: JoinHandle<()>) -> Self {
        Self { handle, first: Some(first), thread: Some(thread) }
    }

    /// The status of the loop, and a way to control it.
    pub fn handle(&self) -> Arc<SourceHandle> {
        Arc::clone(&self.handle)
    }

    /// Asks the loop to stop after its current run.
    pub(crate) fn retire(&self) {
        // The grace period begins now.
        self.handle.stopped.get_or_init(Instant::now);
        let _ = self.handle.signals.send(Signal::Stop);
    }

    /// Waits for the end of a retired loop. Its run is cancelled after the grace period, or when there is a hurry.
    pub(crate) fn finish(self, is_hurried: impl Fn() -> bool) {
        let since = Instant::now();
        self.wait(|| since.elapsed() < GRACE && !is_hurried());
    }

    /// Waits for the end of the loop, as long as there is time.
    fn wait(&self, has_time: impl Fn() -> bool) {
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && has_time() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether the first run is over.
    pub(crate) fn has_synced(&mut self) -> bool {
        let is_pending = |first: &mut oneshot::Receiver<()>| matches!(first.try_recv(), Err(TryRecvError::Empty));
        !self.first.as_mut().is_some_and(is_pending)
    }

    /// Completes after the first run.
    pub fn first_sync(&mut self) -> impl Future<Output = ()> + use<> {
        let first = self.first.take();
        async move {
            if let Some(first) = first {
                let _ = first.await;
            }
        }
    }
}

impl Drop for LoopGuard {
    fn drop(&mut self) {
        self.handle.stop();
        let since = *self.handle.stopped.get_or_init(Instant::now);
        self.wait(|| since.elapsed() <= GRACE);
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

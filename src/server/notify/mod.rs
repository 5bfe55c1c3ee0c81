//! Notifications: sends changes, and events of sources and certificates that need somebody, to webhooks and files
//! (D81).
//!
//! # The problem
//!
//! A target must hear of every change at least once and in order, also of one that was committed a moment before a
//! crash, and may be down for days. A queue that each commit fills would store every change once more for each target,
//! and grow while one is down.
//!
//! # The idea
//!
//! The history is the outbox: it has every change already, durably. A target has a cursor into it ([`cursors`]), which
//! is written after each delivery, and a thread that reads on from there. States of sources and expiring certificates
//! are in no history, so [`transitions`] logs these few, in a bounded file. An event waits for the revision that the
//! store had when it happened.
//!
//! For example, the server is killed after a webhook has got revision 7 and before the cursor is written. The next
//! start sends revision 7 again, with the same `id`, because an id is derived from what it is about; the receiver drops
//! it.
//!
//! # What it never does
//!
//! A notification delays no commit and no other target, and has no field values in its text. A damaged state file is
//! moved aside and never keeps the server from starting. Revisions that the history no longer has are reported as a
//! `gap`, never skipped silently.

pub(crate) mod http_client;

mod certificates;
mod change_text;
mod chat;
pub(crate) mod config;
mod cursors;
pub(crate) mod events;
mod message;
mod saved;
mod sink;
mod sources;
#[cfg(test)]
mod tests;
mod transitions;

use std::{
    cell::OnceCell,
    collections::VecDeque,
    fmt,
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use ureq::Agent;

use super::resources::change::ChangeFilter;
use crate::{
    model::diagnostics::{code::Code, diagnostic::Diagnostic},
    reconcile::sources::handle::{SourceHandle, SourceObserver},
    store::{Store, clock, engine::Query},
    syntax::text::escaped,
};
use config::NotificationTarget;
use cursors::{Cursor, Cursors};
use message::{Notification, Recipient, RevisionOutline};
use sources::SourceSnapshot;
use transitions::TransitionLog;

/// The metric of delivered notifications.
pub(super) const SENT: &str = "edgewright_notifications_sent_total";
/// The metric of failed attempts.
pub(super) const FAILED: &str = "edgewright_notifications_failed_total";

/// How often a thread without work checks whether it must end.
const IDLE: Duration = Duration::from_millis(500);
/// How often the certificates are looked at without a revision.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(3600);
/// The wait after the first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How long the end of the process waits for a delivery. The next start repeats one that was interrupted.
const LEAVE: Duration = Duration::from_secs(2);
/// How many revisions without a selected change are passed before the cursor is written.
const SAVE_EVERY: usize = 256;

/// Delivers notifications until it is dropped.
pub(crate) struct Notifier {
    outbox: Arc<Outbox>,
    /// One for each thread, which drops the other end.
    ended: Vec<mpsc::Receiver<()>>,
}

/// State shared by the threads of all targets.
pub(crate) struct Outbox {
    store: Arc<Store>,
    cursors: Cursors,
    transitions: TransitionLog,
    /// The names of the targets.
    names: Vec<String>,
    /// The URL before the path of every resource.
    base_url: String,
    /// Tells the notifications of this store from those of others.
    scope: [u8; 32],
    stop: StopSignal,
}

#[derive(Default)]
struct StopSignal {
    stopped: Mutex<bool>,
    told: Condvar,
}

impl StopSignal {
    fn set(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.told.notify_all();
    }

    fn is_set(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the signal is set, or for a time.
    fn wait(&self, time: Duration) {
        let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.told.wait_timeout_while(stopped, time, |stopped| !*stopped));
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("names", &self.names).finish_non_exhaustive()
    }
}

impl SourceObserver for Outbox {
    fn observe(&self, following: &SourceHandle) {
        let now = OnceCell::new();
        let now = || now.get_or_init(|| SourceSnapshot::new(following));
        self.transitions.note_source(
            &following.source,
            self.store.snapshot().revision,
            || now().observed(),
            |r#type, told| now().describe(r#type, told, &self.base_url),
        );
    }
}

impl Outbox {
    /// Looks at the certificates after each revision, and from time to time, until the end.
    fn watch_certificates(&self) {
        let mut last: Option<(u64, Instant)> = None;
        while !self.stop.is_set() {
            let snapshot = self.store.snapshot();
            let revision = snapshot.revision;
            if last.is_none_or(|(seen, at)| seen != revision || at.elapsed() >= CERTIFICATE_INTERVAL) {
                match certificates::expiring(&snapshot, clock::now(), &self.base_url) {
                    Ok(found) => self.transitions.note_certificates(revision, found),
                    Err(error) => {
                        tracing::warn!("cannot describe expiring certificates: {}", escaped(&error.to_string()));
                    }
                }
                last = Some((revision, Instant::now()));
            }
            drop(snapshot);
            self.stop.wait(IDLE);
        }
    }

    /// How many revisions each target has not been told of.
    pub(super) fn lags(&self) -> impl Iterator<Item = (&str, u64)> {
        let newest = self.store.snapshot().revision;
        self.names.iter().map(move |name| (name.as_str(), newest.saturating_sub(self.cursors.get(name).revision)))
    }
}

impl Notifier {
    /// Starts to deliver. A new target is told of the revisions that follow, so this comes before the first commit.
    pub(crate) fn start(
        store: &Arc<Store>,
        targets: Vec<NotificationTarget>,
        base_url: &str,
    ) -> Result<Option<Self>, Diagnostic> {
        if targets.is_empty() {
            return Ok(None);
        }
        for target in &targets {
            target.sink.check().map_err(|reason| {
                Diagnostic::error(Code::Unreadable, format!("cannot notify `{}`: {reason}", target.name))
            })?;
        }
        let transitions = TransitionLog::open(store);
        let names = targets.iter().map(|target| target.name.as_str());
        let cursors = Cursors::open(store, transitions.last(), names);
        let outbox = Arc::new(Outbox {
            store: Arc::clone(store),
            cursors,
            transitions,
            names: targets.iter().map(|target| target.name.clone()).collect(),
            base_url: base_url.to_owned(),
            scope: blake3::derive_key("edgewright 2026 notifications", &store.root_secret()),
            stop: StopSignal::default(),
        });
        let mut notifier = Self { outbox, ended: Vec::new() };
        for target in targets {
            let delivery = Delivery::new(Arc::clone(&notifier.outbox), target);
            notifier.spawn(move || delivery.run())?;
        }
        let outbox = notifier.outbox();
        notifier.spawn(move || outbox.watch_certificates())?;
        Ok(Some(notifier))
    }

    /// Starts a thread, which ends with the notifier.
    fn spawn(&mut self, run: impl FnOnce() + Send + 'static) -> Result<(), Diagnostic> {
        let (alive, ended) = mpsc::channel();
        let run = move || {
            run();
            drop(alive);
        };
        std::thread::Builder::new().name("notify".into()).spawn(run).map_err(|error| {
            Diagnostic::error(Code::Internal, format!("cannot start a thread for notifications: {error}"))
        })?;
        self.ended.push(ended);
        Ok(())
    }

    /// The pending notifications, for the metrics and for source events.
    pub(crate) fn outbox(&self) -> Arc<Outbox> {
        Arc::clone(&self.outbox)
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.outbox.stop.set();
        let until = Instant::now() + LEAVE;
        for ended in &self.ended {
            let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// Delivers to one target.
struct Delivery {
    outbox: Arc<Outbox>,
    target: NotificationTarget,
    /// The changes that the target is told of, if any.
    changes: Option<ChangeFilter>,
    agent: Agent,
    cursor: Cursor,
    /// The notifications about the next revision or event.
    pending: VecDeque<Notification>,
    /// The revisions and events that were passed since the cursor was written.
    unsaved: usize,
    sent: metrics::Counter,
    failed: metrics::Counter,
}

impl Delivery {
    fn new(outbox: Arc<Outbox>, target: NotificationTarget) -> Self {
        let cursor = outbox.cursors.get(&target.name);
        let sent = metrics::counter!(SENT, "target" => target.name.clone());
        let failed = metrics::counter!(FAILED, "target" => target.name.clone());
        // A series that is missing would look like a target that nobody has configured.
        sent.increment(0);
        failed.increment(0);
        let (changes, agent, pending) = (target.filter.changes(), sink::agent(), VecDeque::new());
        Self { outbox, target, changes, agent, cursor, pending, unsaved: 0, sent, failed }
    }

    fn run(mut self) {
        let name = self.target.name.clone();
        let mut failures = 0;
        while !self.outbox.stop.is_set() {
            match self.step() {
                Ok(true) => {
                    self.sent.increment(1);
                    if failures > 0 {
                        let recipient = name.as_str();
                        tracing::info!(recipient, "notifications are delivered again after {failures} failures");
                    }
                    failures = 0;
                }
                Ok(false) => self.outbox.store.wait_for_revision(self.cursor.revision, IDLE),
                Err(reason) => {
                    self.failed.increment(1);
                    let wait = backoff(failures, rand::random());
                    failures += 1;
                    let reason = escaped(&reason);
                    tracing::warn!(recipient = name.as_str(), "a notification failed ({failures} in a row): {reason}");
                    self.outbox.stop.wait(wait);
                }
            }
        }
    }

    /// Delivers the next notification. Returns false if there is none.
    fn step(&mut self) -> Result<bool, String> {
        if self.pending.is_empty() {
            self.fill()?;
        }
        let Some(notification) = self.pending.front() else { return Ok(false) };
        self.target.sink.deliver(&self.agent, notification)?;
        self.cursor = notification.after;
        self.pending.pop_front();
        self.save();
        Ok(true)
    }

    /// Reads up to the next revision with a selected change, or the next selected event.
    fn fill(&mut self) -> Result<(), String> {
        let outbox = Arc::clone(&self.outbox);
        let newest = outbox.store.snapshot().revision;
        while !outbox.stop.is_set() {
            self.fill_transition(&outbox)?;
            if !self.pending.is_empty() {
                return Ok(());
            }
            if self.cursor.revision >= newest {
                break;
            }
            self.fill_revision(&outbox, newest)?;
            if !self.pending.is_empty() {
                return Ok(());
            }
        }
        if self.unsaved > 0 {
            self.save();
        }
        Ok(())
    }

    /// Reads the events up to the next selected one. An event follows the revision that the store had then.
    fn fill_transition(&mut self, outbox: &Outbox) -> Result<(), String> {
        while let Some(transition) = outbox.transitions.after(self.cursor.transition) {
            // After a backup was restored, the store may not have that revision.
            if transition.revision > self.cursor.revision && self.cursor.revision < outbox.store.snapshot().revision {
                return Ok(());
            }
            if self.target.filter.selects(&transition) {
                let recipient = Recipient { store: &outbox.scope, name: &self.target.name };
                let made = message::transition_notification(&recipient, self.cursor, transition);
                self.pending.push_back(made.map_err(|error| error.to_string())?);
                return Ok(());
            }
            self.cursor.transition = transition.number;
            self.pass();
        }
        Ok(())
    }

    /// Reads the next revision, if the target is told of revisions.
    fn fill_revision(&mut self, outbox: &Outbox, newest: u64) -> Result<(), String> {
        let Some(changes) = &self.changes else {
            self.cursor = Cursor { revision: newest, parts: 0, ..self.cursor };
            self.pass();
            return Ok(());
        };
        let recipient = Recipient { store: &outbox.scope, name: &self.target.name };
        let revision = self.cursor.revision + 1;
        let Some(found) = outbox.store.details(revision).map_err(|error| error.to_string())? else {
            let last = self.last_missing(revision, newest)?;
            let gap = message::gap_notification(&recipient, self.cursor, last, clock::now());
            self.pending.push_back(gap.map_err(|error| error.to_string())?);
            return Ok(());
        };
        let outline = RevisionOutline::new(&found, &outbox.store).map_err(|error| error.to_string())?;
        let now = outbox.store.snapshot();
        let made = message::revision_notifications(&recipient, changes, &outbox.base_url, self.cursor, outline, &now);
        let made = made.map_err(|error| error.to_string())?;
        self.pending = made.into_iter().skip(self.cursor.parts).collect();
        if self.pending.is_empty() {
            self.cursor = Cursor { revision, parts: 0, ..self.cursor };
            self.pass();
        }
        Ok(())
    }

    /// Counts a revision or event that the target is not told of.
    fn pass(&mut self) {
        self.unsaved += 1;
        if self.unsaved >= SAVE_EVERY {
            self.save();
        }
    }

    /// Returns the last revision whose record is no longer kept, from the first such one on. Records are removed oldest
    /// first.
    fn last_missing(&self, first: u64, newest: u64) -> Result<u64, String> {
        let (mut missing, mut kept) = (first, newest + 1);
        while kept - missing > 1 {
            let middle = missing + (kept - missing) / 2;
            let found = self.outbox.store.headers(&Query::Revision(middle), u64::MAX, 1);
            match found.map_err(|error| error.to_string())?.is_empty() {
                false => kept = middle,
                true => missing = middle,
            }
        }
        Ok(missing)
    }

    fn save(&mut self) {
        self.unsaved = 0;
        if let Err(error) = self.outbox.cursors.advance(&self.target.name, self.cursor) {
            let error = error.to_string();
            let recipient = self.target.name.as_str();
            tracing::warn!(recipient, "a restart repeats notifications: {}", escaped(&error));
        }
        self.outbox.transitions.forget(self.outbox.cursors.least_transition(&self.outbox.names));
    }
}

/// The wait after some failures in a row and one more: between half of it and all of it, so that several targets at one
/// host do not come back together.
fn backoff(failures: u32, random: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + random / 2.0)
}

//! Notifications: tells webhooks and files of every change, at least once (D81).
//!
//! The history is the outbox. Each target has a durable cursor into it and a thread of its own, so that one that is slow
//! or fails delays neither commits nor other targets.

pub(crate) mod config;
mod cursors;
mod message;
mod sink;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, PoisonError, mpsc},
    time::{Duration, Instant},
};

use ureq::Agent;

use crate::{
    model::{code::Code, diagnostic::Diagnostic},
    store::{Store, mint},
    text::escaped,
};
use config::NotificationTarget;
use cursors::{Cursor, Cursors};
use message::{Notification, Recipient};

/// The metric of delivered notifications.
pub(super) const SENT: &str = "edgewright_notifications_sent_total";
/// The metric of failed attempts.
pub(super) const FAILED: &str = "edgewright_notifications_failed_total";

/// How often a thread without work checks whether it must end.
const IDLE: Duration = Duration::from_millis(500);
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

/// What the threads of all targets share.
pub(crate) struct Outbox {
    store: Arc<Store>,
    cursors: Cursors,
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

impl Outbox {
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
        let cursors = Cursors::open(store, targets.iter().map(|target| target.name.as_str()))
            .map_err(|error| Diagnostic::error(error.code, error.message))?;
        let outbox = Arc::new(Outbox {
            store: Arc::clone(store),
            cursors,
            names: targets.iter().map(|target| target.name.clone()).collect(),
            base_url: base_url.to_owned(),
            scope: blake3::derive_key("edgewright 2026 notifications", &store.root_secret()),
            stop: StopSignal::default(),
        });
        let mut notifier = Self { outbox, ended: Vec::new() };
        for target in targets {
            let (alive, ended) = mpsc::channel();
            let delivery = Delivery::new(Arc::clone(&notifier.outbox), target);
            let run = move || {
                delivery.run();
                drop(alive);
            };
            std::thread::Builder::new().name("notify".into()).spawn(run).map_err(|error| {
                Diagnostic::error(Code::Internal, format!("cannot start a thread for notifications: {error}"))
            })?;
            notifier.ended.push(ended);
        }
        Ok(Some(notifier))
    }

    /// What is to be delivered, for the metrics.
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
    agent: Agent,
    cursor: Cursor,
    /// The notifications about the next revision.
    pending: VecDeque<Notification>,
    /// The revisions that were passed since the cursor was written.
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
        Self { outbox, target, agent: sink::agent(), cursor, pending: VecDeque::new(), unsaved: 0, sent, failed }
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

    /// Reads the history up to the next revision with a selected change.
    fn fill(&mut self) -> Result<(), String> {
        let outbox = Arc::clone(&self.outbox);
        let name = self.target.name.clone();
        let recipient = Recipient { store: &outbox.scope, name: &name };
        let newest = outbox.store.snapshot().revision;
        while self.cursor.revision < newest && !outbox.stop.is_set() {
            let revision = self.cursor.revision + 1;
            let Some(found) = outbox.store.outline(revision).map_err(|error| error.to_string())? else {
                let last = self.last_missing(revision, newest)?;
                let gap = message::of_gap(&recipient, revision, last, mint::now());
                self.pending.push_back(gap.map_err(|error| error.to_string())?);
                return Ok(());
            };
            let made = message::of_revision(&recipient, &self.target.filter, &outbox.base_url, revision, found);
            let made = made.map_err(|error| error.to_string())?;
            self.pending = made.into_iter().skip(self.cursor.parts).collect();
            if !self.pending.is_empty() {
                return Ok(());
            }
            self.cursor = Cursor { revision, parts: 0 };
            self.unsaved += 1;
            if self.unsaved >= SAVE_EVERY {
                self.save();
            }
        }
        if self.unsaved > 0 {
            self.save();
        }
        Ok(())
    }

    /// Returns the last revision whose record is no longer kept, from the first such one on. Records are removed oldest
    /// first.
    fn last_missing(&self, first: u64, newest: u64) -> Result<u64, String> {
        let (mut missing, mut kept) = (first, newest + 1);
        while kept - missing > 1 {
            let middle = missing + (kept - missing) / 2;
            match self.outbox.store.outline(middle).map_err(|error| error.to_string())? {
                Some(_) => kept = middle,
                None => missing = middle,
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
    }
}

/// The wait after some failures in a row and one more: between half of it and all of it, so that several targets at one
/// host do not come back together.
fn backoff(failures: u32, random: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + random / 2.0)
}

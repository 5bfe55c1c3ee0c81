//! The delivery to one target: what follows its cursor, one notification after the other, and again after a failure, with
//! growing waits.

use std::collections::VecDeque;

use ureq::Agent;

use super::config::NotificationTarget;
use super::cursors::Cursor;
use super::message::{self, Notification, Recipient, RevisionOutline};
use super::outbox::{IDLE, Outbox};
use super::sink;
use crate::server::prelude::*;
use crate::store::Query;

/// The metric of delivered notifications.
pub(in crate::server) const SENT: &str = "edgewright_notifications_sent_total";
/// The metric of failed attempts.
pub(in crate::server) const FAILED: &str = "edgewright_notifications_failed_total";

/// The wait after the first failure. It doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How many revisions without a selected change are passed before the cursor is written.
const SAVE_EVERY: usize = 256;

/// Delivers to one target.
pub(super) struct Delivery {
    outbox: Arc<Outbox>,
    target: NotificationTarget,
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
    pub(super) fn new(outbox: Arc<Outbox>, target: NotificationTarget) -> Self {
        let cursor = outbox.cursors.get(&target.name);
        let sent = metrics::counter!(SENT, "target" => target.name.clone());
        let failed = metrics::counter!(FAILED, "target" => target.name.clone());
        // A series that is missing would look like a target that nobody has configured.
        sent.increment(0);
        failed.increment(0);
        Self { outbox, target, agent: sink::agent(), cursor, pending: VecDeque::new(), unsaved: 0, sent, failed }
    }

    pub(super) fn run(mut self) {
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
                Ok(false) => self.outbox.store.change_window.wait(self.cursor.revision, IDLE),
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
    pub(super) fn step(&mut self) -> Result<bool, String> {
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
        while self.pending.is_empty() && !outbox.stop.is_set() {
            self.fill_transition(&outbox);
            if !self.pending.is_empty() || self.cursor.revision >= newest {
                break;
            }
            self.fill_revision(&outbox, newest)?;
        }
        if self.pending.is_empty() && self.unsaved > 0 {
            self.save();
        }
        Ok(())
    }

    /// Reads the events up to the next selected one. An event follows the revision that the store had then.
    fn fill_transition(&mut self, outbox: &Outbox) {
        while let Some(transition) = outbox.transitions.after(self.cursor.transition) {
            // After a backup was restored, the store may not have that revision.
            if transition.revision > self.cursor.revision && self.cursor.revision < outbox.store.snapshot().revision {
                return;
            }
            if self.target.filter.selects(&transition.content) {
                let recipient = Recipient { store: &outbox.scope, name: &self.target.name };
                self.pending.push_back(message::transition_notification(&recipient, self.cursor, transition));
                return;
            }
            self.cursor.transition = transition.number;
            self.pass();
        }
    }

    /// Reads the next revision, if the target receives revisions.
    fn fill_revision(&mut self, outbox: &Outbox, newest: u64) -> Result<(), String> {
        let filter = &self.target.filter;
        if !filter.selects_revisions() {
            self.cursor = Cursor { revision: newest, parts: 0, ..self.cursor };
            self.pass();
            return Ok(());
        }
        let recipient = Recipient { store: &outbox.scope, name: &self.target.name };
        let revision = self.cursor.revision + 1;
        let Some(found) = outbox.store.details(revision).map_err(|error| error.to_string())? else {
            let last = self.last_missing(revision, newest)?;
            self.pending.push_back(message::gap_notification(&recipient, self.cursor, last, clock::now()));
            return Ok(());
        };
        let outline = RevisionOutline::new(&found, &outbox.store).map_err(|error| error.to_string())?;
        let now = outbox.store.snapshot();
        let made = message::revision_notifications(&recipient, filter, &outbox.base_url, self.cursor, outline, &now);
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
            if found.map_err(|error| error.to_string())?.is_empty() { missing = middle } else { kept = middle }
        }
        Ok(missing)
    }

    fn save(&mut self) {
        self.unsaved = 0;
        if let Err(error) = self.outbox.cursors.advance(&self.target.name, self.cursor) {
            let error = error.to_string();
            let (recipient, error) = (self.target.name.as_str(), escaped(&error));
            let store = &self.outbox.store;
            if store.is_shared() && store.health().is_err() {
                // Whoever writes now has the cursors that count, and notifies.
                self.outbox.stop.set();
                tracing::warn!(recipient, "this server notifies nobody any more: {error}");
            } else {
                tracing::warn!(recipient, "a restart repeats notifications: {error}");
            }
        }
        self.outbox.transitions.forget(self.outbox.cursors.least_transition(&self.outbox.names));
    }
}

/// The wait after some failures in a row and one more: between half of it and all of it, so that several targets at one
/// host do not come back together.
pub(super) fn backoff(failures: u32, random: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX));
    doubled.min(LONGEST_WAIT).mul_f64(0.5 + random / 2.0)
}

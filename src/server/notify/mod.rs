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
//! is written after each delivery, and a thread that reads on from there ([`delivery`]). States of sources and expiring
//! certificates are in no history, so [`transitions`] logs these few, in a bounded file. An event waits for the revision
//! that the store had when it happened.
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

mod certificates;
pub(crate) mod change_text;
mod chat;
pub(crate) mod config;
mod cursors;
mod delivery;
mod event_filter;
pub(crate) mod events;
mod message;
mod outbox;
mod sink;
mod sources;
mod state_files;
#[cfg(test)]
mod tests;
mod transitions;

use std::sync::mpsc;

use crate::model::Diagnostic;
use crate::server::prelude::*;
use config::NotificationTarget;
use delivery::Delivery;

pub(super) use delivery::{FAILED, SENT};
pub(crate) use outbox::Outbox;

/// How long the end of the process waits for a delivery. The next start repeats one that was interrupted.
const LEAVE: Duration = Duration::from_secs(2);

/// Delivers notifications until it is dropped.
pub(crate) struct Notifier {
    outbox: Arc<Outbox>,
    /// One for each thread, which drops the other end.
    ended: Vec<mpsc::Receiver<()>>,
}

impl Notifier {
    /// Starts to deliver. A new target receives later revisions, so this comes before the first commit.
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
        let outbox = Arc::new(Outbox::open(store, &targets, base_url)?);
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

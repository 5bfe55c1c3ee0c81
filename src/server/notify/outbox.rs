//! What all targets have in common: the cursors into the history, the events that are in none, and the signal to stop.

use std::cell::OnceCell;
use std::sync::Condvar;

use super::{
    certificates, config::NotificationTarget, cursors::Cursors, sources::SourceSnapshot, transitions::TransitionLog,
};
use crate::reconcile::sources::handle::SourceObserver;
use crate::server::prelude::*;

/// How often a thread without work checks whether it must end.
pub(super) const IDLE: Duration = Duration::from_millis(500);
/// How often the certificates are looked at without a revision.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(3600);

/// State shared by the threads of all targets.
pub(crate) struct Outbox {
    pub(super) store: Arc<Store>,
    pub(super) cursors: Cursors,
    pub(super) transitions: TransitionLog,
    /// The names of the targets.
    pub(super) names: Vec<String>,
    /// The URL before the path of every resource.
    pub(super) base_url: String,
    /// Tells the notifications of this store from those of others.
    pub(super) scope: [u8; 32],
    pub(super) stop: StopSignal,
}

#[derive(Default)]
pub(super) struct StopSignal {
    stopped: Lock<bool>,
    changed: Condvar,
}

impl StopSignal {
    pub(super) fn set(&self) {
        *self.stopped.lock() = true;
        self.changed.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.stopped.lock()
    }

    /// Waits until the signal is set, or for a time.
    pub(super) fn wait(&self, time: Duration) {
        let stopped = self.stopped.lock();
        drop(self.changed.wait_timeout_while(stopped, time, |stopped| !*stopped));
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("names", &self.names).finish_non_exhaustive()
    }
}

impl SourceObserver for Outbox {
    fn observe(&self, handle: &SourceHandle) {
        let now = OnceCell::new();
        let now = || now.get_or_init(|| SourceSnapshot::new(handle, self.store.snapshot()));
        self.transitions.note_source(
            &handle.source,
            self.store.snapshot().revision,
            || now().observed(),
            |r#type, reported| now().describe(r#type, reported, &self.base_url),
        );
    }
}

impl Outbox {
    /// Opens what is pending for the targets in the store. Fails if that cannot be asked for now.
    pub(super) fn open(store: &Arc<Store>, targets: &[NotificationTarget], base_url: &str) -> Result<Self, StoreError> {
        let transitions = TransitionLog::open(store)?;
        let names = targets.iter().map(|target| target.name.as_str());
        let cursors = Cursors::open(store, transitions.last(), names)?;
        Ok(Self {
            store: Arc::clone(store),
            cursors,
            transitions,
            names: targets.iter().map(|target| target.name.clone()).collect(),
            base_url: base_url.to_owned(),
            scope: blake3::derive_key("edgewright 2026 notifications", &store.root_secret()),
            stop: StopSignal::default(),
        })
    }

    /// Looks at the certificates after each revision, and from time to time, until the end.
    pub(super) fn watch_certificates(&self) {
        let mut last: Option<(u64, Instant)> = None;
        while !self.stop.is_set() {
            let snapshot = self.store.snapshot();
            let revision = snapshot.revision;
            if last.is_none_or(|(seen, at)| seen != revision || at.elapsed() >= CERTIFICATE_INTERVAL) {
                let found = certificates::expiring(&snapshot, clock::now(), &self.base_url);
                self.transitions.note_certificates(revision, found);
                last = Some((revision, Instant::now()));
            }
            drop(snapshot);
            self.stop.wait(IDLE);
        }
    }

    /// How many revisions each target has not been told of.
    pub(in crate::server) fn lags(&self) -> impl Iterator<Item = (&str, u64)> {
        let newest = self.store.snapshot().revision;
        self.names.iter().map(move |name| (name.as_str(), newest.saturating_sub(self.cursors.get(name).revision)))
    }
}

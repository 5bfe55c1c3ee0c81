//! A followed source: its loop's health, and a way to control it.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock, mpsc::Sender},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::{Options, cancel::Cancel, health::Health, status::StatusBoard};

/// The grace period for a run during shutdown.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// The interval of looks without events, unless the source sets another one.
pub(crate) const INTERVAL: Duration = Duration::from_secs(30);

/// A source to follow.
#[derive(Debug, Clone)]
pub(crate) struct FollowedSource {
    /// The manifests, the name and the limits.
    pub options: Options,
    /// The files and folders whose changes cause a look.
    pub watched: Vec<PathBuf>,
    /// How often to look without an event.
    pub interval: Duration,
    /// Where the manifests are, to show it.
    pub location: SourceLocation,
}

/// Where the manifests of a source are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    /// The files and folders on disk; in a repository, at most one path inside it.
    pub paths: Vec<PathBuf>,
    /// The repository, if the source is one.
    pub repository: Option<PathBuf>,
    /// The branch, tag or commit in the repository.
    pub revision: String,
}

/// A request to the loop.
#[derive(Debug)]
pub(super) enum Signal {
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
    /// Where its manifests are.
    pub(crate) location: SourceLocation,
    /// How often it looks without an event.
    pub(crate) interval: Duration,
    /// What it last attempted, found and applied.
    pub(crate) status: StatusBoard,
    signals: Sender<Signal>,
    cancel: Cancel,
    stopped: OnceLock<Instant>,
}

impl Following {
    /// Creates the status of a loop that starts now and receives the other end of `signals`.
    pub(super) fn new(
        options: &Options,
        location: SourceLocation,
        interval: Duration,
        signals: Sender<Signal>,
    ) -> Self {
        Self {
            source: options.source.clone(),
            // A loop that looks more often still has the time of the default.
            health: Health::new(3 * interval.max(INTERVAL)),
            location,
            interval,
            status: StatusBoard::default(),
            signals,
            cancel: options.cancel.clone(),
            stopped: OnceLock::new(),
        }
    }

    /// Whether the loop was asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.cancel.is_cancelled()
    }

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
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Takes over a loop and the signal of its first run.
    pub(super) fn new(following: Arc<Following>, first: oneshot::Receiver<()>, thread: JoinHandle<()>) -> Self {
        Self { following, first: Some(first), thread: Some(thread) }
    }

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

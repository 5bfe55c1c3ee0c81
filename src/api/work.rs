//! Long-running work: off the async workers, limited in number, and cancelled when its client disconnects (D52).

use std::{num::NonZero, sync::Arc};

use axum::http::header;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::answer::ApiError;
use crate::{background::lower_priority, model::code::Code, reconcile::cancel::Cancel};

/// The number of concurrent runs.
const RUNNING: usize = 2;
/// The Retry-After of a rejected request, in seconds.
const RETRY_AFTER: &str = "5";
/// The largest body that is handled without another thread.
pub(super) const SMALL: usize = 16 << 10;

/// Limits the number of runs.
pub(super) struct Work {
    /// What runs, for the error of a rejected request.
    what: &'static str,
    most: usize,
    places: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Work {
    /// Creates a limit with so many slots for waiting runs, whose requests are in memory.
    pub(super) fn new(what: &'static str, waiting: usize) -> Self {
        let most = RUNNING + waiting;
        Self { what, most, places: Arc::new(Semaphore::new(most)), running: Arc::new(Semaphore::new(RUNNING)) }
    }
}

/// A slot for a running or waiting request, released on drop.
pub(super) struct Permit {
    place: OwnedSemaphorePermit,
    running: Arc<Semaphore>,
}

impl Work {
    /// Takes a slot, or returns the error for a client that must retry.
    pub(super) fn place(&self) -> Result<Permit, ApiError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            ApiError::of(Code::Unavailable, format!("{} other {} are running or waiting", self.most, self.what))
                .header(header::RETRY_AFTER, RETRY_AFTER)
        })?;
        Ok(Permit { place, running: Arc::clone(&self.running) })
    }
}

impl Permit {
    /// Waits for its turn and runs. If the client disconnects, the run does not start, or is cancelled at its next
    /// step.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(Cancel) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Self { place, running } = self;
        let turn = running.acquire_owned().await.map_err(|_| unanswered())?;
        let guard = CancelOnDrop(Cancel::default());
        let cancel = guard.0.clone();
        let (sender, answer) = oneshot::channel();
        // A thread of its own, because a lowered priority cannot be raised again.
        let thread = std::thread::Builder::new().name("reconciliation".into()).spawn(move || {
            // Both are held until the work ends, even if the client disconnects.
            let _held = (place, turn);
            lower_priority();
            let _ = sender.send(work(cancel));
        });
        thread.map_err(|_| unanswered())?;
        answer.await.map_err(|_| unanswered())?
    }
}

/// Renders many resources off the async workers. Requests wait for their turn without a limit, because all that each
/// of them holds is a snapshot.
pub(super) struct Renderings(Arc<Semaphore>);

impl Renderings {
    /// Leaves half of the processors to other requests.
    pub(super) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Semaphore::new((processors / 2).max(1))))
    }

    /// Waits for its turn and runs.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let turn = Arc::clone(&self.0).acquire_owned().await.map_err(|_| unanswered())?;
        let answer = tokio::task::spawn_blocking(move || {
            let _held = turn;
            work()
        });
        answer.await.map_err(|_| unanswered())?
    }
}

/// Cancels a run on drop; no effect after the run.
struct CancelOnDrop(Cancel);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs work on a body; with a large one, on another thread, so that other requests do not wait.
pub(super) async fn with_body<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if size <= SMALL {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| unanswered())
}

fn unanswered() -> ApiError {
    ApiError::of(Code::Internal, "internal error while handling the request")
}

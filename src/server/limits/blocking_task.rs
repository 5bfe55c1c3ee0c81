//! Work off the async workers: it waits for the turn of its place, and is cancelled when its client disconnects (D52).

use tokio::sync::oneshot;

use super::slots::WorkPlace;
use crate::{background::lower_priority, reconcile::run::cancel::Cancel, server::http::api_error::ApiError};

/// The largest body that is handled without another thread.
pub(crate) const SMALL: usize = 16 << 10;

impl WorkPlace {
    /// Waits for its turn and runs with a lower priority. If the client disconnects, the run does not start, or is
    /// cancelled at its next step.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(Cancel) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (done, _place) = self.run_held(work).await?;
        done
    }

    /// Runs like [`Self::run`], and returns the place, which is held until it is dropped.
    pub(crate) async fn run_held<T: Send + 'static>(
        mut self,
        work: impl FnOnce(Cancel) -> T + Send + 'static,
    ) -> Result<(T, Self), ApiError> {
        self.wait_for_turn().await;
        let guard = CancelOnDrop(Cancel::default());
        let cancel = guard.0.clone();
        let (sender, answer) = oneshot::channel();
        // A thread of its own, because a lowered priority cannot be raised again.
        let thread = std::thread::Builder::new().name("reconciliation".into()).spawn(move || {
            // Held until the work ends, even if the client disconnects.
            let held = self;
            lower_priority();
            let _ = sender.send((work(cancel), held));
        });
        thread.map_err(|_| ApiError::internal())?;
        answer.await.map_err(|_| ApiError::internal())
    }

    /// Waits for its turn and renders.
    pub(crate) async fn render<T: Send + 'static>(
        mut self,
        work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.wait_for_turn().await;
        let held = move || {
            let _held = self;
            work()
        };
        blocking(held).await
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
pub(crate) async fn with_body<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if size <= SMALL {
        return Ok(work());
    }
    blocking(move || Ok(work())).await
}

/// Runs work on a thread that it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::internal())?
}

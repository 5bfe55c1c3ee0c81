//! Work that takes its time: off the async workers, a few at once, and given up when nobody waits for it (D52).

use std::sync::Arc;

use axum::http::header;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::ApiError;
use crate::{model::code::Code, reconcile::cancel::Cancel};

/// How many runs there are at once.
const RUNNING: usize = 2;
/// How many more may wait, with the bodies that they are about.
const WAITING: usize = 8;
/// When a client that was turned away may come again, in seconds.
const RETRY_AFTER: &str = "5";
/// The body of a request that is handled without another thread.
const SMALL: usize = 16 << 10;

/// Bounds the runs that requests ask for.
pub struct Work {
    places: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Default for Work {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(RUNNING + WAITING)), running: Arc::new(Semaphore::new(RUNNING)) }
    }
}

/// A place among those who run or wait. It is given back when it is dropped.
pub struct Place {
    place: OwnedSemaphorePermit,
    running: Arc<Semaphore>,
}

impl Work {
    /// A place, or the answer to a client that has to come again.
    pub fn place(&self) -> Result<Place, ApiError> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            ApiError::of(
                Code::Unavailable,
                format!("{} other reconciliations are running or waiting", RUNNING + WAITING),
            )
            .header(header::RETRY_AFTER, RETRY_AFTER)
        })?;
        Ok(Place { place, running: Arc::clone(&self.running) })
    }
}

impl Place {
    /// Waits for its turn, and runs. When the client goes away, the run does not begin, or is given up at its next step.
    pub async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(Cancel) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let Self { place, running } = self;
        let turn = running.acquire_owned().await.map_err(|_| unanswered())?;
        let guard = Guard(Cancel::default());
        let cancel = guard.0.clone();
        let answer = tokio::task::spawn_blocking(move || {
            // Both are kept as long as the work lasts, whoever still waits for it.
            let _held = (place, turn);
            work(cancel)
        });
        answer.await.map_err(|_| unanswered())?
    }
}

/// Gives a run up when it is dropped. After the run it changes nothing.
struct Guard(Cancel);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Does what has to do with a body of some size. With a large one no other request has to wait.
pub async fn with_body<T: Send + 'static>(
    size: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    if size <= SMALL {
        return Ok(work());
    }
    tokio::task::spawn_blocking(work).await.map_err(|_| unanswered())
}

fn unanswered() -> ApiError {
    ApiError::of(Code::Internal, "the request could not be answered")
}

//! The slots of a class of work: how much of it runs and waits at a time, which share of that an owner has, and how work that
//! waits takes turns by owner (D52).
//!
//! # The problem
//!
//! Three plans at a time are as many as a machine can compute without delaying requests. If the places are for whoever comes
//! first, one pipeline with fifty jobs has them all for an hour, and an apply that fixes production is the fifty-first.
//!
//! # The idea
//!
//! Each class of work says how many run, how many wait, and which part of both an owner has (`admissions` is the table of all).
//! Some places are *reserved* for those that apply something and may do so, and an owner has a share of each [`SlotPool`] apart,
//! so that its own dry runs do not delay its applies either. Of those that wait, the owner whose turn is next gets the place
//! that is free, and not the request that came first (`queue`).
//!
//! ```text
//! reconciliations: 3 run, 1 of them reserved; 1 of an owner runs and 1 waits, in each pool
//!
//! ci   dry run   runs
//! ci   dry run   waits
//! ci   dry run   429: the owner has its share
//! web  dry run   runs
//! api  dry run   waits: the third place is reserved
//! ci   apply     runs, at once, in the reserved place
//! ```
//!
//! # What it never does
//!
//! A place is taken when the body of a request is there, so a slow sender has none. Nothing that runs is stopped for others;
//! who waits and disconnects frees its place. Connections (D97) and bodies (D98), which cost little to begin again, are taken
//! from others instead, by tables of their own.

pub(crate) mod admissions;
pub(crate) mod classes;
mod queue;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;

use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;
use classes::Class;
use queue::{PlaceQueue, TurnGroup};

pub(crate) use classes::SlotPool;
pub(in crate::server) use queue::NoPlace;

/// The slots of a class.
pub(crate) struct Slots(Arc<SlotState>);

struct SlotState {
    class: Class,
    queue: Lock<PlaceQueue>,
    /// The requests over the share of their owner.
    refused_owner: AtomicU64,
    /// The requests for which no place was free.
    refused_full: AtomicU64,
}

/// The place of a request that runs or waits for its turn, until it is dropped.
pub(crate) struct WorkPlace {
    state: Arc<SlotState>,
    group: TurnGroup,
    number: u64,
    /// Tells that the turn has come, if the request had to wait.
    turn: Option<oneshot::Receiver<()>>,
}

impl Slots {
    /// Creates the places of a class.
    pub(crate) fn new(class: Class) -> Self {
        let (refused_owner, refused_full) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(SlotState { class, queue: Lock::default(), refused_owner, refused_full }))
    }

    /// Takes a place, or returns the error for a client that must retry: 429 if its owner has its share, and 503 if the
    /// server has no more. Without an owner, there is no share.
    pub(crate) fn enter(&self, owner: Option<&Id>, pool: SlotPool) -> Result<WorkPlace, ApiError> {
        self.take(owner, pool).map_err(|refusal| self.refused(refusal))
    }

    /// Takes a place like [`Self::enter`], for callers with an answer of their own.
    fn take(&self, owner: Option<&Id>, pool: SlotPool) -> Result<WorkPlace, NoPlace> {
        let (state, group) = (&self.0, TurnGroup { owner: owner.cloned(), pool });
        let (number, turn) = state.queue.lock().enter(&state.class, &group)?;
        Ok(WorkPlace { state: Arc::clone(state), group, number, turn })
    }

    /// Takes one of the shared places for work whose owner is not known, or not yet.
    pub(in crate::server) fn anonymous(&self) -> Result<WorkPlace, NoPlace> {
        self.take(None, SlotPool::Shared)
    }

    /// Returns the error of [`Self::enter`] if it would return one now.
    pub(crate) fn check(&self, owner: &Id, pool: SlotPool) -> Result<(), ApiError> {
        let (state, group) = (&self.0, TurnGroup { owner: Some(owner.clone()), pool });
        let checked = state.queue.lock().check(&state.class, &group);
        checked.map_err(|refusal| self.refused(refusal))
    }

    /// Takes one of the shared places for an owner.
    pub(crate) fn for_owner(&self, owner: &Id) -> Result<WorkPlace, ApiError> {
        self.enter(Some(owner), SlotPool::Shared)
    }

    fn refused(&self, refusal: NoPlace) -> ApiError {
        let SlotState { class, refused_owner, refused_full, .. } = &*self.0;
        let (whose, code, counter, counts) = match refusal {
            NoPlace::Owner(counts) => (class.whose, Code::RateLimited, refused_owner, counts),
            NoPlace::Full(counts) => ("the server", Code::Unavailable, refused_full, counts),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let counts = match class.waiting {
            0 => counts.running.to_string(),
            _ => format!("{} running, {} waiting", counts.running, counts.waiting),
        };
        let (what, seconds) = (class.what, class.retry_after);
        let wait = number_of(seconds as usize, "second");
        let message = format!("{whose} has reached its limit of {what} ({counts}); send the request again in {wait}");
        ApiError::with_code(code, message).retry_after(seconds)
    }

    /// The label of the metrics.
    pub(crate) fn name(&self) -> &'static str {
        self.0.class.name
    }

    /// The number of requests that may run.
    pub(super) fn most(&self) -> usize {
        self.0.class.running
    }

    /// The number of requests that run.
    pub(crate) fn running(&self) -> usize {
        self.0.queue.lock().all().running
    }

    /// The number of requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.queue.lock().all().waiting
    }

    /// The number of refused requests by reason.
    pub(crate) fn refusals(&self) -> [(&'static str, u64); 2] {
        let SlotState { refused_owner, refused_full, .. } = &*self.0;
        [("owner", refused_owner.load(Ordering::Relaxed)), ("full", refused_full.load(Ordering::Relaxed))]
    }
}

impl WorkPlace {
    /// The pool that it was taken in.
    pub(crate) fn pool(&self) -> SlotPool {
        self.group.pool
    }

    /// Counts a request that runs for its owner from now on, which was not known before. Fails if the owner has its share.
    pub(super) fn assign(&mut self, owner: &Id) -> Result<(), NoPlace> {
        if self.group.owner.is_some() {
            return Ok(());
        }
        let group = TurnGroup { owner: Some(owner.clone()), pool: self.group.pool };
        self.state.queue.lock().transfer(&self.state.class, &self.group, &group)?;
        self.group = group;
        Ok(())
    }

    /// Waits until the request may run.
    pub(crate) async fn wait_for_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            // The queue has the sender until the turn comes, and outlives this place.
            let _ = turn.await;
        }
        self.turn = None;
    }
}

impl Drop for WorkPlace {
    fn drop(&mut self) {
        let next = self.state.queue.lock().leave(&self.state.class, &self.group, self.number);
        for turn in next {
            // A place that is being dropped meanwhile gives its turn to the next one.
            let _ = turn.send(());
        }
    }
}

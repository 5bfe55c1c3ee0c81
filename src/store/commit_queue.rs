//! The queue of commits that are applied but not durable yet. `group_commit` has what happens to them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::commit::batch::Tip;
use super::commit::unchained_batch::UnchainedBatch;
use super::error::{Declined, StoreError};
use crate::lock::Lock;
use crate::model::{Fault, Key, Snapshot};

/// The commits that are applied but not durable yet.
pub(crate) struct CommitQueue {
    state: Lock<QueueState>,
    /// Writers pass it on their way into the queue. Whoever holds it keeps new ones out.
    entrance: Lock<()>,
}

/// The queue, under its lock.
pub(super) struct QueueState {
    /// The state after everything in the queue.
    pub(super) tip: Arc<Snapshot>,
    /// The position of the last batch in the queue.
    pub(super) position: u64,
    /// The end of the durable log.
    pub(super) durable: Tip,
    /// The next commit drops tombstones of deletions up to this revision.
    pub(super) forget: u64,
    pub(super) waiting: Vec<QueuedWriter>,
    /// Whether a writer leads or is about to.
    pub(super) led: bool,
    /// When a checkpoint may be tried again after a failure.
    pub(super) checkpoint_after: Option<Instant>,
}

/// A writer in the queue.
pub(super) struct QueuedWriter {
    pub(super) batch: Option<PreparedBatch>,
    pub(super) turn: Sender<Turn>,
}

/// Receives a batch when it is prepared.
pub(super) type PreparedBatch = Receiver<Result<UnchainedBatch, StoreError>>;

/// A message to a waiting writer.
pub(super) enum Turn {
    /// To lead the queue, in which it is the first.
    Lead,
    /// The commit is durable, or has failed.
    Settled(Result<(), StoreError>),
}

/// A writer's place in the queue.
pub(super) struct Ticket {
    pub(super) turn: Receiver<Turn>,
    pub(super) leads: bool,
    pub(super) prepared: Sender<Result<UnchainedBatch, StoreError>>,
}

/// A commit in the queue. It must be settled: it can be its turn to lead, and others wait for it then.
#[must_use]
pub(crate) struct QueuedCommit<E> {
    pub(super) ticket: Ticket,
    pub(super) outcome: Result<Arc<Snapshot>, Declined<E>>,
    pub(super) began: Instant,
    pub(super) doubts: Vec<(Key, Fault)>,
}

impl<E> QueuedCommit<E> {
    /// Why the caller itself declined the commit, if it did.
    pub(crate) fn declined(&self) -> Option<&E> {
        match &self.outcome {
            Err(Declined::Declined(reason)) => Some(reason),
            _ => None,
        }
    }

    /// The invariants of which nobody can tell after the commit whether they hold, each with the resource that it depends on.
    pub(crate) fn doubts(&self) -> &[(Key, Fault)] {
        &self.doubts
    }
}

impl CommitQueue {
    /// Creates an empty queue after a state.
    pub(crate) fn new(tip: Arc<Snapshot>, durable: Tip) -> Self {
        let position = durable.position;
        let state =
            QueueState { tip, position, durable, forget: 0, waiting: Vec::new(), led: false, checkpoint_after: None };
        Self { state: Lock::new(state), entrance: Lock::default() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, QueueState> {
        // After a panic of another writer the queue is as before its commit, because entering the queue comes last.
        self.state.lock()
    }

    /// Locks the queue for a writer that enters it.
    pub(super) fn lock_for_entry(&self) -> MutexGuard<'_, QueueState> {
        drop(self.close());
        self.lock()
    }

    /// Keeps new writers out while the returned value lives; those in the queue are not held up.
    pub(super) fn close(&self) -> MutexGuard<'_, ()> {
        self.entrance.lock()
    }
}

impl QueueState {
    /// Enters the queue; with no batch, only to wait for the commits before it. `tip` is the state that the batch makes, if it
    /// makes one.
    pub(super) fn enter(&mut self, with_batch: bool, tip: Option<Arc<Snapshot>>) -> Ticket {
        let ((turn, awaited), (prepared, received)) = (channel(), channel());
        self.position += u64::from(with_batch);
        if let Some(tip) = tip {
            self.tip = tip;
        }
        self.waiting.push(QueuedWriter { batch: with_batch.then_some(received), turn });
        Ticket { turn: awaited, leads: !std::mem::replace(&mut self.led, true), prepared }
    }
}

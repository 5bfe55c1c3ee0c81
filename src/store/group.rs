//! Group commit: commits are applied one after the other, and all that wait are made durable by one write and one sync.
//!
//! A commit is applied to the tip, which is ahead of what is durable, and takes its place in the queue. The first to wait
//! leads: it hands the whole queue to the engine, and while the disk works the next commits line up. Nobody sees a revision
//! before it is durable.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, atomic::Ordering},
};

use super::{
    Attempt, CommitError, Committed, Declined, Revision, Store, StoreError, codec,
    engine::{Batch, Tip},
    history::{Outcome, Record, chain},
    touched::touched,
};
use crate::model::{code::Code, key::Key, operation::Operation, snapshot::Snapshot};

/// The commits that are applied and not durable yet.
pub(super) struct Queue {
    line: Mutex<Line>,
    turn: Condvar,
}

struct Line {
    /// The state after everything in the queue.
    tip: Arc<Snapshot>,
    /// The log after everything in the queue.
    log: Tip,
    /// The log that is durable.
    durable: Tip,
    /// Tombstones of deletions up to this revision go with the next commit.
    forget: u64,
    waiting: Vec<Waiting>,
    /// The last ticket that was given out.
    last: Ticket,
    /// Whether somebody is with the engine.
    leading: bool,
}

/// Set when a commit is durable, or has failed.
type Ticket = Arc<OnceLock<Result<(), StoreError>>>;

struct Waiting {
    batch: Batch,
    revision: Option<Revision>,
    ticket: Ticket,
}

impl Queue {
    /// An empty queue behind a state.
    pub(super) fn new(tip: Arc<Snapshot>, log: Tip) -> Self {
        let last = Ticket::default();
        let _ = last.set(Ok(()));
        Self {
            line: Mutex::new(Line { tip, log, durable: log, forget: 0, waiting: Vec::new(), last, leading: false }),
            turn: Condvar::new(),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // A panic of another writer left the line as it was before its commit: it is changed last, and all at once.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    pub(super) fn commit_in_group<E>(
        &self,
        attempt: Attempt,
        make: impl FnOnce(&Snapshot) -> Result<Vec<Operation>, E>,
    ) -> Result<Committed, Declined<E>> {
        let failed = |error| Declined::Commit(CommitError::Failed(error));
        self.health().map_err(failed)?;
        let mut line = self.queue.line();
        let (ticket, outcome) = match make(&line.tip) {
            Err(error) => (Arc::clone(&line.last), Err(Declined::Declined(error))),
            Ok(operations) if operations.is_empty() => (Arc::clone(&line.last), Ok(Arc::clone(&line.tip))),
            Ok(operations) => match line.tip.apply(&operations, attempt.at) {
                Ok((next, changed)) => {
                    let next = Arc::new(next.without_tombstones(std::mem::take(&mut line.forget)));
                    let batch = self.batch(&line, &attempt, &operations, &next, &changed).map_err(failed)?;
                    let changed = changed.into_iter().collect();
                    let revision = Revision { snapshot: Arc::clone(&next), changed };
                    (line.enter(batch, Some(revision)), Ok(next))
                }
                Err(refusal) => {
                    let calls = operations.iter().map(ToString::to_string).collect();
                    let message = CommitError::Refused(refusal.clone()).to_string();
                    let record = self.record_of(&line, &attempt, Outcome::Refused, message, calls);
                    let batch = self.sealed(&line, record, None, Vec::new()).map_err(failed)?;
                    (line.enter(batch, None), Err(Declined::Commit(CommitError::Refused(refusal))))
                }
            },
        };
        // Even a refusal waits: it may rest on a commit that is not durable yet.
        let durable = self.wait(line, &ticket);
        match (durable, outcome) {
            (Ok(()), Ok(snapshot)) => Ok(Committed { snapshot }),
            (Err(error), Ok(_)) => Err(failed(error)),
            (_, Err(error)) => Err(error),
        }
    }

    pub(super) fn note_in_group(
        &self,
        attempt: Attempt,
        outcome: Outcome,
        message: String,
        calls: Vec<String>,
    ) -> Result<(), StoreError> {
        self.health()?;
        let mut line = self.queue.line();
        let record = self.record_of(&line, &attempt, outcome, message, calls);
        let batch = self.sealed(&line, record, None, Vec::new())?;
        let ticket = line.enter(batch, None);
        self.wait(line, &ticket)
    }

    /// The batch of a commit that makes a revision.
    fn batch(
        &self,
        line: &Line,
        attempt: &Attempt,
        operations: &[Operation],
        next: &Snapshot,
        changed: &BTreeSet<Key>,
    ) -> Result<Batch, StoreError> {
        let changes = codec::changes(next, changed)?;
        let calls = operations.iter().map(ToString::to_string).collect();
        let mut record = self.record_of(line, attempt, Outcome::Applied, String::new(), calls);
        record.revision = Some(next.revision);
        record.resources = touched(&line.tip, next, changed, &attempt.places, &self.digest_key)
            .map_err(|error| StoreError::new(Code::Internal, error.to_string()))?;
        let mut hasher = blake3::Hasher::new_keyed(&self.digest_key);
        for (key, value) in &changes {
            for part in [key.as_bytes(), value.as_deref().unwrap_or_default()] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        record.changes = hasher.finalize().to_hex().to_string();
        self.sealed(line, record, Some(next), changes)
    }

    fn record_of(
        &self,
        line: &Line,
        attempt: &Attempt,
        outcome: Outcome,
        message: String,
        calls: Vec<String>,
    ) -> Record {
        Record {
            position: line.log.position + 1,
            revision: None,
            at: attempt.at,
            milliseconds: u64::try_from(attempt.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            author: attempt.author.clone(),
            outcome,
            message,
            calls,
            resources: Vec::new(),
            changes: String::new(),
        }
    }

    fn sealed(
        &self,
        line: &Line,
        record: Record,
        next: Option<&Snapshot>,
        changes: Vec<(String, Option<Vec<u8>>)>,
    ) -> Result<Batch, StoreError> {
        let position = record.position;
        let record: Arc<[u8]> = record.to_bytes()?.into();
        let hash = chain(&line.log.hash, &record);
        let (revision, next_order) = match next {
            Some(next) => (next.revision, next.next_order()),
            None => (line.log.revision, line.log.next_order),
        };
        Ok(Batch { position, revision, next_order, record, hash, changes })
    }

    /// Waits until a ticket is settled, and leads where nobody else does.
    fn wait<'s>(&'s self, mut line: MutexGuard<'s, Line>, ticket: &Ticket) -> Result<(), StoreError> {
        loop {
            if let Some(settled) = ticket.get() {
                return settled.clone();
            }
            if line.leading {
                line = self.queue.turn.wait(line).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            line.leading = true;
            let group = std::mem::take(&mut line.waiting);
            drop(line);
            let led = Led { store: self, group };
            let appended = led.append();
            line = self.queue.line();
            led.settle(&mut line, appended);
        }
    }

    fn publish(&self, revision: Revision) {
        self.current.store(Arc::clone(&revision.snapshot));
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| subscriber.send(revision.clone()).is_ok());
    }

    /// Gives the engine the whole state when its log has grown long: the log ends here and now, while nothing is being
    /// appended, and the state is written by a thread of its own.
    fn checkpoint_if_wanted(&self, line: &mut Line) {
        if !self.engine.wants_checkpoint() || self.checkpointing.swap(true, Ordering::AcqRel) {
            return;
        }
        let state = self.snapshot();
        line.forget = state.revision.saturating_sub(self.retention.records);
        if let Err(error) = self.engine.rotate() {
            tracing::warn!(code = %error.code, "no checkpoint was written: {error}");
            return self.checkpointing.store(false, Ordering::Release);
        }
        let (engine, retention, forget) = (Arc::clone(&self.engine), self.retention, line.forget);
        let running = Arc::clone(&self.checkpointing);
        let thread = std::thread::Builder::new().name("checkpoint".into()).spawn(move || {
            let state = Snapshot::clone(&state).without_tombstones(forget);
            // A record that cannot be written must not leave a base without it.
            let written =
                codec::records(&state).and_then(|records| engine.checkpoint(&mut records.into_iter(), &retention));
            if let Err(error) = written {
                tracing::warn!(code = %error.code, "no checkpoint was written: {error}");
            }
            running.store(false, Ordering::Release);
        });
        let mut checkpoint = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
        match thread {
            Ok(thread) => *checkpoint = Some(thread),
            Err(_) => self.checkpointing.store(false, Ordering::Release),
        }
    }
}

/// A group on its way to the engine.
struct Led<'s> {
    store: &'s Store,
    group: Vec<Waiting>,
}

impl Led<'_> {
    fn append(&self) -> Result<(), StoreError> {
        let after = self.group.first().map_or(0, |first| first.batch.position.saturating_sub(1));
        let batches: Vec<Batch> = self.group.iter().map(|waiting| waiting.batch.clone()).collect();
        let appended = catch_unwind(AssertUnwindSafe(|| self.store.engine.append(after, &batches)));
        appended.unwrap_or_else(|_| Err(StoreError::new(Code::StoreFailed, "the engine failed while it was writing")))
    }

    fn settle(mut self, line: &mut Line, appended: Result<(), StoreError>) {
        if let (Ok(()), Some(last)) = (&appended, self.group.last()) {
            line.durable = Tip::after(&last.batch);
        }
        for waiting in self.group.drain(..) {
            if let (Ok(()), Some(revision)) = (&appended, waiting.revision) {
                self.store.publish(revision);
            }
            let _ = waiting.ticket.set(appended.clone());
        }
        if let Err(error) = appended {
            // What has lined up meanwhile was applied to a state that will never be.
            for waiting in line.waiting.drain(..) {
                let _ = waiting.ticket.set(Err(error.clone()));
            }
            line.tip = self.store.snapshot();
            line.log = line.durable;
        } else {
            self.store.checkpoint_if_wanted(line);
        }
        line.leading = false;
        self.store.queue.turn.notify_all();
    }
}

impl Line {
    /// Puts a batch into the queue, and makes it the tip.
    fn enter(&mut self, batch: Batch, revision: Option<Revision>) -> Ticket {
        let ticket = Ticket::default();
        self.log = Tip::after(&batch);
        if let Some(revision) = &revision {
            self.tip = Arc::clone(&revision.snapshot);
        }
        self.last = Arc::clone(&ticket);
        self.waiting.push(Waiting { batch, revision, ticket: Arc::clone(&ticket) });
        ticket
    }
}

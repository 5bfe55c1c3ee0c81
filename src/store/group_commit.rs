//! Group commit: commits are applied one after another, and all that wait are made durable by one write and one sync.
//!
//! # The problem
//!
//! A sync takes as long as thousands of commits. One for each would limit the store to what the disk syncs in a second, and
//! whoever applies a commit meanwhile would have to wait, or build on something that may never exist.
//!
//! # The idea
//!
//! Commits are applied to the *tip*, which is ahead of what is durable, and enter a queue. The first writer in it leads: it
//! takes the whole queue, chains the commits, and gives them to the engine, while further writers apply theirs to the new tip
//! and queue behind. Headers and entries are prepared outside the lock, so writers prepare theirs in parallel.
//!
//! ```text
//! A   applies, leads: sync .......... done, answered
//! B         applies, queued ......... leads: sync of B, C, D .... done, answered
//! C             applies, queued ............................... answered
//! D                 applies, queued ........................... answered
//! ```
//!
//! The busier the store, the larger the groups: the time of a commit stays about two syncs. A commit that changes nothing
//! waits, too, because it may rest on one that is not durable yet.
//!
//! If a group fails, none of it was kept, and neither is what has entered since: it was applied to a state that will never
//! exist. The tip returns to what is durable, and all of them are told.
//!
//! # What it never does
//!
//! A revision is not visible before it is durable, and none becomes visible while somebody holds the lock of the queue. No
//! panic of a writer stops the others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use super::attempt::Attempt;
use super::commit::batch::Tip;
use super::commit::codec;
use super::commit::encoding::{StateTransition, encode_changes};
use super::commit::entries::CommitEntries;
use super::commit::header::{CommitHeader, Outcome, ScrubbedRecord};
use super::commit::unchained_batch::{UnchainedBatch, header, scrub_header};
use super::commit_queue::{PreparedBatch, QueueState, QueuedCommit, Ticket, Turn};
use super::error::{CommitError, Declined, StoreError};
use super::history::change_window::bytes_of;
use super::metrics;
use super::open_store::Store;
use super::revision::{Revision, changed_resources};
use super::session_kind::SessionKind;
use super::speculative::{NextSnapshot, NextState};
use crate::model::{Author, Code, Snapshot};
use crate::syntax::text::without_tokens;

/// The changes of a revision from which on freeing the one before it, and writing the revision, take long.
const LARGE_CHANGE: usize = 1000;
/// How long a reader may use a revision that was replaced before its memory is left to that reader.
const LONGEST_USE: Duration = Duration::from_secs(10);
/// How often to check whether a revision is still in use.
const USE_CHECK: Duration = Duration::from_millis(20);

impl Store {
    /// Makes the next revision as [`Store::commit_with`] does, also from the result of an earlier speculative commit.
    pub(crate) fn commit_next<E>(
        &self,
        attempt: Attempt,
        make: impl FnOnce(&Snapshot) -> Result<NextState, E>,
    ) -> Result<Arc<Snapshot>, Declined<E>> {
        let entered = self.enter(attempt, make)?;
        self.settle(entered)
    }

    /// Puts a commit into the queue, without waiting until it is durable.
    pub(crate) fn enter<E>(
        &self,
        attempt: Attempt,
        make: impl FnOnce(&Snapshot) -> Result<NextState, E>,
    ) -> Result<QueuedCommit<E>, Declined<E>> {
        let began = Instant::now();
        if let Err(error) = self.health() {
            let failed = Err(Declined::Commit(CommitError::Failed(error)));
            metrics::commit(&failed, began);
            return failed;
        }
        let mut queue = self.queue.lock_for_entry();
        let before = Arc::clone(&queue.tip);
        let mut doubts = Vec::new();
        // Even what changes nothing waits: it may rest on a commit that is not durable yet.
        let (ticket, outcome) = match make(&before) {
            Err(error) => (queue.enter(false, None), Err(Declined::Declined(error))),
            Ok(proposed) if proposed.is_empty() => (queue.enter(false, None), Ok(before)),
            Ok(proposed) => {
                let attempt = proposed.dated(attempt);
                match proposed.next(&before, attempt.at) {
                    Ok(NextSnapshot { after, changed, doubts: found }) => {
                        doubts = found;
                        let after = after.without_tombstones(std::mem::take(&mut queue.forget));
                        let after = after.committed_by(&attempt.author).noting_transfers(&before, &changed);
                        let after = Arc::new(after);
                        let applied = StateTransition { before, after: Arc::clone(&after), changed };
                        let ticket = queue.enter(true, Some(Arc::clone(&after)));
                        prepare(&ticket, queue, |position| {
                            self.prepare_revision(position, &attempt, &proposed.into_calls(), &applied)
                        });
                        (ticket, Ok(after))
                    }
                    Err(refusal) => {
                        let message = CommitError::Refused(refusal.clone()).to_string();
                        let ticket = queue.enter(true, None);
                        prepare(&ticket, queue, |position| {
                            self.prepare_note(position, &attempt, Outcome::Refused, message, proposed.into_calls())
                        });
                        (ticket, Err(Declined::Commit(CommitError::Refused(refusal))))
                    }
                }
            }
        };
        Ok(QueuedCommit { ticket, outcome, began, doubts })
    }

    /// Waits until a commit in the queue is durable.
    pub(crate) fn settle<E>(&self, entered: QueuedCommit<E>) -> Result<Arc<Snapshot>, Declined<E>> {
        let began = entered.began;
        let committed = self.settle_uncounted(entered);
        metrics::commit(&committed, began);
        committed
    }

    /// Like [`Store::settle`], for what is no commit in the metrics.
    pub(crate) fn settle_uncounted<E>(&self, entered: QueuedCommit<E>) -> Result<Arc<Snapshot>, Declined<E>> {
        let QueuedCommit { ticket, outcome, .. } = entered;
        match (self.wait_until_settled(ticket), outcome) {
            (Err(error), Ok(_)) => Err(Declined::Commit(CommitError::Failed(error))),
            (_, outcome) => outcome,
        }
    }

    /// The state after all commits in the queue, which need not be durable yet.
    pub(crate) fn tip(&self) -> Arc<Snapshot> {
        Arc::clone(&self.queue.lock().tip)
    }

    /// Records an attempt that changed nothing in the state in the history.
    pub fn note(&self, attempt: Attempt, outcome: Outcome, message: String) -> Result<(), StoreError> {
        self.note_prepared(|position| self.prepare_note(position, &attempt, outcome, message, Vec::new()))
    }

    /// Records that earlier records, and former values of resources, were scrubbed.
    pub(super) fn note_scrubbed(&self, scrubbed: Vec<ScrubbedRecord>, message: String) -> Result<(), StoreError> {
        self.note_prepared(|position| {
            UnchainedBatch::new(scrub_header(position, scrubbed, message), &[], CommitEntries::default(), None)
        })
    }

    fn note_prepared(&self, make: impl FnOnce(u64) -> Result<UnchainedBatch, StoreError>) -> Result<(), StoreError> {
        self.health()?;
        let mut queue = self.queue.lock_for_entry();
        let ticket = queue.enter(true, None);
        prepare(&ticket, queue, make);
        self.wait_until_settled(ticket)
    }

    /// The header and entries of a commit that makes a revision.
    fn prepare_revision(
        &self,
        position: u64,
        attempt: &Attempt,
        calls: &[String],
        applied: &StateTransition,
    ) -> Result<UnchainedBatch, StoreError> {
        let StateTransition { before, after, changed } = applied;
        let header = CommitHeader {
            revision: Some(after.revision),
            ..header(position, attempt, Outcome::Applied, attempt.note.clone())
        };
        let mut entries = encode_changes(applied, attempt, self.keyring.as_deref())?;
        entries.append(codec::rejections(before, after)?);
        let changed = changed_resources(before, after, changed);
        let made = Revision { snapshot: Arc::clone(after), changed, author: attempt.author.clone(), at: attempt.at };
        let unchained = UnchainedBatch::new(header, calls, entries, Some(made))?;
        self.quota.add(&attempt.author, unchained.size());
        Ok(unchained)
    }

    fn prepare_note(
        &self,
        position: u64,
        attempt: &Attempt,
        outcome: Outcome,
        message: String,
        calls: Vec<String>,
    ) -> Result<UnchainedBatch, StoreError> {
        // What was refused can be anything, also a token in the place of an ID.
        let hidden = |text: String| without_tokens(&text).into_owned();
        let calls: Vec<String> = calls.into_iter().map(hidden).collect();
        let header = header(position, attempt, outcome, hidden(message));
        let unchained = UnchainedBatch::new(header, &calls, CommitEntries::default(), None)?;
        self.quota.add(&attempt.author, unchained.size());
        Ok(unchained)
    }

    /// Waits until a ticket is settled, and leads when it is its turn.
    fn wait_until_settled(&self, ticket: Ticket) -> Result<(), StoreError> {
        if ticket.leads {
            self.flush_group();
        }
        loop {
            match ticket.turn.recv() {
                Ok(Turn::Lead) => self.flush_group(),
                Ok(Turn::Settled(settled)) => return settled,
                // Unreachable: a leader tells every writer of its group.
                Err(_) => return Err(StoreError::new(Code::Internal, "a commit was lost in the queue")),
            }
        }
    }

    /// Makes everything in the queue durable, and passes the lead on.
    fn flush_group(&self) {
        let (group, start) = {
            let mut queue = self.queue.lock();
            (std::mem::take(&mut queue.waiting), queue.durable)
        };
        let (mut turns, batches): (Vec<_>, Vec<_>) = group.into_iter().map(|it| (it.turn, it.batch)).unzip();
        let appended = self.append(batches.into_iter().flatten(), start);
        let mut queue = self.queue.lock();
        self.last_write_failed.store(appended.is_err(), Ordering::Release);
        let settled = match appended {
            Ok((end, revisions)) => {
                self.position.store(end.position, Ordering::Release);
                // Whoever holds the lock relies on it that nothing becomes visible meanwhile: a run that has searched the
                // history for drift would not look again.
                self.publish(revisions);
                queue.durable = end;
                if self.session == SessionKind::Long {
                    self.checkpoint_if_wanted(&mut queue);
                }
                Ok(())
            }
            Err(error) => {
                // What has entered meanwhile was applied to a state that will never exist.
                let entered = std::mem::take(&mut queue.waiting);
                turns.extend(entered.into_iter().map(|waiting| waiting.turn));
                queue.tip = self.snapshot();
                queue.position = queue.durable.position;
                Err(error)
            }
        };
        queue.led = queue.waiting.iter().any(|next| next.turn.send(Turn::Lead).is_ok());
        drop(queue);
        for turn in turns {
            let _ = turn.send(Turn::Settled(settled.clone()));
        }
    }

    /// Chains the batches of a group and gives them to the engine. Returns the end of the log after them, and the revisions
    /// that they make, with their sizes in the store.
    fn append(
        &self,
        group: impl Iterator<Item = PreparedBatch>,
        start: Tip,
    ) -> Result<(Tip, Vec<(Revision, usize)>), StoreError> {
        let (mut batches, mut revisions, mut end, mut failed) = (Vec::new(), Vec::new(), start, None);
        for prepared in group {
            let lost = |_| Err(StoreError::new(Code::Internal, "a commit failed while its record was prepared"));
            match prepared.recv().unwrap_or_else(lost) {
                Ok(unchained) => {
                    let (batch, made) = unchained.chained(&end);
                    revisions.extend(made.map(|made| (made, bytes_of(&batch.entries))));
                    end = Tip::after(&batch);
                    batches.push(batch);
                }
                Err(error) => failed = Some(error),
            }
        }
        if batches.is_empty() {
            return failed.map_or(Ok((end, revisions)), Err);
        }
        let began = Instant::now();
        let appended = match failed {
            // The commits after it in the group were applied to its state.
            Some(error) => Err(error),
            None => {
                let appended = catch_unwind(AssertUnwindSafe(|| self.engine.append(start.position, &batches)));
                appended.unwrap_or_else(|_| {
                    // Nobody knows what the engine has written.
                    self.broken.store(true, Ordering::Release);
                    Err(StoreError::new(Code::StoreFailed, "the engine failed while writing"))
                })
            }
        };
        metrics::group(batches.len(), appended.is_ok(), began);
        if appended.is_ok() {
            self.feed_copy(&batches);
        }
        appended.map(|()| (end, revisions))
    }

    /// Makes the revisions of a group visible, with their sizes in the store.
    pub(super) fn publish(&self, revisions: Vec<(Revision, usize)>) {
        // Each has all changes of those before it, and waits until no reader is about to take the one that it replaces.
        let Some(newest) = revisions.last().map(|(newest, _)| Arc::clone(&newest.snapshot)) else { return };
        let replaced = self.current.swap(newest);
        let mut freed = 0;
        {
            let mut subscribers = self.subscribers.lock();
            for (revision, _) in &revisions {
                freed += revision.changed.len();
                if matches!(revision.author, Author::Source { .. }) {
                    self.declared.forget_sorted(&revision.changed, |changed| &changed.key);
                }
                subscribers.retain(|it| it.send(revision.clone()).is_ok());
            }
        }
        let mut evicted = self.change_window.push(revisions);
        freed += evicted.replaced;
        if freed >= LARGE_CHANGE {
            evicted.snapshots.push(replaced);
            free_later(evicted.snapshots);
        }
    }
}

/// Prepares the batch of a ticket, of which the position is known, outside the lock.
fn prepare(
    ticket: &Ticket,
    queue: MutexGuard<'_, QueueState>,
    prepare: impl FnOnce(u64) -> Result<UnchainedBatch, StoreError>,
) {
    let position = queue.position;
    drop(queue);
    let prepared = catch_unwind(AssertUnwindSafe(|| prepare(position)));
    // A writer that panicked must still lead if it is its turn, or all others would wait for ever.
    let failed = |_| Err(StoreError::new(Code::Internal, "a commit failed while its record was prepared"));
    let _ = ticket.prepared.send(prepared.unwrap_or_else(failed));
}

/// Keeps revisions until nobody else uses them. If the last reader freed one, all other requests of its thread would
/// wait.
fn free_later(replaced: Vec<Arc<Snapshot>>) {
    let wait = move || {
        let began = Instant::now();
        let in_use = || replaced.iter().any(|snapshot| Arc::strong_count(snapshot) > 1);
        while in_use() && began.elapsed() < LONGEST_USE {
            std::thread::sleep(USE_CHECK);
        }
    };
    // Without a thread, the last reader frees it.
    let _ = std::thread::Builder::new().name("free".into()).spawn(wait);
}

//! The newest commits of a store in memory, until its local copy has them.
//!
//! Neither a commit nor a read waits for the copy. If it falls behind, because its disk is slow or full, these are forgotten,
//! and it reads what it lacks in the store.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::commit::batch::Batch;
use crate::lock::Lock;

/// The most bytes of commits that wait.
const MOST_BYTES: usize = 16 << 20;

/// The commits for a local copy, and its progress.
#[derive(Default)]
pub(crate) struct CopyFeed {
    waiting: Lock<WaitingCommits>,
    /// The last commit in the copy.
    copied: AtomicU64,
    is_failing: AtomicBool,
}

/// Commits without a gap, oldest first.
#[derive(Default)]
struct WaitingCommits {
    batches: VecDeque<Batch>,
    bytes: usize,
}

impl CopyFeed {
    /// Adds the next commits.
    pub(super) fn push(&self, batches: &[Batch]) {
        let mut waiting = self.waiting.lock();
        waiting.bytes += batches.iter().map(Batch::size).sum::<usize>();
        waiting.batches.extend(batches.iter().cloned());
        if waiting.bytes > MOST_BYTES {
            *waiting = WaitingCommits::default();
        }
    }

    /// Takes the commits after one position and up to another one; none if the first of them is not in memory.
    pub(super) fn take(&self, after: u64, upto: u64) -> Vec<Batch> {
        let (mut waiting, mut taken) = (self.waiting.lock(), Vec::new());
        while waiting.batches.front().is_some_and(|first| first.position <= upto)
            && let Some(batch) = waiting.batches.pop_front()
        {
            waiting.bytes -= batch.size();
            taken.extend(Some(batch).filter(|batch| batch.position > after));
        }
        if taken.first().is_some_and(|first| first.position != after + 1) {
            taken.clear();
        }
        taken
    }

    /// Notes up to which position the copy has everything.
    pub(super) fn note(&self, copied: u64) {
        self.copied.store(copied, Ordering::Relaxed);
    }

    /// The position up to which the copy has everything.
    pub(super) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }

    /// Notes whether the copy cannot be written. Returns what was noted before.
    pub(super) fn set_failing(&self, is_failing: bool) -> bool {
        self.is_failing.swap(is_failing, Ordering::Relaxed)
    }

    /// Whether the copy cannot be written.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::store::commit::entries::CommitEntries;

    fn batch(position: u64, bytes: usize) -> Batch {
        let (header, calls) = (Bytes::from(vec![0; bytes]), Bytes::new());
        let entries = CommitEntries::default();
        Batch { position, revision: 1, next_order: 1, header, digest: [0; 32], hash: [0; 32], calls, entries }
    }

    #[test]
    fn what_waits_is_bounded_and_has_no_gap() {
        let feed = CopyFeed::default();
        let take = |after, upto| feed.take(after, upto).iter().map(|batch| batch.position).collect::<Vec<_>>();
        feed.push(&[batch(4, 10), batch(5, 10), batch(6, 10)]);
        assert_eq!(take(3, 5), [4, 5]);
        feed.push(&[batch(7, 10)]);
        assert_eq!(take(6, 7), [7]);
        assert!(take(7, 9).is_empty());
        feed.push(&[batch(9, 10)]);
        assert!(take(7, 9).is_empty(), "the eighth is missing");
        feed.push(&[batch(10, 10)]);
        feed.push(&[batch(11, MOST_BYTES)]);
        assert!(take(9, 20).is_empty());
        feed.push(&[batch(12, 10)]);
        assert_eq!(take(11, 12), [12]);
    }
}

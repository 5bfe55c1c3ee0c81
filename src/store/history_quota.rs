//! How much of the history each owner of API keys and each followed source has filled within a day (D77).
//!
//! # The problem
//!
//! The history has a limit of records and bytes, and the oldest go first. Whoever may change one resource can change it
//! 100,000 times in a minute, and then nobody can say what others did, or bring it back.
//!
//! # The idea
//!
//! Each owner has a leaky bucket of an eighth of the history, which drains within a day. Of a bucket, only the time is kept
//! at which it will be empty again if nothing more comes. A record moves that time by its part of a day, the larger one of
//! records and bytes:
//!
//! ```text
//! 12,500 records fill a share, so a record costs a day / 12,500 = 6.9 s
//! 128 MiB fill one, so a record of 1 MiB costs a day / 128 = 675 s
//! empty_at = max(empty_at, now) + cost
//! full     = empty_at is more than a day from now
//! ```
//!
//! A record costs at most a quarter of a day: the first apply of a configuration can be larger than a share, and has to be
//! possible.
//!
//! The process's own count measures the time, so no clock that is set empties a share or fills one. After a restart, the
//! records of the last day are counted again, from their headers alone.
//!
//! # What it never does
//!
//! Shares never refuse a change after its record was made, and never a read or dry run. Admins without a scope have no
//! share, since they could create owners with shares of their own; commands have the files.

use std::time::{Duration, Instant};

use foldhash::HashMap;

use super::commit::header::Retention;
use crate::lock::Lock;
use crate::model::{Author, Id};

/// An owner can fill one of so many parts of the history within [`DAY`].
const PARTS: u64 = 8;
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
/// The least share: a history with small limits protects nothing anyway.
const LEAST_RECORDS: u64 = 1000;
const LEAST_BYTES: u64 = 8 << 20;
/// A record counts for at most one of so many parts of a share: the first apply of a configuration can be larger than a share.
const PARTS_OF_A_RECORD: u64 = 4;

/// The shares of all owners.
#[derive(Debug)]
pub(super) struct HistoryQuota {
    /// The records and bytes that fill a share.
    records: u64,
    bytes: u64,
    /// The last record of earlier processes.
    pub(super) position: u64,
    began: Instant,
    /// When the share of each owner is empty again, if it fills nothing more: a full share takes a day.
    empty_at: Lock<HashMap<Id, Duration>>,
}

impl HistoryQuota {
    /// Divides a history whose last record has this position.
    pub(super) fn new(retention: &Retention, position: u64) -> Self {
        Self {
            records: (retention.records / PARTS).max(LEAST_RECORDS),
            bytes: (retention.bytes / PARTS).max(LEAST_BYTES),
            position,
            began: Instant::now(),
            empty_at: Lock::default(),
        }
    }

    /// Counts a record of an author, and what undoes it.
    pub(super) fn add(&self, author: &Author, bytes: usize) {
        if let Some(holder) = holder_of(author) {
            self.fill(&holder, bytes as u64, self.now());
        }
    }

    /// The time since a day before the process began, so that records of earlier ones have a time, too.
    pub(super) fn now(&self) -> Duration {
        DAY + self.began.elapsed()
    }

    pub(super) fn fill(&self, owner: &Id, bytes: u64, at: Duration) {
        let mut shares = self.empty_at.lock();
        // Owners and sources come and go. An empty share counts as an unknown one, so these go before the map grows.
        if shares.len() == shares.capacity() && !shares.contains_key(owner) {
            shares.retain(|_, empty_at| *empty_at > at);
        }
        let empty_at = shares.entry(owner.clone()).or_default();
        *empty_at = (*empty_at).max(at) + self.cost(bytes);
    }

    /// How long it takes until the share has the room of a record again.
    fn cost(&self, bytes: u64) -> Duration {
        let part = (1.0 / self.records as f64).max(bytes as f64 / self.bytes as f64);
        DAY.mul_f64(part.min(1.0 / PARTS_OF_A_RECORD as f64))
    }

    /// The time until an owner can record something again, if its share is full.
    pub(super) fn wait(&self, owner: &Id, now: Duration) -> Option<Duration> {
        let empty_at = *self.empty_at.lock().get(owner)?;
        empty_at.checked_sub(now + DAY).filter(|wait| !wait.is_zero())
    }
}

/// The holder of the share that an author's records count for: the owner of its API key, or the source that is
/// followed.
pub(super) fn holder_of(author: &Author) -> Option<Id> {
    match author {
        Author::Api { owner, .. } => Some(owner.clone()),
        Author::Source { through: Some((_, owner)), .. } | Author::Rollback { through: Some((_, owner)), .. } => {
            Some(owner.clone())
        }
        // No owner has a blank in its ID.
        Author::Source { source, through: None, .. } => Some(Id::new(&format!("source {source}"))),
        Author::Rollback { through: None, .. } | Author::Local => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// The shares of a history of 80,000 records and 80 MiB.
    fn shares() -> HistoryQuota {
        HistoryQuota::new(&Retention { records: 80_000, bytes: 80 << 20, ..Retention::default() }, 0)
    }

    /// How many records of so many bytes an owner can add at a time.
    fn room(shares: &HistoryQuota, owner: &str, bytes: u64, at: Duration) -> usize {
        let owner = Id::new(owner);
        let adds = std::iter::from_fn(|| shares.wait(&owner, at).is_none().then(|| shares.fill(&owner, bytes, at)));
        adds.take(100_000).count()
    }

    #[test]
    fn an_owner_has_a_share_that_is_empty_again_after_a_day() {
        let shares = shares();
        // One more than the share: the last one fills it over.
        let full = 10_000..=10_002;
        assert!(full.contains(&room(&shares, "usr_a", 100, DAY)));
        let wait = shares.wait(&Id::new("usr_a"), DAY).unwrap();
        assert!(wait <= HOUR / 100, "{wait:?}");
        assert!((2_499..=2_501).contains(&room(&shares, "usr_a", 100, DAY + 6 * HOUR)));
        assert!(full.contains(&room(&shares, "usr_b", 100, DAY)), "each owner has its own");
        assert!(full.contains(&room(&shares, "usr_a", 100, 4 * DAY)), "it is never more than empty");
    }

    #[test]
    fn large_records_count_by_their_size_and_one_never_fills_a_share() {
        let shares = shares();
        assert!((10..=12).contains(&room(&shares, "usr_a", 1 << 20, DAY)));
        assert!((4..=5).contains(&room(&shares, "usr_b", 1 << 40, DAY)));
        let wait = shares.wait(&Id::new("usr_b"), DAY).unwrap();
        assert!(wait <= 6 * HOUR, "{wait:?}");
    }

    #[test]
    fn shares_that_are_empty_again_take_no_memory() {
        let shares = shares();
        shares.fill(&Id::new("usr_busy"), 1 << 40, 364 * DAY);
        for day in 1..365_u32 {
            for number in 0..10 {
                shares.fill(&Id::new(&format!("usr_{day}_{number}")), 100, day * DAY);
            }
        }
        let known = shares.empty_at.lock().len();
        assert!(known < 100, "{known}");
        assert!(shares.empty_at.lock().contains_key(&Id::new("usr_busy")));
    }

    #[test]
    fn every_author_with_an_api_key_and_every_followed_source_counts() {
        let (key, owner) = (Id::new("ak_1"), Id::new("usr_a"));
        let api = Author::Api { key: key.clone(), owner: owner.clone() };
        let through = Author::source("shop", None).with_api_key(key.clone(), owner.clone());
        let back = Author::Rollback { to: 1, source: None, rejected: Vec::new(), through: Some((key, owner.clone())) };
        for author in [api, through, back] {
            assert_eq!(holder_of(&author), Some(owner.clone()));
        }
        assert_eq!(holder_of(&Author::Local), None);
        assert_eq!(holder_of(&Author::source("shop", None)), Some(Id::new("source shop")), "it is followed");
    }
}

//! The limit of an API key's requests in a second, as a token bucket (D98).
//!
//! A bucket is one number: the time at which it will be full again. A request moves it by what it costs, a second divided by
//! the limit, and is refused if that would be more than two seconds away. So a key that has been quiet may send twice its
//! rate at once, nothing has to fill buckets, and a key that was forgotten begins with a full one.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::sync::Cache;

use crate::server::prelude::*;

/// The seconds whose requests a key may send at once.
const BURST_SECONDS: u64 = 2;
/// The most buckets. A key without one begins with a full one.
const MOST_BUCKETS: usize = 32 << 10;
const SECOND: u64 = 1_000_000_000;

/// The buckets of all keys.
#[derive(Debug)]
pub(super) struct RateLimiter {
    /// The nanoseconds that a request costs; 0 for no limit.
    cost: u64,
    /// When each bucket will be full again, in nanoseconds.
    buckets: Cache<Id, Arc<AtomicU64>>,
    began: Instant,
}

impl RateLimiter {
    /// Creates a limit of requests in a second; 0 for none.
    pub(super) fn new(per_second: u32) -> Self {
        let cost = SECOND.checked_div(u64::from(per_second)).map_or(0, |cost| cost.max(1));
        Self { cost, buckets: Cache::new(MOST_BUCKETS), began: Instant::now() }
    }

    /// Takes a request from the bucket of a key, or returns in how many seconds there will be one.
    pub(super) fn take(&self, key: &Id) -> Result<(), u64> {
        if self.cost == 0 {
            return Ok(());
        }
        self.take_at(key, u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX / 2))
    }

    fn take_at(&self, key: &Id, now: u64) -> Result<(), u64> {
        let Ok(bucket) = self.buckets.get_or_insert_with(key, || Ok::<_, Infallible>(Arc::default()));
        let most = now.saturating_add(BURST_SECONDS * SECOND);
        let next = |full: u64| Some(full.max(now).saturating_add(self.cost)).filter(|next| *next <= most);
        let taken = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        taken.map(drop).map_err(|full| full.saturating_add(self.cost).saturating_sub(most).div_ceil(SECOND).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(limiter: &RateLimiter, key: &str, now: u64) -> u64 {
        let key = Id::new(key);
        (0..1000).take_while(|_| limiter.take_at(&key, now).is_ok()).count() as u64
    }

    #[test]
    fn a_key_has_a_burst_and_then_its_rate() {
        let limiter = RateLimiter::new(10);
        assert_eq!(taken(&limiter, "ak_1", SECOND), 20);
        assert_eq!(limiter.take_at(&Id::new("ak_1"), SECOND), Err(1));
        assert_eq!(taken(&limiter, "ak_2", SECOND), 20, "each key has a bucket of its own");
        assert_eq!(taken(&limiter, "ak_1", 2 * SECOND), 10);
        assert_eq!(taken(&limiter, "ak_1", 100 * SECOND), 20, "a bucket is never more than full");
    }

    #[test]
    fn no_rate_is_no_limit() {
        let limiter = RateLimiter::new(0);
        assert!((0..10_000).all(|_| limiter.take(&Id::new("ak_1")).is_ok()));
    }

    #[test]
    fn the_table_is_bounded() {
        let limiter = RateLimiter::new(10);
        for number in 0..MOST_BUCKETS * 2 {
            let now = number as u64 * SECOND;
            assert_eq!(limiter.take_at(&Id::new(&format!("ak_{number}")), now), Ok(()));
        }
        assert!(limiter.buckets.len() <= MOST_BUCKETS);
    }
}

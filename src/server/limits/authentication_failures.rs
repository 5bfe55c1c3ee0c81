//! Failed authentication, slowed down per address (D98).
//!
//! A scanner or a client with an old token asks a thousand times a second, and each answer costs a look-up, a line in a log
//! and an entry in another. Locking an address out would be worse: a proxy has one address for everybody behind it, and
//! whoever can send wrong tokens from there would lock out the rest. So only *answers to invalid tokens* wait or change. The
//! token is checked first, and a valid one is served whatever else comes from its address.
//!
//! The first 20 failures of a minute are answered at once: somebody is trying a new token. Then each answer waits for 100 ms,
//! which limits a client that asks one after the other to ten in a second. What waits has places of its own, since a waiting
//! answer holds a connection; what does not fit, and everything after 1,000, is refused. This cannot prevent guessing 160
//! random bits, and need not.

use std::convert::Infallible;

use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

use crate::server::http::api_error::ApiError;
use crate::server::http::proxy::subnet_of;
use crate::server::prelude::*;

/// The time in which failures are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// The failures of an address that are answered at once, and those that are answered at all.
const AT_ONCE: u32 = 20;
const ANSWERED: u32 = 1000;
/// How long an answer waits.
const DELAY: Duration = Duration::from_millis(100);
/// The most answers that wait: waiting must not cost more than it prevents.
const MOST_WAITING: usize = 64;
/// The most addresses that are remembered.
const MOST_ADDRESSES: usize = 4096;

/// The failures of an address.
struct FailureCount {
    since: Instant,
    count: u32,
}

/// The failures of all addresses, in bounded memory: an attacker with many addresses does not displace one with many
/// failures, which is asked for more often.
pub(super) struct Failures {
    counts: Cache<IpAddr, Arc<Lock<FailureCount>>>,
    waiting: Semaphore,
}

impl Default for Failures {
    fn default() -> Self {
        Self { counts: Cache::new(MOST_ADDRESSES), waiting: Semaphore::new(MOST_WAITING) }
    }
}

impl Failures {
    /// Counts a failure, and waits if the address has many. Returns an error in place of the answer if it has too many.
    pub(super) async fn slow_down(&self, address: IpAddr) -> Option<ApiError> {
        let count = self.add(address, Instant::now());
        if count <= AT_ONCE {
            return None;
        }
        if count <= ANSWERED
            && let Ok(_place) = self.waiting.try_acquire()
        {
            tokio::time::sleep(DELAY).await;
            return None;
        }
        let message = "too many requests without a valid API key from this address";
        Some(ApiError::with_code(Code::RateLimited, message).retry_after(WINDOW.as_secs()))
    }

    /// Counts a failure, and returns how many the address has had in its window.
    fn add(&self, address: IpAddr, now: Instant) -> u32 {
        let none = || Ok::<_, Infallible>(Arc::new(Lock::new(FailureCount { since: now, count: 0 })));
        let Ok(count) = self.counts.get_or_insert_with(&subnet_of(address), none);
        let mut failures = count.lock();
        if now.saturating_duration_since(failures.since) >= WINDOW {
            *failures = FailureCount { since: now, count: 0 };
        }
        failures.count = failures.count.saturating_add(1);
        failures.count
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn failures_are_counted_by_address_and_forgotten_after_a_while() {
        let (failures, now) = (Failures::default(), Instant::now());
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert_eq!((failures.add(one, now), failures.add(one, now), failures.add(other, now)), (1, 2, 1));
        assert_eq!(failures.add(one, now + WINDOW), 1);
        // A subscriber has a whole /64.
        let v6 = |last: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last));
        assert_eq!((failures.add(v6(1), now), failures.add(v6(2), now)), (1, 2));
        let mapped = IpAddr::from(Ipv4Addr::new(192, 0, 2, 2).to_ipv6_mapped());
        assert_eq!(failures.add(mapped, now), 2);
    }

    #[test]
    fn the_table_is_bounded_and_keeps_who_fails_most() {
        let (failures, now) = (Failures::default(), Instant::now());
        let busy = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..50 {
            failures.add(busy, now);
        }
        for number in 0..100_000_u32 {
            failures.add(IpAddr::from(Ipv4Addr::from(number.wrapping_add(0x0a00_0000))), now);
        }
        assert_eq!(failures.add(busy, now), 51);
        assert!(failures.counts.len() <= MOST_ADDRESSES);
    }

    #[tokio::test(start_paused = true)]
    async fn many_failures_wait_and_too_many_are_refused() {
        let (failures, address) = (Failures::default(), IpAddr::from([192, 0, 2, 1]));
        let began = tokio::time::Instant::now();
        for _ in 0..AT_ONCE {
            assert!(failures.slow_down(address).await.is_none());
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(failures.slow_down(address).await.is_none());
        let waited = began.elapsed();
        assert!(waited >= DELAY, "{waited:?}");
        for _ in AT_ONCE + 1..ANSWERED {
            failures.add(address, Instant::now());
        }
        assert!(failures.slow_down(address).await.is_some());
        assert_eq!(began.elapsed(), waited, "a refusal does not wait");
        assert!(failures.slow_down(IpAddr::from([192, 0, 2, 2])).await.is_none());
    }
}

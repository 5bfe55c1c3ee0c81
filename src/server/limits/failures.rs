//! Failed authentication, slowed down per address (D98). Only answers to invalid tokens wait or change: a valid token is
//! served whatever else comes from its address, which may be that of a proxy.

use std::{
    hash::BuildHasher,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;

use super::{
    rates::too_many,
    slots::{Slots, classes},
};
use crate::server::http::{proxy::site_of, response::ApiError};

/// The time in which failures are counted.
const WINDOW: Duration = Duration::from_secs(60);
/// The failures of an address that are answered at once, and those that are answered at all.
const AT_ONCE: u32 = 20;
const ANSWERED: u32 = 1000;
/// How long an answer waits.
const DELAY: Duration = Duration::from_millis(100);
/// The table has this many sets of this many addresses.
const SETS: usize = 512;
const WAYS: usize = 8;

/// The failures of an address.
#[derive(Debug, Clone, Copy)]
struct Failing {
    address: IpAddr,
    since: Instant,
    count: u32,
}

/// The failures of all addresses, in bounded memory.
pub(super) struct Failures {
    sets: Vec<Mutex<Vec<Failing>>>,
    hasher: RandomState,
    waiting: Slots,
}

impl Default for Failures {
    fn default() -> Self {
        let sets = (0..SETS).map(|_| Mutex::new(Vec::new())).collect();
        Self { sets, hasher: RandomState::default(), waiting: Slots::new(classes::DELAYED_ANSWERS) }
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
            && let Ok(_place) = self.waiting.anonymous()
        {
            tokio::time::sleep(DELAY).await;
            return None;
        }
        Some(too_many("too many requests without a valid API key from this address", WINDOW.as_secs()))
    }

    /// Counts a failure, and returns how many the address has had in its window.
    fn add(&self, address: IpAddr, now: Instant) -> u32 {
        let address = site_of(address);
        let at = usize::try_from(self.hasher.hash_one(address) % SETS as u64).unwrap_or_default();
        let Some(set) = self.sets.get(at) else { return 0 };
        let mut set = set.lock().unwrap_or_else(PoisonError::into_inner);
        set.retain(|it| now.saturating_duration_since(it.since) < WINDOW);
        if let Some(known) = set.iter_mut().find(|it| it.address == address) {
            known.count = known.count.saturating_add(1);
            return known.count;
        }
        if set.len() >= WAYS {
            // An attacker with many addresses must not displace one with many failures.
            let least = set.iter().enumerate().min_by_key(|(_, it)| it.count).map(|(at, _)| at);
            if let Some(least) = least {
                set.swap_remove(least);
            }
        }
        set.push(Failing { address, since: now, count: 1 });
        1
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
        assert!(failures.sets.iter().all(|set| set.lock().unwrap_or_else(PoisonError::into_inner).len() <= WAYS));
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

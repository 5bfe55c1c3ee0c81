//! Refused requests without an API key in the access log: anybody can send any number of them, so a few of each address are
//! logged, and the others are counted (D87).

use crate::server::prelude::*;

/// The log target of requests.
pub(super) const TARGET: &str = "edgewright::access";
/// How long requests are counted before their number is logged.
const INTERVAL: Duration = Duration::from_secs(60);
/// The requests of an address that have lines of their own in an interval.
const LINES: u64 = 10;
/// The most addresses that are told apart in an interval.
const MOST: usize = 100;

/// The refused requests of an interval.
#[derive(Debug, Default)]
struct Refusals {
    ends: Option<Instant>,
    /// The number of requests of each address.
    by_address: BTreeMap<Option<IpAddr>, u64>,
    /// The number of requests of all other addresses.
    unlisted: u64,
}

impl Refusals {
    /// Counts a request. Returns whether it has a line of its own.
    fn add(&mut self, client: Option<IpAddr>, now: Instant) -> bool {
        self.ends.get_or_insert(now + INTERVAL);
        if self.by_address.len() >= MOST && !self.by_address.contains_key(&client) {
            self.unlisted += 1;
            return false;
        }
        let count = self.by_address.entry(client).or_default();
        *count += 1;
        *count <= LINES
    }

    /// The addresses and how many of their requests had no lines.
    fn unlogged(&self) -> Vec<(String, u64)> {
        let name = |client: &Option<IpAddr>| client.map_or_else(|| "unknown".to_owned(), |client| client.to_string());
        let known = self.by_address.iter().map(|(client, count)| (name(client), count.saturating_sub(LINES)));
        known.chain([("other clients".to_owned(), self.unlisted)]).filter(|(_, count)| *count > 0).collect()
    }

    fn log(&self) {
        for (client, count) in self.unlogged() {
            tracing::info!(target: TARGET, client, count, "further refused requests without an API key");
        }
    }
}

/// Limits the lines about refused requests without an API key.
#[derive(Debug, Default)]
pub(crate) struct AccessLogLimit(Lock<Refusals>);

impl AccessLogLimit {
    /// Counts a refused request of an address. Returns whether it has a line of its own.
    pub(super) fn add(self: &Arc<Self>, client: Option<IpAddr>) -> bool {
        let now = Instant::now();
        self.end(now);
        let (begins, has_line) = {
            let mut refusals = self.0.lock();
            (refusals.ends.is_none(), refusals.add(client, now))
        };
        if begins && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let floods = Arc::downgrade(self);
            // Otherwise a flood that ends would have its number logged only with the next one.
            runtime.spawn(async move {
                tokio::time::sleep(INTERVAL).await;
                if let Some(floods) = floods.upgrade() {
                    floods.end(Instant::now());
                }
            });
        }
        has_line
    }

    /// Logs what was counted, if the interval has ended.
    fn end(&self, now: Instant) {
        let ended = {
            let mut refusals = self.0.lock();
            refusals.ends.is_some_and(|ends| ends <= now).then(|| std::mem::take(&mut *refusals))
        };
        // Other requests do not wait for the log.
        if let Some(ended) = ended {
            ended.log();
        }
    }
}

impl Drop for AccessLogLimit {
    fn drop(&mut self) {
        self.0.lock().log();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::V4(number.into()))
    }

    #[test]
    fn a_flood_has_some_lines_and_a_count() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        assert!(refusals.add(address(1), now));
        let lines = (1..1000).filter(|_| refusals.add(address(1), now)).count();
        assert_eq!(lines as u64, LINES - 1);
        assert!(refusals.add(address(2), now));
        assert_eq!(refusals.unlogged(), [("0.0.0.1".to_owned(), 1000 - LINES)]);
        assert_eq!(refusals.ends, Some(now + INTERVAL));
    }

    #[test]
    fn many_addresses_have_one_count_together() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let lines = (0..100_000).filter(|number| refusals.add(address(*number), now)).count();
        assert_eq!((lines, refusals.by_address.len()), (MOST, MOST));
        assert_eq!(refusals.unlogged(), [("other clients".to_owned(), 100_000 - MOST as u64)]);
        // New addresses do not hide the ones that were there before.
        assert!(refusals.add(address(0), now));
    }
}

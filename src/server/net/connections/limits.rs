//! How many connections there may be, and how long a client may take (D97).

use std::{net::IpAddr, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::http::proxy::subnet_of;

/// The most descriptors that a server asks for. More would cost child processes that close all of them.
const MOST_DESCRIPTORS: u64 = 65_536;
/// The most connections by default: each needs memory, too.
const MOST_BY_DEFAULT: u64 = 4096;
/// The fewest connections by default, however few descriptors there are.
const FEWEST_BY_DEFAULT: u64 = 16;

/// The limits of the connections of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// The most connections at a time.
    pub(crate) most: usize,
    /// The most connections of one address. Without it, half of all, and any number from this machine.
    pub(crate) most_per_address: Option<usize>,
    /// The time for the TLS handshake, for the first request's head after it, and for each later head from its first byte.
    pub(crate) head: Duration,
    /// The time between two requests.
    pub(crate) idle: Duration,
    /// How long a client may take nothing of a response.
    pub(crate) stall: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            most: most_for_descriptors(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)),
            most_per_address: None,
            head: Duration::from_secs(15),
            idle: Duration::from_secs(60),
            stall: Duration::from_secs(30),
        }
    }
}

impl ConnectionLimits {
    /// The most connections of an address.
    pub(super) fn most_per_client(&self, address: IpAddr) -> usize {
        match self.most_per_address {
            Some(most) => most,
            None if address.is_loopback() => self.most,
            None => (self.most / 2).max(1),
        }
    }

    /// How often each connection is looked at.
    pub(super) fn interval(&self) -> Duration {
        let shortest = self.head.min(self.idle).min(self.stall);
        (shortest / 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
    }
}

/// The client that an address counts for. One client has 2⁶⁴ addresses of IPv6.
pub(super) fn client_address(address: IpAddr) -> IpAddr {
    let address = address.to_canonical();
    if address.is_loopback() { address } else { subnet_of(address) }
}

/// Raises the limit of descriptors as far as the process may, up to what a server has a use for.
pub(crate) fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(u64::MAX).min(MOST_DESCRIPTORS);
    if limit.current.is_some_and(|current| current < allowed) {
        // Refused, the lower limit stays, and is what counts below.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: limit.maximum });
    }
}

/// The connections for a limit of descriptors. The store, the manifests and other servers need some as well.
fn most_for_descriptors(descriptors: u64) -> usize {
    let reserve = (descriptors / 4).clamp(64, 1024);
    let most = descriptors.saturating_sub(reserve).clamp(FEWEST_BY_DEFAULT, MOST_BY_DEFAULT);
    usize::try_from(most).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_some_of_the_descriptors() {
        for (descriptors, most) in [(64, 16), (128, 64), (256, 192), (1024, 768), (65_536, 4096), (u64::MAX, 4096)] {
            assert_eq!(most_for_descriptors(descriptors), most, "{descriptors}");
        }
    }

    #[test]
    fn one_client_counts_once_whatever_its_address() {
        let same =
            |one: &str, other: &str| client_address(one.parse().unwrap()) == client_address(other.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:2"));
        assert!(same("192.0.2.7", "::ffff:192.0.2.7"));
        assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(!same("192.0.2.7", "192.0.2.8"));
        assert!(client_address("::1".parse().unwrap()).is_loopback());
    }

    #[test]
    fn this_machine_has_a_limit_only_if_it_is_set() {
        let limits = ConnectionLimits { most: 100, ..ConnectionLimits::default() };
        let (local, other) = ("127.0.0.1".parse().unwrap(), "192.0.2.7".parse().unwrap());
        assert_eq!((limits.most_per_client(local), limits.most_per_client(other)), (100, 50));
        let limits = ConnectionLimits { most_per_address: Some(7), ..limits };
        assert_eq!((limits.most_per_client(local), limits.most_per_client(other)), (7, 7));
    }
}

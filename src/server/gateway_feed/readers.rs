//! The gateways that have read their configuration from this process, and the revision that each got last.

use crate::server::prelude::*;
use crate::server::telemetry::latest_entries::LatestEntries;

/// The most gateways that are remembered.
const MOST_READERS: usize = 1000;

/// The last read of a gateway.
#[derive(Debug, Clone)]
pub(crate) struct GatewayRead {
    /// The API key.
    pub key: Id,
    /// The address.
    pub address: IpAddr,
    /// The revision.
    pub revision: u64,
    /// When it was read or confirmed.
    pub at: Timestamp,
}

/// The last read of each gateway: of a key at an address.
#[derive(Default)]
pub(crate) struct GatewayReads(LatestEntries<(Id, IpAddr), GatewayRead, MOST_READERS>);

impl GatewayReads {
    /// Notes that a gateway has a revision now.
    pub(super) fn note(&self, key: &Id, address: IpAddr, revision: u64) {
        let read = GatewayRead { key: key.clone(), address, revision, at: clock::now() };
        self.0.note((key.clone(), address), read);
    }

    /// The reads, those of the oldest revision first.
    pub(in crate::server) fn all(&self) -> Vec<GatewayRead> {
        let mut all: Vec<GatewayRead> = self.0.all().into_iter().map(|(_, read)| read).collect();
        all.sort_by_key(|read| read.revision);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_one_read_and_those_that_are_behind_come_first() {
        let (reads, key, address) = (GatewayReads::default(), Id::new("ak_1"), IpAddr::from([192, 0, 2, 1]));
        reads.note(&key, address, 1);
        reads.note(&key, address, 2);
        reads.note(&key, IpAddr::from([192, 0, 2, 2]), 1);
        let revisions: Vec<u64> = reads.all().iter().map(|read| read.revision).collect();
        assert_eq!(revisions, [1, 2]);
    }
}

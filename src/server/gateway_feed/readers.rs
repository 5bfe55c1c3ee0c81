//! The gateways that have read their configuration from this process, and the revision that each got last.

use crate::server::prelude::*;

/// The most gateways that are remembered: the addresses of clients are theirs to choose.
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

/// The last read of each gateway: of a key at an address. The moments tell which one is the oldest, as the clock can go back, and
/// has whole seconds.
#[derive(Default)]
pub(crate) struct GatewayReads(Lock<BTreeMap<(Id, IpAddr), (GatewayRead, Instant)>>);

impl GatewayReads {
    /// Notes that a gateway has a revision now.
    pub(super) fn note(&self, key: &Id, address: IpAddr, revision: u64) {
        let mut reads = self.0.lock();
        let at = clock::now();
        let read = GatewayRead { key: key.clone(), address, revision, at };
        reads.insert((key.clone(), address), (read, Instant::now()));
        if reads.len() > MOST_READERS {
            let oldest = reads.iter().min_by_key(|(_, (_, noted))| *noted).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                reads.remove(&oldest);
            }
        }
    }

    /// The reads, those of the oldest revision first.
    pub(in crate::server) fn all(&self) -> Vec<GatewayRead> {
        let mut all: Vec<GatewayRead> = self.0.lock().values().map(|(read, _)| read.clone()).collect();
        all.sort_by(|one, other| {
            (one.revision, &one.key, one.address).cmp(&(other.revision, &other.key, other.address))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_has_one_read_and_the_table_is_bounded() {
        let (reads, key) = (GatewayReads::default(), Id::new("ak_1"));
        // The newest ones are kept, although their addresses are the first and most are of the same second.
        for number in 0..2000_u32 {
            reads.note(&key, IpAddr::from((2000 - number).to_be_bytes()), u64::from(number));
        }
        let revisions: Vec<u64> = reads.all().iter().map(|read| read.revision).collect();
        assert_eq!(revisions, (1000..2000).collect::<Vec<u64>>());
        let (reads, address) = (GatewayReads::default(), IpAddr::from([192, 0, 2, 1]));
        reads.note(&key, address, 1);
        reads.note(&key, address, 2);
        reads.note(&key, IpAddr::from([192, 0, 2, 2]), 1);
        let revisions: Vec<u64> = reads.all().iter().map(|read| read.revision).collect();
        assert_eq!(revisions, [1, 2]);
    }
}

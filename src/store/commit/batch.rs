//! A commit at its place in the log, and the end of a log.

use std::fmt;

use bytes::Bytes;

use super::entries::{CommitEntries, Hash};
use super::header::chain_commit;
use super::record_key::RECORD;

/// A commit as the log has it: its header, its calls, and an entry for each record of the state that it changed.
#[derive(Clone)]
pub struct Batch {
    /// The number of the batch: 1 for the first, without gaps.
    pub position: u64,
    /// The revision after this batch. An attempt that changed nothing keeps the revision.
    pub revision: u64,
    /// The `order` of the next creation after this batch.
    pub next_order: u64,
    /// The header in its canonical form: a [`CommitHeader`](super::header::CommitHeader) in JSON.
    pub header: Bytes,
    /// The digest of the calls and the entries.
    pub digest: Hash,
    /// The hash of the header, the digest and the previous hash.
    pub hash: Hash,
    /// The calls as a JSON list of `METHOD path`, in order. Empty if only the header was read.
    pub calls: Bytes,
    /// The entries. Empty if only the header was read.
    pub entries: CommitEntries,
}

impl Batch {
    /// Returns the length of its header, calls and entries in bytes.
    pub(crate) fn size(&self) -> usize {
        self.header.len() + self.calls.len() + self.entries.size()
    }

    /// Returns some of the entries of resources: at most so many, after the first ones.
    pub(crate) fn some_entries(&self, skip: usize, most: usize) -> CommitEntries {
        let of_resources = self.entries.iter().filter(|entry| entry.key.starts_with(RECORD));
        of_resources.skip(skip).take(most).collect()
    }
}

/// Omits the header and the values, which have secrets in clear if there is no keyring.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({}, revision {}, {} entries)", self.position, self.revision, self.entries.len())
    }
}

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tip {
    /// The position of the last batch, or 0 if there is none.
    pub position: u64,
    /// The hash, or zeros if there is none.
    pub hash: Hash,
    /// The revision after it.
    pub revision: u64,
    /// The `order` of the next creation after it.
    pub next_order: u64,
}

impl Tip {
    /// Returns the tip after a batch.
    pub fn after(batch: &Batch) -> Self {
        Self { position: batch.position, hash: batch.hash, revision: batch.revision, next_order: batch.next_order }
    }

    /// Whether a batch comes next, as its hash says.
    pub(crate) fn leads_to(&self, batch: &Batch) -> bool {
        batch.position == self.position + 1 && batch.hash == chain_commit(&self.hash, &batch.header, &batch.digest)
    }

    /// Whether another log ends with the same batch.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.position, self.hash) == (other.position, other.hash)
    }
}

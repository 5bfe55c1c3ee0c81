//! A commit before it has its place in the log: its header, calls and entries.

use bytes::Bytes;

use super::batch::{Batch, Tip};
use super::codec;
use super::entries::{CommitEntries, Hash};
use super::header::{CommitHeader, Outcome, ScrubbedRecord, chain_commit};
use crate::model::Author;
use crate::store::attempt::Attempt;
use crate::store::error::StoreError;
use crate::store::revision::Revision;

/// A batch that is complete except for its place in the chain of hashes.
pub(crate) struct UnchainedBatch {
    pub(crate) header: Bytes,
    pub(crate) digest: Hash,
    pub(crate) calls: Bytes,
    pub(crate) entries: CommitEntries,
    pub(crate) made: Option<Revision>,
}

impl UnchainedBatch {
    /// Completes a header with the calls and entries of its commit.
    pub(crate) fn new(
        header: CommitHeader,
        calls: &[String],
        entries: CommitEntries,
        made: Option<Revision>,
    ) -> Result<Self, StoreError> {
        let changed = codec::resource_changes(&entries).count();
        let header = CommitHeader { operations: calls.len(), changed, ..header }.to_bytes()?.into();
        let calls = serde_json::to_vec(calls).map_err(StoreError::internal)?;
        Ok(Self { header, digest: entries.digest(&calls), calls: calls.into(), entries, made })
    }

    /// Chains the batch to the end of a log. Also returns the revision that it makes.
    pub(crate) fn chained(self, end: &Tip) -> (Batch, Option<Revision>) {
        let Self { header, digest, calls, entries, made } = self;
        let (revision, next_order) = match &made {
            Some(made) => (made.snapshot.revision, made.snapshot.next_order()),
            None => (end.revision, end.next_order),
        };
        let (position, hash) = (end.position + 1, chain_commit(&end.hash, &header, &digest));
        (Batch { position, revision, next_order, header, digest, hash, calls, entries }, made)
    }

    /// The approximate length in the log.
    pub(crate) fn size(&self) -> usize {
        self.header.len() + self.calls.len() + self.entries.size()
    }
}

/// The header of an attempt, without what it did.
pub(crate) fn header(position: u64, attempt: &Attempt, outcome: Outcome, message: String) -> CommitHeader {
    CommitHeader {
        position,
        revision: None,
        at: attempt.at,
        milliseconds: u64::try_from(attempt.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        author: attempt.author.clone(),
        source: attempt.source.clone(),
        outcome,
        message,
        operations: 0,
        changed: 0,
        scrubbed: Vec::new(),
    }
}

/// The header of a scrub.
pub(crate) fn scrub_header(position: u64, scrubbed: Vec<ScrubbedRecord>, message: String) -> CommitHeader {
    CommitHeader { scrubbed, ..header(position, &Attempt::new(Author::Local), Outcome::Scrubbed, message) }
}

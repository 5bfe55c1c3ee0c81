//! A group of commits as rows, in columns: one statement inserts many rows, from one array for each column.
//!
//! The values are those that the log of a folder has: headers, calls, and entries in their encoded form with their checksums.
//! So a digest covers the same bytes wherever a store is, and the chain of hashes goes on when a store is copied.

use std::collections::BTreeMap;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::head::signed;
use super::row_digests::RowDigests;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::header::CommitHeader;
use crate::store::commit::record_key::{RECORD, decode_key};
use crate::store::error::StoreError;

/// The most bytes of values that one statement sends, more or less.
const PIECE: usize = 8 << 20;

/// A group of commits, as rows.
pub(super) struct GroupRows {
    pub(super) commits: CommitRows,
    /// In pieces; there is at least one.
    pub(super) entries: Vec<EntryRows>,
    /// The records that the group writes, in pieces; there is at least one.
    pub(super) state: Vec<StateRows>,
    /// The keys of the records that it removes.
    pub(super) removed: Vec<Vec<u8>>,
    /// The end of the history after it.
    pub(super) end: Tip,
    /// The size in bytes.
    pub(super) bytes: u64,
}

/// Rows of commits.
#[derive(Default)]
pub(super) struct CommitRows {
    pub(super) position: Vec<i64>,
    pub(super) revision: Vec<i64>,
    /// The revision that a commit makes.
    pub(super) made: Vec<Option<i64>>,
    pub(super) next_order: Vec<i64>,
    /// When the attempt began, in seconds.
    pub(super) at: Vec<i64>,
    /// The source that made the revision.
    pub(super) source: Vec<Option<Vec<u8>>>,
    pub(super) header: Vec<Vec<u8>>,
    pub(super) digest: Vec<Vec<u8>>,
    pub(super) hash: Vec<Vec<u8>>,
    pub(super) calls: Vec<Vec<u8>>,
    pub(super) bytes: Vec<i64>,
}

/// Rows of entries.
#[derive(Default)]
pub(super) struct EntryRows {
    pub(super) position: Vec<i64>,
    pub(super) number: Vec<i32>,
    /// The path of a resource, by which its history is found.
    pub(super) path: Vec<Option<String>>,
    pub(super) entry: Vec<Vec<u8>>,
    bytes: usize,
}

/// Rows of the state.
#[derive(Default)]
pub(super) struct StateRows {
    pub(super) key: Vec<Vec<u8>>,
    pub(super) position: Vec<i64>,
    pub(super) value: Vec<Vec<u8>>,
    pub(super) digest: Vec<i64>,
    bytes: usize,
}

impl StateRows {
    /// The parameters of the statement that writes them.
    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.key, &self.position, &self.value, &self.digest]
    }

    /// Adds a record to the last of some pieces.
    pub(super) fn push(pieces: &mut Vec<Self>, digests: RowDigests, key: Vec<u8>, position: i64, value: Vec<u8>) {
        if pieces.last().is_none_or(|last| last.bytes >= PIECE) {
            pieces.push(Self::default());
        }
        let Some(last) = pieces.last_mut() else { return };
        last.bytes += key.len() + value.len();
        last.digest.push(digests.of(&key, &value));
        last.key.push(key);
        last.position.push(position);
        last.value.push(value);
    }
}

impl GroupRows {
    /// Makes the rows of batches that follow a position.
    pub(super) fn new(after: Tip, batches: &[Batch], digests: RowDigests) -> Result<Self, StoreError> {
        let (mut commits, mut entries) = (CommitRows::default(), vec![EntryRows::default()]);
        // In the order of their keys: two transactions that lock the same rows then wait, and do not block each other.
        let mut written: BTreeMap<&str, (i64, Option<&[u8]>)> = BTreeMap::new();
        for batch in batches {
            commits.push(batch)?;
            let position = signed(batch.position);
            for (number, (entry, encoded)) in batch.entries.encoded().enumerate() {
                let number = i32::try_from(number).map_err(StoreError::internal)?;
                EntryRows::push(&mut entries, position, number, path_of(entry.key), encoded);
                written.insert(entry.key, (position, entry.after));
            }
        }
        let (mut state, mut removed) = (vec![StateRows::default()], Vec::new());
        for (key, (position, value)) in written {
            match value {
                Some(value) => {
                    StateRows::push(&mut state, digests, key.as_bytes().to_vec(), position, value.to_vec());
                }
                None => removed.push(key.as_bytes().to_vec()),
            }
        }
        let bytes = commits.bytes.iter().map(|bytes| bytes.unsigned_abs()).sum();
        let end = batches.last().map_or(after, Tip::after);
        Ok(Self { commits, entries, state, removed, end, bytes })
    }
}

/// What columns of a commit repeat of its content, so that an index or a sum has it.
#[derive(PartialEq, Eq)]
pub(super) struct RepeatedColumns {
    made: Option<i64>,
    at: i64,
    source: Option<Vec<u8>>,
    bytes: i64,
}

impl RepeatedColumns {
    /// The columns as a commit has them.
    pub(super) fn of(batch: &Batch) -> Result<Self, StoreError> {
        let header = CommitHeader::from_bytes(&batch.header)?;
        Ok(Self {
            made: header.revision.map(signed),
            at: header.at.as_second(),
            source: header.applied_by().map(|source| source.as_bytes().to_vec()),
            bytes: signed(batch.size() as u64),
        })
    }

    /// The columns as a row has them.
    pub(super) fn in_row(row: &Row) -> Result<Self, Error> {
        Ok(Self {
            made: row.try_get("made")?,
            at: row.try_get("at")?,
            source: row.try_get("source")?,
            bytes: row.try_get("bytes")?,
        })
    }
}

impl CommitRows {
    /// Adds a commit.
    pub(super) fn push(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let RepeatedColumns { made, at, source, bytes } = RepeatedColumns::of(batch)?;
        self.position.push(signed(batch.position));
        self.revision.push(signed(batch.revision));
        self.made.push(made);
        self.next_order.push(signed(batch.next_order));
        self.at.push(at);
        self.source.push(source);
        self.header.push(batch.header.to_vec());
        self.digest.push(batch.digest.to_vec());
        self.hash.push(batch.hash.to_vec());
        self.calls.push(batch.calls.to_vec());
        self.bytes.push(bytes);
        Ok(())
    }

    /// The parameters of the statement that inserts them.
    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 11] {
        let Self { position, revision, made, next_order, at, source, header, digest, hash, calls, bytes } = self;
        [position, revision, made, next_order, at, source, header, digest, hash, calls, bytes]
    }
}

impl EntryRows {
    /// The parameters of the statement that inserts them.
    pub(super) fn parameters(&self) -> [&(dyn ToSql + Sync); 4] {
        [&self.position, &self.number, &self.path, &self.entry]
    }

    fn push(pieces: &mut Vec<Self>, position: i64, number: i32, path: Option<String>, encoded: &[u8]) {
        if pieces.last().is_none_or(|last| last.bytes >= PIECE) {
            pieces.push(Self::default());
        }
        let Some(last) = pieces.last_mut() else { return };
        last.bytes += encoded.len();
        last.position.push(position);
        last.number.push(number);
        last.path.push(path);
        last.entry.push(encoded.to_vec());
    }
}

/// The path of the resource that a record is of, if it is of one.
pub(super) fn path_of(key: &str) -> Option<String> {
    if !key.starts_with(RECORD) {
        return None;
    }
    decode_key(RECORD, key.as_bytes()).ok().map(|key| key.path())
}

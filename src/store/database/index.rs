//! The index of the history in sled: where in the log each commit is, by position, revision and source, and each resource's entry in it.
//!
//! Without it, a question about the history would be a walk over the log. A row is one answer: its key is what is asked for
//! and then the position of a commit, so the rows of a question are in the order of the log; its value begins with the
//! location of the commit, so no row needs another one. The rows of a commit depend on nothing but the log. To write one
//! again changes nothing, so they are written one by one, and the end of the index after them: what a crash leaves behind the
//! end is written once more.
//!
//! The index has nothing that the log does not have. It can always be removed and made again, and no commit waits for it.

use std::path::{Path, PathBuf};

use sled::{Db, IVec};

use super::open;
use crate::background::yield_to_requests;
use crate::files::fault;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::entries::Hash;
use crate::store::commit::header::CommitHeader;
use crate::store::commit::record_key::{RECORD, decode_key};
use crate::store::disk::files::make_private;
use crate::store::engine::Query;
use crate::store::error::{Doing, StoreError};
use crate::store::log::frame::{hash_at, number};

const POSITIONS: &[u8] = b"p/";
const REVISIONS: &[u8] = b"v/";
const SOURCES: &[u8] = b"s/";
const RESOURCES: &[u8] = b"k/";
/// The end of the index. An index with other rows, of an earlier version, has another key, and is made anew.
const END: &[u8] = b"m/end-4";
/// How often sled writes what it has only in memory, in milliseconds.
const FLUSH_EVERY: u64 = 500;

/// The open index.
pub(crate) struct Index {
    db: Db,
    path: PathBuf,
}

/// Where a commit is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// The generation of its part of the log.
    pub generation: u64,
    /// The offset of its frame.
    pub offset: u64,
    /// The length of its frame.
    pub length: u64,
}

impl Location {
    const BYTES: usize = 24;

    fn to_bytes(self) -> Vec<u8> {
        [self.generation, self.offset, self.length].map(u64::to_le_bytes).concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (generation, offset) = (number::<8>(bytes, 0)?, number::<8>(bytes, 8)?);
        Some(Self { generation, offset, length: number::<8>(bytes, 16)? })
    }
}

/// The key and the value of a row.
pub(super) type RowBytes = (Vec<u8>, Vec<u8>);

/// Makes the rows of a commit. If its header cannot be read, it is found by its position only.
pub(super) fn rows_of(location: Location, batch: &Batch) -> Vec<RowBytes> {
    let (position, value) = (batch.position, location.to_bytes());
    let mut rows = vec![(key_of(POSITIONS, position), value.clone())];
    let Ok(header) = CommitHeader::from_bytes(&batch.header) else { return rows };
    if let Some(revision) = header.revision {
        rows.push((key_of(&key_of(REVISIONS, revision), position), value.clone()));
    }
    let source = header.applied_by().unwrap_or_default();
    if !source.is_empty() {
        rows.push((key_of(SOURCES, position), value.clone()));
    }
    for (offset, entry) in batch.entries.located().filter(|(_, entry)| entry.key.starts_with(RECORD)) {
        if let Ok(key) = decode_key(RECORD, entry.key.as_bytes()) {
            let value = [value.as_slice(), &offset.to_le_bytes(), source.as_bytes()].concat();
            rows.push((key_of(&resource_prefix(&key.path()), position), value));
        }
    }
    rows
}

/// A row that was found.
pub(super) struct IndexRow {
    /// The position of the commit.
    pub position: u64,
    /// Where it is.
    pub location: Location,
    value: IVec,
}

impl IndexRow {
    fn decode(key: &[u8], value: IVec) -> Option<Self> {
        Some(Self { position: last_number(key)?, location: Location::from_bytes(&value)?, value })
    }

    /// Where the entry of a resource begins among the entries of the commit.
    pub(super) fn entry_offset(&self) -> u64 {
        number::<8>(&self.value, Location::BYTES).unwrap_or_default()
    }

    /// Whether a source applied the commit that changed a resource.
    fn is_by(&self, source: &str) -> bool {
        self.value.get(Location::BYTES + 8..) == Some(source.as_bytes())
    }
}

impl Index {
    /// Opens the index, or creates an empty one.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let db = open::create(path, Some(FLUSH_EVERY)).map_err(failed)?;
        Ok(Self { db, path: path.to_owned() })
    }

    /// Returns the position and the hash of the last commit in the index.
    pub(crate) fn end(&self) -> Result<Option<(u64, Hash)>, StoreError> {
        let found = self.guarded(|| self.db.get(END))?;
        Ok(found.and_then(|bytes| Some((number::<8>(&bytes, 0)?, hash_at(&bytes, 8)?))))
    }

    /// Adds the rows of the commits after the last one, up to `end`.
    pub(super) fn add(&self, mut rows: Vec<RowBytes>, end: Tip) -> Result<(), StoreError> {
        fault::point("index.write").doing("write", &self.path)?;
        // In another order, sled would touch each of its pages again and again.
        rows.sort_unstable();
        self.guarded(|| {
            for (key, value) in rows {
                yield_to_requests();
                self.db.insert(key, value)?;
            }
            self.db.insert(END, [end.position.to_le_bytes().as_slice(), &end.hash].concat()).map(|_| ())
        })
    }

    /// Finds at most `limit` commits before a position, newest first.
    pub(super) fn find(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<IndexRow>, StoreError> {
        let prefix = match query {
            Query::All => POSITIONS.to_vec(),
            Query::Reconciliations => SOURCES.to_vec(),
            Query::Revision(revision) => key_of(REVISIONS, *revision),
        };
        self.newest_first(&prefix, before).take(limit).collect()
    }

    /// Finds the commits before a position that changed a resource, newest first: of all, or those that a source applied.
    pub(super) fn find_changes<'i>(
        &'i self,
        path: &str,
        before: u64,
        source: Option<&'i str>,
    ) -> impl Iterator<Item = Result<IndexRow, StoreError>> + use<'i> {
        let is_wanted = move |row: &IndexRow| source.is_none_or(|source| row.is_by(source));
        self.newest_first(&resource_prefix(path), before).filter(move |row| row.as_ref().map_or(true, is_wanted))
    }

    /// Reads the rows of a prefix that are of commits before a position, newest first.
    fn newest_first<'i>(
        &'i self,
        prefix: &[u8],
        before: u64,
    ) -> impl Iterator<Item = Result<IndexRow, StoreError>> + use<'i> {
        let mut rows = self.db.range(prefix.to_vec()..key_of(prefix, before)).rev();
        std::iter::from_fn(move || {
            let row = fault::point("index.read")
                .doing("read", &self.path)
                .and_then(|()| self.guarded(|| rows.next().transpose()));
            let decoded = |(key, value): (IVec, IVec)| IndexRow::decode(&key, value).ok_or_else(|| self.damaged());
            row.transpose().map(|row| row.and_then(decoded))
        })
    }

    /// Finds the commit at a position.
    pub(crate) fn locate(&self, position: u64) -> Result<Option<Location>, StoreError> {
        let found = self.guarded(|| self.db.get(key_of(POSITIONS, position)))?;
        found.map(|value| Location::from_bytes(&value).ok_or_else(|| self.damaged())).transpose()
    }

    /// Returns the position of the oldest commit in the index.
    pub(super) fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let first = self.guarded(|| self.db.scan_prefix(POSITIONS).keys().next().transpose())?;
        Ok(first.and_then(|key| last_number(&key)))
    }

    /// Removes the commits before a position.
    pub(super) fn forget(&self, oldest: u64) -> Result<(), StoreError> {
        self.guarded(|| {
            // Keys by position go last: after a crash, the next start uses them to find the rest.
            for prefix in [REVISIONS, SOURCES, RESOURCES, POSITIONS] {
                for key in self.db.scan_prefix(prefix).keys() {
                    let key = key?;
                    if last_number(&key).is_some_and(|position| position < oldest) {
                        self.db.remove(key)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Writes everything to the operating system.
    pub(super) fn flush(&self) {
        let _ = self.guarded(|| self.db.flush());
        let _ = make_private(&self.path);
    }

    /// Runs a sled operation.
    fn guarded<R>(&self, run: impl FnOnce() -> Result<R, sled::Error>) -> Result<R, StoreError> {
        open::guarded(&self.path, run).map_err(failed)
    }

    fn damaged(&self) -> StoreError {
        StoreError::new(Code::StoreFailed, format!("the history index {} has a damaged row", self.path.display()))
    }
}

fn failed(error: StoreError) -> StoreError {
    StoreError::new(Code::StoreFailed, format!("the history index failed: {error}"))
}

/// The start of the keys of a resource's rows.
fn resource_prefix(path: &str) -> Vec<u8> {
    [RESOURCES, path.as_bytes(), b"\0"].concat()
}

/// A key that ends with a number.
fn key_of(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

/// The number at the end of a key.
fn last_number(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::model::{Author, Id, Key, Kind};
    use crate::store::Attempt;
    use crate::store::commit::entries::CommitEntry;
    use crate::store::commit::header::Outcome;
    use crate::store::commit::unchained_batch::header;

    /// A commit that a source applied, if there is one, as this revision, of these edges.
    fn commit(position: u64, revision: Option<u64>, source: Option<&str>, edges: &[&str]) -> (Location, Batch) {
        let author = source.map_or(Author::Local, |source| Author::source(source, None));
        let header =
            CommitHeader { revision, ..header(position, &Attempt::new(author), Outcome::Applied, String::new()) };
        let names: Vec<String> = edges.iter().map(|edge| format!("r/HttpsEdge//{edge}")).collect();
        let entry = |name| CommitEntry { key: name, after: Some(b"{}"), ..CommitEntry::default() };
        let batch = Batch {
            position,
            revision: revision.unwrap_or_default(),
            next_order: 0,
            header: header.to_bytes().unwrap().into(),
            digest: [0; 32],
            hash: [7; 32],
            calls: Bytes::new(),
            entries: names.iter().map(|name| entry(name.as_str())).collect(),
        };
        (Location { generation: 1, offset: position * 100, length: 100 }, batch)
    }

    /// Commits 1 to 200: every second one makes a revision, every third one changes two edges, and 70 and 71 are of a source.
    fn index(folder: &Path) -> Index {
        let index = Index::open(&folder.join("index")).unwrap();
        let commits = (1..=200).map(|at| {
            let source = [70, 71].contains(&at).then_some("shop");
            commit(at, (at % 2 == 0).then_some(at / 2), source, if at % 3 == 1 { &["a", "b"] } else { &[] })
        });
        let rows = commits.flat_map(|(location, batch)| rows_of(location, &batch)).collect();
        index.add(rows, Tip { position: 200, hash: [7; 32], ..Tip::default() }).unwrap();
        index
    }

    fn positions(index: &Index, query: &Query, before: u64, limit: usize) -> Vec<u64> {
        let rows = index.find(query, before, limit).unwrap();
        rows.iter().for_each(|row| assert_eq!(row.location.offset, row.position * 100));
        rows.into_iter().map(|row| row.position).collect()
    }

    fn changes(index: &Index, edge: &str, before: u64, source: Option<&str>) -> Vec<u64> {
        let path = Key::new(Kind::HttpsEdge, Id::new(edge)).path();
        index.find_changes(&path, before, source).map(|row| row.unwrap().position).collect()
    }

    #[test]
    fn commits_are_found_by_each_query_until_they_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        assert_eq!(index.end().unwrap(), Some((200, [7; 32])));
        let since = |first: u64| -> [Vec<u64>; 2] {
            [(first..=200).rev().collect(), (first..=200).rev().filter(|at| at % 3 == 1).collect()]
        };
        let [all, of_an_edge] = since(1);
        assert_eq!(positions(&index, &Query::All, u64::MAX, 300), all);
        assert_eq!(positions(&index, &Query::All, 102, 3), [101, 100, 99]);
        assert_eq!(positions(&index, &Query::All, u64::MAX, 0), [0; 0]);
        assert_eq!(changes(&index, "b", u64::MAX, None), of_an_edge);
        assert_eq!(changes(&index, "a", 7, None), [4, 1]);
        assert_eq!(changes(&index, "a", u64::MAX, Some("shop")), [70]);
        assert_eq!(changes(&index, "c", u64::MAX, None), [0; 0]);
        assert_eq!(positions(&index, &Query::Reconciliations, u64::MAX, 300), [71, 70]);
        for revision in 1..=100 {
            assert_eq!(positions(&index, &Query::Revision(revision), u64::MAX, 1), [revision * 2]);
        }
        assert_eq!(positions(&index, &Query::Revision(101), u64::MAX, 1), [0; 0]);

        index.forget(90).unwrap();
        let [all, of_an_edge] = since(90);
        assert_eq!((index.oldest().unwrap(), index.locate(89).unwrap()), (Some(90), None));
        assert_eq!(positions(&index, &Query::All, u64::MAX, 300), all);
        assert_eq!(changes(&index, "b", u64::MAX, None), of_an_edge);
        assert_eq!(positions(&index, &Query::Reconciliations, u64::MAX, 300), [0; 0]);
        assert_eq!(positions(&index, &Query::Revision(44), u64::MAX, 1), [0; 0]);
        assert_eq!(positions(&index, &Query::Revision(45), u64::MAX, 1), [90]);
    }

    #[test]
    fn an_entry_is_where_its_row_says() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        let (_, batch) = commit(4, Some(2), None, &["a", "b"]);
        let (second, _) = batch.entries.located().last().unwrap();
        let path = Key::new(Kind::HttpsEdge, Id::new("b")).path();
        assert_eq!(index.find_changes(&path, 5, None).next().unwrap().unwrap().entry_offset(), second);
        assert!(second > 0);
    }
}

//! The index of the history in sled: the location of each commit by position, revision and source, and of each entry by resource.
//!
//! It is derived from the log and can be rebuilt, so a damaged index costs time but no data, and no commit waits for
//! sled.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sled::{Batch as Rows, Db, IVec};

use super::{
    open,
    rows::{
        IndexedRecord, Location, Locations, POSITIONS, RESOURCES, REVISIONS, ResourceRecord, SOURCES, key_of,
        last_number, position_at, resource_prefix,
    },
};
use crate::{
    model::diagnostics::code::Code,
    store::{
        StoreError,
        disk::files::make_private,
        engine::{Hash, Query},
        log::frame::{hash_at, number},
    },
};

/// The end of the index. An index with other rows, of an earlier version, has another key, and is made anew.
const APPLIED: &[u8] = b"m/upto-3";
/// How often sled writes what it has only in memory, in milliseconds.
const FLUSH_EVERY: u64 = 500;
/// The most rows of resources that are added in one step. sled keeps in memory what a step replaces, and has no order in it:
/// those of a first commit would touch every page again and again.
const MOST_TOGETHER: usize = 10_000;

/// The open index.
pub(crate) struct Index {
    db: Db,
    path: PathBuf,
}

/// Runs a sled operation.
fn guarded<R>(path: &Path, run: impl FnOnce() -> Result<R, sled::Error>) -> Result<R, StoreError> {
    open::guarded(path, run).map_err(failed)
}

fn failed(error: StoreError) -> StoreError {
    StoreError::new(Code::StoreFailed, format!("the history index failed: {error}"))
}

impl Index {
    /// Opens the index, or creates an empty one.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let db = open::create(path, Some(FLUSH_EVERY)).map_err(failed)?;
        Ok(Self { db, path: path.to_owned() })
    }

    /// Returns the folder of the index.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the last record in the index and its hash.
    pub(crate) fn applied(&self) -> Result<Option<(u64, Hash)>, StoreError> {
        let found = guarded(&self.path, || self.db.get(APPLIED))?;
        Ok(found.and_then(|bytes| Some((number::<8>(&bytes, 0)?, hash_at(&bytes, 8)?))))
    }

    /// Adds the records after the last one, in order.
    pub(super) fn add(&self, records: &[Arc<IndexedRecord>]) -> Result<(), StoreError> {
        let Some(last) = records.last() else { return Ok(()) };
        let mut rows = Rows::default();
        for row in Locations::rows(records) {
            insert(&mut rows, &row);
        }
        for record in records.iter().filter(|record| record.source.is_some()) {
            rows.insert(key_of(SOURCES, record.tip.position), &[]);
        }
        let resources = ResourceRecord::by_path(records);
        let together = resources.len() <= MOST_TOGETHER;
        if !together {
            // An index without its end is made anew, so that a crash on the way leaves no row of a record that is not there.
            guarded(&self.path, || self.db.remove(APPLIED))?;
        }
        for (path, changes) in resources {
            let first = changes.first().map_or(last.tip.position, |change| change.position);
            let (key, value) = (key_of(&resource_prefix(path), first), ResourceRecord::write(&changes));
            if together {
                rows.insert(key, value);
            } else {
                guarded(&self.path, || self.db.insert(key, value))?;
            }
        }
        rows.insert(APPLIED, [last.tip.position.to_le_bytes().as_slice(), &last.tip.hash].concat());
        guarded(&self.path, || self.db.apply_batch(rows))
    }

    /// Finds at most `limit` records before a position, newest first.
    pub(super) fn find(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<(u64, Location)>, StoreError> {
        match query {
            Query::All => self.newest(before, limit),
            Query::Reconciliations => {
                let end = key_of(SOURCES, before);
                let keys = guarded(&self.path, || {
                    self.db.range(SOURCES.to_vec()..end).keys().rev().take(limit).collect::<Result<Vec<_>, _>>()
                })?;
                let positions = keys.iter().map(|key| position_at(key, SOURCES.len()).ok_or_else(|| self.damaged()));
                positions.map(|position| self.locate(position?)).collect()
            }
            Query::Revision(revision) => {
                let (first, end) = (REVISIONS.to_vec(), key_of(REVISIONS, *revision));
                let row = guarded(&self.path, || self.db.range(first..=end).next_back().transpose())?;
                let Some((_, position)) = row else { return Ok(Vec::new()) };
                let position = position_at(&position, 0).ok_or_else(|| self.damaged())?;
                let row = self.row_with(position)?.ok_or_else(|| self.damaged())?;
                Ok(row.of_revision(*revision).filter(|(position, _)| *position < before).into_iter().collect())
            }
        }
    }

    /// Finds the newest records before a position.
    fn newest(&self, before: u64, limit: usize) -> Result<Vec<(u64, Location)>, StoreError> {
        let mut found = Vec::new();
        let rows = self.db.range(POSITIONS.to_vec()..key_of(POSITIONS, before)).rev();
        guarded(&self.path, || {
            for row in rows {
                let (key, value) = row?;
                let Some(row) = Locations::read(&key, &value) else { return Ok(false) };
                let positions = (row.first..row.end().min(before)).rev();
                let located = positions.filter_map(|position| Some((position, row.get(position)?)));
                found.extend(located.take(limit - found.len()));
                if found.len() == limit {
                    break;
                }
            }
            Ok(true)
        })?
        .then_some(found)
        .ok_or_else(|| self.damaged())
    }

    /// Visits what the index has of a resource before a position, newest first, while the visitor returns true.
    pub(super) fn story(
        &self,
        path: &str,
        before: u64,
        visit: &mut dyn FnMut(&ResourceRecord) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let prefix = resource_prefix(path);
        let end = key_of(&prefix, before);
        let mut rows = self.db.range(prefix..end).rev();
        while let Some((_, value)) = guarded(&self.path, || rows.next().transpose())? {
            let records = ResourceRecord::read(&value).ok_or_else(|| self.damaged())?;
            for record in records.iter().rev().filter(|record| record.position < before) {
                if !visit(record)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the position of the oldest record in the index.
    pub(super) fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let first = guarded(&self.path, || self.db.scan_prefix(POSITIONS).keys().next().transpose())?;
        Ok(first.and_then(|key| position_at(&key, POSITIONS.len())))
    }

    /// Finds the record at a position.
    pub(crate) fn locate(&self, position: u64) -> Result<(u64, Location), StoreError> {
        let location = self.row_with(position)?.and_then(|row| row.get(position)).ok_or_else(|| self.damaged())?;
        Ok((position, location))
    }

    /// The row with the location of a record.
    fn row_with(&self, position: u64) -> Result<Option<Locations>, StoreError> {
        let (first, end) = (POSITIONS.to_vec(), key_of(POSITIONS, position));
        let Some((key, value)) = guarded(&self.path, || self.db.range(first..=end).next_back().transpose())? else {
            return Ok(None);
        };
        let row = Locations::read(&key, &value).ok_or_else(|| self.damaged())?;
        Ok(Some(row).filter(|row| row.get(position).is_some()))
    }

    /// Removes the records before a position.
    pub(super) fn forget(&self, oldest: u64) -> Result<(), StoreError> {
        guarded(&self.path, || {
            // Locations go last: a crash on the way must leave no row that leads to a position without a location.
            for prefix in [REVISIONS, SOURCES, RESOURCES, POSITIONS] {
                for row in self.db.scan_prefix(prefix) {
                    let (key, value) = row?;
                    self.forget_in(prefix, &key, &value, oldest)?;
                }
            }
            Ok(())
        })
    }

    /// Removes what a row has of the records before a position.
    fn forget_in(&self, prefix: &[u8], key: &IVec, value: &IVec, oldest: u64) -> Result<(), sled::Error> {
        let mut rows = Rows::default();
        if prefix == REVISIONS || prefix == SOURCES {
            let position = if prefix == SOURCES { last_number(key) } else { last_number(value) };
            if position.is_none_or(|position| position >= oldest) {
                return Ok(());
            }
            rows.remove(key.clone());
        } else if last_number(key).is_none_or(|first| first >= oldest) {
            return Ok(());
        } else if prefix == POSITIONS {
            rows.remove(key.clone());
            if let Some(rest) = Locations::read(key, value).and_then(|row| row.starting_at(oldest)) {
                insert(&mut rows, &rest);
            }
        } else if let Some(mut records) = ResourceRecord::read(value) {
            records.retain(|record| record.position >= oldest);
            rows.remove(key.clone());
            if let (Some(first), Some(path)) = (records.first(), key.get(..key.len().saturating_sub(8))) {
                rows.insert(key_of(path, first.position), ResourceRecord::write(&records));
            }
        }
        self.db.apply_batch(rows)
    }

    /// Writes everything to the operating system.
    pub(super) fn flush(&self) {
        let _ = guarded(&self.path, || self.db.flush());
        let _ = make_private(&self.path);
    }

    fn damaged(&self) -> StoreError {
        StoreError::new(Code::StoreFailed, format!("the history index {} has gaps", self.path.display()))
    }
}

/// Adds a row of locations, and the one that leads to its first revision.
fn insert(rows: &mut Rows, row: &Locations) {
    rows.insert(row.key(), row.value());
    if let Some((revision, position)) = row.first_revision() {
        rows.insert(key_of(REVISIONS, revision), &position.to_be_bytes());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::database::rows::tests::record;

    fn positions(index: &Index, query: &Query, before: u64, limit: usize) -> Vec<u64> {
        index.find(query, before, limit).unwrap().into_iter().map(|(position, _)| position).collect()
    }

    /// The positions of the records of a resource, at most so many.
    fn story(index: &Index, path: &str, before: u64, limit: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut visit = |record: &ResourceRecord| {
            assert_eq!(record.offset, record.position * 10);
            found.push(record.position);
            Ok(found.len() < limit)
        };
        index.story(path, before, &mut visit).unwrap();
        found
    }

    /// Records 1 to 200, in two writes. Record 70 is of a source, and the others are of nobody who declares anything.
    fn index(folder: &Path) -> Index {
        let index = Index::open(&folder.join("index")).unwrap();
        let records: Vec<_> = (1..=200)
            .map(|at| {
                let source = (at == 70).then_some("shop");
                record(at, (at % 2 == 0).then_some(at / 2), source, if at % 3 == 1 { &["/a", "/a/b"] } else { &[] })
            })
            .collect();
        let (first, second) = records.split_at(100);
        index.add(first).unwrap();
        index.add(second).unwrap();
        index
    }

    #[test]
    fn records_are_found_by_each_query_across_rows() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        assert_eq!(index.applied().unwrap(), Some((200, [7; 32])));
        assert_eq!(positions(&index, &Query::All, u64::MAX, 300), (1..=200).rev().collect::<Vec<_>>());
        assert_eq!(positions(&index, &Query::All, 102, 3), [101, 100, 99]);
        assert_eq!(positions(&index, &Query::All, u64::MAX, 0), [0; 0]);
        let of_a: Vec<u64> = (1..=200).rev().filter(|at| at % 3 == 1).collect();
        assert_eq!(story(&index, "/a", u64::MAX, 300), of_a);
        assert_eq!(story(&index, "/a", 104, 3), [103, 100, 97]);
        assert_eq!(story(&index, "/", u64::MAX, 300), [0; 0]);
        assert_eq!(positions(&index, &Query::Reconciliations, u64::MAX, 300), [70]);
        for revision in 1..=100 {
            assert_eq!(positions(&index, &Query::Revision(revision), u64::MAX, 1), [revision * 2]);
        }
        assert_eq!(positions(&index, &Query::Revision(101), u64::MAX, 1), [0; 0]);
    }

    #[test]
    fn a_record_with_more_resources_than_are_added_together_is_found_by_each() {
        let folder = tempfile::tempdir().unwrap();
        let index = Index::open(&folder.path().join("index")).unwrap();
        let paths: Vec<String> = (0..=MOST_TOGETHER).map(|number| format!("/{number}")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        index.add(&[record(1, Some(1), Some("shop"), &["/7"])]).unwrap();
        index.add(&[record(2, Some(2), Some("shop"), &paths), record(3, None, None, &["/8"])]).unwrap();
        assert_eq!(index.applied().unwrap(), Some((3, [7; 32])));
        let all: [(&str, &[u64]); 3] = [("/7", &[2, 1]), ("/8", &[3, 2]), ("/9999", &[2])];
        for (path, expected) in all {
            assert_eq!(story(&index, path, u64::MAX, 9), expected, "{path}");
        }
        assert_eq!(positions(&index, &Query::Reconciliations, u64::MAX, 9), [2, 1]);
    }

    #[test]
    fn a_part_of_the_records_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let index = index(folder.path());
        assert!(index.locate(200).is_ok() && index.locate(201).is_err());
        index.forget(90).unwrap();
        assert_eq!(index.oldest().unwrap(), Some(90));
        assert_eq!(positions(&index, &Query::All, u64::MAX, 300), (90..=200).rev().collect::<Vec<_>>());
        let of_a: Vec<u64> = (90..=200).rev().filter(|at| at % 3 == 1).collect();
        assert_eq!(story(&index, "/a/b", u64::MAX, 300), of_a);
        assert_eq!(positions(&index, &Query::Reconciliations, u64::MAX, 300), [0; 0]);
        for revision in 1..=100 {
            let expected = (revision >= 45).then_some(revision * 2);
            assert_eq!(positions(&index, &Query::Revision(revision), u64::MAX, 1), Vec::from_iter(expected));
        }
    }
}

//! The newest records of the history, which the index does not have on the disk yet. Queries find them in memory.
//!
//! sled takes longer for a record than everything else that a commit does, and much less for each of many at once.

use std::{collections::VecDeque, sync::Arc};

use super::rows::{IndexedRecord, Location, ResourceRecord};
use crate::store::engine::Query;

/// The most records in memory.
const MOST_RECORDS: usize = 4096;
/// The most resources that these records changed.
const MOST_RESOURCES: usize = 16_384;

/// Records in memory, oldest first.
#[derive(Default)]
pub(super) struct Unwritten {
    records: VecDeque<Arc<IndexedRecord>>,
    resources: usize,
}

impl Unwritten {
    /// Adds records after the last one.
    pub(super) fn extend(&mut self, records: impl Iterator<Item = IndexedRecord>) {
        for record in records {
            self.resources += record.resources.len();
            self.records.push_back(Arc::new(record));
        }
    }

    /// Whether the records have to be written before others are added.
    pub(super) fn is_full(&self) -> bool {
        self.records.len() >= MOST_RECORDS || self.resources >= MOST_RESOURCES
    }

    /// Returns all records.
    pub(super) fn all(&self) -> Vec<Arc<IndexedRecord>> {
        self.records.iter().cloned().collect()
    }

    /// Drops the records up to a position: the index has them.
    pub(super) fn drop_upto(&mut self, position: u64) {
        while let Some(oldest) = self.records.front()
            && oldest.tip.position <= position
        {
            self.resources -= oldest.resources.len();
            self.records.pop_front();
        }
    }

    /// Returns the position of the oldest record. The index has everything before it.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.records.front().map(|record| record.tip.position)
    }

    /// Finds at most `limit` records before a position, newest first.
    pub(super) fn find(&self, query: &Query, before: u64, limit: usize) -> Vec<(u64, Location)> {
        let found = self.records.iter().rev().filter(|it| it.tip.position < before && it.matches(query));
        found.take(limit).map(|record| (record.tip.position, record.location)).collect()
    }

    /// Returns what the records have of a resource before a position, newest first: of all, or of those that a source applied.
    pub(super) fn story(&self, path: &str, before: u64, source: Option<&str>) -> Vec<(Location, ResourceRecord)> {
        let records = self.records.iter().rev().filter(|record| record.tip.position < before);
        let wanted = records.filter(|record| source.is_none() || record.source.as_deref() == source);
        let of_resource = wanted.filter_map(|record| {
            let (_, offset) = record.resources.iter().find(|(of, _)| of == path)?;
            let (position, offset, source) = (record.tip.position, *offset, record.source.clone());
            Some((record.location, ResourceRecord { position, offset, source }))
        });
        of_resource.collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::database::rows::tests::record;

    #[test]
    fn records_are_found_until_they_are_written() {
        let mut unwritten = Unwritten::default();
        let records = [
            record(4, Some(3), Some("shop"), &["/a", "/b"]),
            record(5, None, None, &[]),
            record(6, Some(4), None, &["/a"]),
            record(7, Some(5), Some("docs"), &["/a"]),
        ];
        unwritten.extend(records.iter().map(|record| IndexedRecord::clone(record)));
        let find = |unwritten: &Unwritten, query: Query, before: u64, limit: usize| {
            unwritten.find(&query, before, limit).into_iter().map(|(position, _)| position).collect::<Vec<_>>()
        };
        let story = |path: &str, source: Option<&str>| {
            unwritten.story(path, u64::MAX, source).into_iter().map(|(_, record)| record.position).collect::<Vec<_>>()
        };
        assert_eq!(find(&unwritten, Query::All, u64::MAX, 10), [7, 6, 5, 4]);
        assert_eq!(find(&unwritten, Query::All, 7, 2), [6, 5]);
        assert_eq!(
            (story("/a", None), story("/b", None), story("/a", Some("shop"))),
            (vec![7, 6, 4], vec![4], vec![4])
        );
        assert_eq!(find(&unwritten, Query::Reconciliations, u64::MAX, 10), [7, 4]);
        assert_eq!(find(&unwritten, Query::Revision(4), u64::MAX, 1), [6]);
        assert_eq!(unwritten.oldest(), Some(4));
        unwritten.drop_upto(5);
        assert_eq!(find(&unwritten, Query::All, u64::MAX, 10), [7, 6]);
        assert_eq!((unwritten.oldest(), unwritten.resources), (Some(6), 2));
        unwritten.drop_upto(7);
        assert_eq!((unwritten.oldest(), unwritten.resources, unwritten.all().len()), (None, 0, 0));
    }

    #[test]
    fn many_records_or_resources_have_to_be_written() {
        let one = |position: u64| IndexedRecord::clone(&record(position, None, None, &["/a"]));
        let mut unwritten = Unwritten::default();
        unwritten.extend((1..MOST_RECORDS as u64).map(one));
        assert!(!unwritten.is_full());
        unwritten.extend(std::iter::once(one(MOST_RECORDS as u64)));
        assert!(unwritten.is_full());
        let mut unwritten = Unwritten::default();
        let resources = vec![("/a".to_owned(), 0); MOST_RESOURCES];
        unwritten.extend(std::iter::once(IndexedRecord { resources, ..one(1) }));
        assert!(unwritten.is_full());
    }
}

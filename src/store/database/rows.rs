//! What the rows of the index contain. Records that are added together share rows: sled takes as long for a row with the
//! positions of many records as for one with the position of one.

use std::{collections::BTreeMap, sync::Arc};

use crate::store::{
    commit::{
        codec::{RECORD, decode_key},
        header::CommitHeader,
    },
    engine::{Batch, Query, Tip},
    log::frame::number,
};

pub(super) const POSITIONS: &[u8] = b"p/";
pub(super) const REVISIONS: &[u8] = b"v/";
pub(super) const SOURCES: &[u8] = b"s/";
pub(super) const RESOURCES: &[u8] = b"k/";
/// The most records in a row of locations.
const MOST_LOCATIONS: usize = 64;
/// The size of a location and the revision that its record made.
const LOCATION: usize = 8 + 8 + 8 + 8;

/// The location of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// The generation of its part of the log.
    pub generation: u64,
    /// The offset of its frame.
    pub offset: u64,
    /// The length of its frame.
    pub length: u64,
}

/// What the index has of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedRecord {
    /// The end of the log after it.
    pub tip: Tip,
    /// Where it is.
    pub location: Location,
    /// The revision that it made.
    pub revision: Option<u64>,
    /// The source that applied it.
    pub source: Option<String>,
    /// The path of each resource that it changed, and where its entry begins among the entries.
    pub resources: Vec<(String, u64)>,
}

impl IndexedRecord {
    /// Reads what the index needs. A commit whose header cannot be read has only its location.
    pub(super) fn of(location: Location, batch: &Batch) -> Self {
        let (tip, resources) = (Tip::after(batch), Vec::new());
        let Ok(header) = CommitHeader::from_bytes(&batch.header) else {
            return Self { tip, location, revision: None, source: None, resources };
        };
        let source = header.applied_by().map(str::to_owned);
        let resources = batch.entries.located().filter_map(|(offset, entry)| {
            let key = entry.key.starts_with(RECORD).then(|| decode_key(RECORD, entry.key.as_bytes()).ok())??;
            Some((key.path(), offset))
        });
        Self { tip, location, revision: header.revision, source, resources: resources.collect() }
    }

    /// Whether a query asks for this record.
    pub(super) fn matches(&self, query: &Query) -> bool {
        match query {
            Query::All => true,
            Query::Revision(revision) => self.revision == Some(*revision),
            Query::Reconciliations => self.source.is_some(),
        }
    }
}

/// A row of locations: those of consecutive records, with the revisions that they made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Locations {
    /// The position of the first record.
    pub first: u64,
    records: Vec<(Location, Option<u64>)>,
}

impl Locations {
    /// Divides records into rows.
    pub(super) fn rows(records: &[Arc<IndexedRecord>]) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        for record in records {
            let (position, entry) = (record.tip.position, (record.location, record.revision));
            match rows.last_mut() {
                Some(row) if row.end() == position && row.records.len() < MOST_LOCATIONS => row.records.push(entry),
                _ => rows.push(Self { first: position, records: vec![entry] }),
            }
        }
        rows
    }

    /// Reads a row.
    pub(super) fn read(key: &[u8], value: &[u8]) -> Option<Self> {
        let first = position_at(key, POSITIONS.len())?;
        let records: Option<Vec<_>> = value.chunks(LOCATION).map(decode).collect();
        let records = records.filter(|records| !records.is_empty())?;
        first.checked_add(records.len() as u64)?;
        Some(Self { first, records })
    }

    /// The row's key.
    pub(super) fn key(&self) -> Vec<u8> {
        key_of(POSITIONS, self.first)
    }

    /// The row's value.
    pub(super) fn value(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.records.len() * LOCATION);
        for (location, revision) in &self.records {
            for number in [location.generation, location.offset, location.length, revision.unwrap_or_default()] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes
    }

    /// The position after the last record.
    pub(super) fn end(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    /// The location of a record.
    pub(super) fn get(&self, position: u64) -> Option<Location> {
        let at = usize::try_from(position.checked_sub(self.first)?).ok()?;
        self.records.get(at).map(|(location, _)| *location)
    }

    /// The record that made a revision.
    pub(super) fn of_revision(&self, revision: u64) -> Option<(u64, Location)> {
        let mut records = (self.first..).zip(&self.records);
        records.find(|(_, (_, made))| *made == Some(revision)).map(|(position, (location, _))| (position, *location))
    }

    /// The first revision, and the position of the record that made it.
    pub(super) fn first_revision(&self) -> Option<(u64, u64)> {
        (self.first..).zip(&self.records).find_map(|(position, (_, made))| Some(((*made)?, position)))
    }

    /// The records of a row from a position on, if there are any.
    pub(super) fn starting_at(self, position: u64) -> Option<Self> {
        let gone = usize::try_from(position.saturating_sub(self.first)).ok()?;
        let records = self.records.get(gone..).filter(|rest| !rest.is_empty())?.to_vec();
        Some(Self { first: self.first.max(position), records })
    }
}

fn decode(bytes: &[u8]) -> Option<(Location, Option<u64>)> {
    let (generation, offset) = (number::<8>(bytes, 0)?, number::<8>(bytes, 8)?);
    let (length, revision) = (number::<8>(bytes, 16)?, number::<8>(bytes, 24)?);
    // Revision 0 is the empty store, which no record made.
    Some((Location { generation, offset, length }, Some(revision).filter(|revision| *revision > 0)))
}

/// A record in the row of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResourceRecord {
    /// Its position.
    pub position: u64,
    /// Where the entry of the resource begins among the entries.
    pub offset: u64,
    /// The source that applied it.
    pub source: Option<String>,
}

impl ResourceRecord {
    /// Collects the records of each resource.
    pub(super) fn by_path(records: &[Arc<IndexedRecord>]) -> BTreeMap<&str, Vec<Self>> {
        let mut found: BTreeMap<&str, Vec<Self>> = BTreeMap::new();
        for record in records {
            for (path, offset) in &record.resources {
                let (position, offset, source) = (record.tip.position, *offset, record.source.clone());
                found.entry(path.as_str()).or_default().push(Self { position, offset, source });
            }
        }
        found
    }

    /// Writes the records of a row.
    pub(super) fn write(records: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(records.len() * 18);
        for Self { position, offset, source } in records {
            let source = source.as_deref().unwrap_or_default();
            let length = u16::try_from(source.len()).unwrap_or_default();
            bytes.extend_from_slice(&position.to_be_bytes());
            bytes.extend_from_slice(&offset.to_be_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(source.get(..usize::from(length)).unwrap_or_default().as_bytes());
        }
        bytes
    }

    /// Reads a row.
    pub(super) fn read(mut bytes: &[u8]) -> Option<Vec<Self>> {
        let mut records = Vec::with_capacity(bytes.len() / 18);
        while !bytes.is_empty() {
            let (position, rest) = bytes.split_first_chunk()?;
            let (offset, rest) = rest.split_first_chunk()?;
            let (length, rest) = rest.split_first_chunk()?;
            let (source, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            let source = std::str::from_utf8(source).ok().filter(|source| !source.is_empty()).map(str::to_owned);
            let (position, offset) = (u64::from_be_bytes(*position), u64::from_be_bytes(*offset));
            records.push(Self { position, offset, source });
            bytes = rest;
        }
        Some(records)
    }
}

/// The start of the keys of a resource's rows. Each ends with the position of its first record.
pub(super) fn resource_prefix(path: &str) -> Vec<u8> {
    [RESOURCES, path.as_bytes(), b"\0"].concat()
}

/// A key that ends with a number.
pub(super) fn key_of(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

/// The number at the end of a key, which begins at an offset.
pub(super) fn position_at(key: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(at..)?.try_into().ok()?))
}

/// The number at the end of a key.
pub(super) fn last_number(key: &[u8]) -> Option<u64> {
    position_at(key, key.len().checked_sub(8)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
pub(super) mod tests {
    use super::*;

    /// A record that a source applied, if there is one, as this revision, of these resources.
    pub(crate) fn record(
        position: u64,
        revision: Option<u64>,
        source: Option<&str>,
        paths: &[&str],
    ) -> Arc<IndexedRecord> {
        let tip = Tip { position, hash: [7; 32], revision: revision.unwrap_or_default(), next_order: 0 };
        let location = Location { generation: 1, offset: position * 100, length: 100 };
        let resources = paths.iter().map(|path| ((*path).to_owned(), position * 10)).collect();
        Arc::new(IndexedRecord { tip, location, revision, source: source.map(str::to_owned), resources })
    }

    #[test]
    fn locations_of_many_records_share_a_row() {
        let records: Vec<_> = (5..=140).map(|at| record(at, (at % 2 == 0).then_some(at / 2), None, &[])).collect();
        let rows = Locations::rows(&records);
        assert_eq!(rows.iter().map(|row| row.first).collect::<Vec<_>>(), [5, 69, 133]);
        for row in rows {
            assert_eq!(Locations::read(&row.key(), &row.value()), Some(row.clone()));
            for position in row.first..row.end() {
                let found = row.get(position).unwrap();
                assert_eq!(found.offset, position * 100);
                let made = row.of_revision(position / 2).map(|(position, _)| position);
                assert_eq!(made, (position % 2 == 0 || position > row.first).then_some(position / 2 * 2));
            }
            assert_eq!((row.get(row.first - 1), row.get(row.end())), (None, None));
            assert_eq!(row.first_revision(), Some((row.first / 2 + 1, row.first + 1)));
            let (first, end) = (row.first, row.end());
            assert_eq!(row.clone().starting_at(end), None);
            let rest = row.starting_at(first + 3).unwrap();
            assert_eq!((rest.first, rest.end(), rest.get(first)), (first + 3, end, None));
        }
        assert_eq!(Locations::read(b"p/", &[0; LOCATION]), None);
        assert_eq!(Locations::read(&key_of(POSITIONS, 1), &[0; LOCATION - 1]), None);
        assert_eq!(Locations::read(&key_of(POSITIONS, 1), &[]), None);
    }

    #[test]
    fn the_row_of_a_resource_has_who_applied_it() {
        let records = [
            record(1, Some(1), Some("shop"), &["/a", "/b"]),
            record(2, Some(2), None, &["/a"]),
            record(3, None, None, &[]),
        ];
        let rows = ResourceRecord::by_path(&records);
        assert_eq!(rows.keys().copied().collect::<Vec<_>>(), ["/a", "/b"]);
        let found: Vec<_> = rows["/a"].iter().map(|it| (it.position, it.offset, it.source.as_deref())).collect();
        assert_eq!(found, [(1, 10, Some("shop")), (2, 20, None)]);
        for row in [rows["/a"].clone(), Vec::new()] {
            let written = ResourceRecord::write(&row);
            assert_eq!(ResourceRecord::read(&written), Some(row));
            assert!(written.is_empty() || ResourceRecord::read(&written[..written.len() - 1]).is_none());
        }
    }
}

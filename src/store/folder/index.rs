//! The index of the history in sled: the location of each record by position, revision, source and resource.
//!
//! It is derived from the log and can be rebuilt, so a damaged index costs time but no data, and no commit waits for
//! sled.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sled::{Batch as Rows, Db};

use super::{
    files::{Part, find_special, make_private},
    frame::{hash_at, number},
};
use crate::{
    model::{code::Code, operation::Author},
    store::{
        StoreError,
        engine::{Batch, Hash, Query, Tip},
        history::Outcome,
    },
};

const APPLIED: &[u8] = b"m/applied";
const POSITIONS: &[u8] = b"p/";
const REVISIONS: &[u8] = b"v/";
const SOURCES: &[u8] = b"s/";
const RESOURCES: &[u8] = b"k/";
/// The index is small and rarely read, so a small cache is enough.
const CACHE_BYTES: u64 = 16 << 20;

/// The location of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Location {
    /// Whether the file is a journal or a history file.
    pub part: Part,
    /// The generation of the file.
    pub generation: u64,
    /// The offset of its frame.
    pub offset: u64,
    /// The length of its frame.
    pub length: u64,
}

/// The fields of a record that the index uses.
#[derive(Deserialize)]
struct Indexed {
    #[serde(default)]
    revision: Option<u64>,
    author: Author,
    outcome: Outcome,
    #[serde(default)]
    resources: Vec<IndexedResource>,
}

#[derive(Deserialize)]
struct IndexedResource {
    path: String,
}

/// The open index.
pub(super) struct Index {
    db: Db,
    path: PathBuf,
}

/// Runs a sled operation. sled can panic on damaged files.
fn guarded<R>(path: &Path, run: impl FnOnce() -> Result<R, sled::Error>) -> Result<R, StoreError> {
    let failed = |reason: &str| {
        StoreError::new(Code::StoreFailed, format!("the history index {} failed: {reason}", path.display()))
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(failed(&error.to_string())),
        Err(_) => Err(failed("its files are damaged")),
    }
}

impl Index {
    /// Opens the index, or creates an empty one.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(StoreError::io("create", path, &error));
            }
            // sled would follow a link to files that are not ours.
            Err(_) if !fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) => {
                return Err(StoreError::corrupt(path, "not a folder"));
            }
            _ => {}
        }
        if let Some(special) = find_special(path).map_err(|error| StoreError::io("read", path, &error))? {
            return Err(StoreError::corrupt(&special, "not a regular file"));
        }
        let db = guarded(path, || sled::Config::default().path(path).cache_capacity(CACHE_BYTES).open())?;
        // sled creates its files with the default mode of the process.
        let _ = make_private(path);
        Ok(Self { db, path: path.to_owned() })
    }

    /// Removes an index, so that an empty one can be created.
    pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
        let removed = match fs::symlink_metadata(path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(path),
            Ok(_) => fs::remove_file(path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", path, &error)),
            _ => Ok(()),
        }
    }

    /// Returns the last record in the index and its hash.
    pub(super) fn applied(&self) -> Result<Option<(u64, Hash)>, StoreError> {
        let found = guarded(&self.path, || self.db.get(APPLIED))?;
        Ok(found.and_then(|bytes| Some((number::<8>(&bytes, 0)?, hash_at(&bytes, 8)?))))
    }

    /// Adds records and sets the last one to `applied`. Without `applied`, only updates the locations of known records.
    pub(super) fn add<'b>(
        &self,
        records: impl Iterator<Item = (Location, &'b Batch)>,
        applied: Option<Tip>,
    ) -> Result<(), StoreError> {
        let mut rows = Rows::default();
        for (location, batch) in records {
            let position = batch.position.to_be_bytes();
            rows.insert([POSITIONS, &position].concat(), encode(location));
            if applied.is_none() {
                continue;
            }
            let Ok(record) = serde_json::from_slice::<Indexed>(&batch.record) else { continue };
            if let Some(revision) = record.revision {
                rows.insert([REVISIONS, &revision.to_be_bytes()].concat(), &position);
            }
            if matches!(record.author, Author::Source { .. }) && record.outcome == Outcome::Applied {
                rows.insert([SOURCES, &position].concat(), &[]);
            }
            for resource in record.resources {
                rows.insert([RESOURCES, resource.path.as_bytes(), b"\0", &position].concat(), &[]);
            }
        }
        if let Some(tip) = applied {
            rows.insert(APPLIED, [tip.position.to_le_bytes().as_slice(), &tip.hash].concat());
        }
        guarded(&self.path, || self.db.apply_batch(rows))
    }

    /// Finds at most `limit` records before a position, newest first.
    pub(super) fn find(&self, query: &Query, before: u64, limit: usize) -> Result<Vec<(u64, Location)>, StoreError> {
        let prefix: Vec<u8> = match query {
            Query::All => POSITIONS.to_vec(),
            Query::Reconciliations => SOURCES.to_vec(),
            Query::Resource(path) => [RESOURCES, path.as_bytes(), b"\0"].concat(),
            Query::Revision(revision) => {
                let found = guarded(&self.path, || self.db.get([REVISIONS, &revision.to_be_bytes()].concat()))?;
                let position = found.and_then(|bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?)));
                let found = position.map(|position| self.locate(position)).transpose()?;
                return Ok(found.into_iter().collect());
            }
        };
        let end = [prefix.as_slice(), &before.to_be_bytes()].concat();
        let keys = guarded(&self.path, || {
            self.db.range(prefix.clone()..end).keys().rev().take(limit).collect::<Result<Vec<_>, _>>()
        })?;
        let positions = keys.iter().map(|key| {
            let position = key.get(prefix.len()..).and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?)));
            self.locate(position.ok_or_else(|| self.damaged())?)
        });
        positions.collect()
    }

    /// Returns the position of the oldest record in the index.
    pub(super) fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let first = guarded(&self.path, || self.db.scan_prefix(POSITIONS).keys().next().transpose())?;
        let position = |key: sled::IVec| Some(u64::from_be_bytes(key.get(POSITIONS.len()..)?.try_into().ok()?));
        Ok(first.and_then(position))
    }

    /// Finds the record at a position.
    pub(super) fn locate(&self, position: u64) -> Result<(u64, Location), StoreError> {
        let found = guarded(&self.path, || self.db.get([POSITIONS, &position.to_be_bytes()].concat()))?;
        let location = found.and_then(|bytes| decode(&bytes)).ok_or_else(|| self.damaged())?;
        Ok((position, location))
    }

    /// Removes the records before a position.
    pub(super) fn forget(&self, oldest: u64) -> Result<(), StoreError> {
        guarded(&self.path, || {
            let others = self.db.iter().keys().filter(|row| !row.as_ref().is_ok_and(|row| row.starts_with(POSITIONS)));
            // Positions go last: a crash on the way must leave no row that leads to a position without a location.
            for row in others.chain(self.db.scan_prefix(POSITIONS).keys()) {
                let row = row?;
                let position = if row.starts_with(REVISIONS) {
                    self.db.get(&row)?.and_then(|bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?)))
                } else if row.starts_with(b"m/") {
                    None
                } else {
                    row.len().checked_sub(8).and_then(|at| Some(u64::from_be_bytes(row.get(at..)?.try_into().ok()?)))
                };
                if position.is_some_and(|position| position < oldest) {
                    self.db.remove(&row)?;
                }
            }
            Ok(())
        })
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

fn encode(location: Location) -> Vec<u8> {
    let mut bytes = vec![u8::from(location.part == Part::History)];
    for number in [location.generation, location.offset, location.length] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Option<Location> {
    let part = if *bytes.first()? == 1 { Part::History } else { Part::Journal };
    Some(Location {
        part,
        generation: number::<8>(bytes, 1)?,
        offset: number::<8>(bytes, 9)?,
        length: number::<8>(bytes, 17)?,
    })
}

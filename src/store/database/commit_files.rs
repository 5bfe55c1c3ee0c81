//! Reads commits, and single entries of them, where the index says that they are.

use std::collections::HashMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::{IndexRow, Location};
use crate::store::commit::batch::Batch;
use crate::store::commit::entries::{CommitEntries, decode_entry};
use crate::store::commit::header::CommitHeader;
use crate::store::disk::files::{self, Part};
use crate::store::engine::ResourceHistoryVisit;
use crate::store::error::StoreError;
use crate::store::log::frame::FrameLengths;
use crate::store::log::reader::{commit_at, entry_at, header_at, some_entries_at};

/// The most headers that are kept: the resources of one commit are often asked for together.
const MOST_HEADERS: usize = 256;

/// The parts of a log from which commits are read. Each is opened once.
pub(super) struct CommitFiles {
    folder: PathBuf,
    opened: HashMap<u64, File>,
    headers: HashMap<u64, Arc<LocatedHeader>>,
}

/// A header, and the lengths of the parts of its commit.
pub(super) struct LocatedHeader {
    /// The header.
    pub(super) header: CommitHeader,
    lengths: FrameLengths,
}

impl CommitFiles {
    /// Opens no file yet.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), opened: HashMap::new(), headers: HashMap::new() }
    }

    fn file(&mut self, generation: u64) -> Result<&File, StoreError> {
        let path = Part::Log.path(&self.folder, generation);
        match self.opened.entry(generation) {
            std::collections::hash_map::Entry::Occupied(opened) => Ok(opened.into_mut()),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                let opened = files::open(&path, File::options().read(true));
                Ok(vacant.insert(opened.map_err(|error| files::unreadable(&path, &error))?))
            }
        }
    }

    fn unreadable(&self, position: u64, location: Location, reason: &str) -> StoreError {
        let path = Part::Log.path(&self.folder, location.generation);
        let place = format!("record {position} in {} at byte {}", path.display(), location.offset);
        StoreError::corrupt(&self.folder, format!("{place} cannot be read: {reason}"))
    }

    /// Reads the header of a commit.
    pub(super) fn header(&mut self, position: u64, location: Location) -> Result<Arc<LocatedHeader>, StoreError> {
        if let Some(known) = self.headers.get(&position) {
            return Ok(Arc::clone(known));
        }
        let found = header_at(self.file(location.generation)?, location.offset);
        let found = found.map_err(|error| self.unreadable(position, location, &error.to_string()))?;
        let Some((batch, lengths)) = found.filter(|(batch, _)| batch.position == position) else {
            return Err(self.unreadable(position, location, "its checksum does not match"));
        };
        let located = Arc::new(LocatedHeader { header: CommitHeader::from_bytes(&batch.header)?, lengths });
        if self.headers.len() >= MOST_HEADERS {
            self.headers.clear();
        }
        self.headers.insert(position, Arc::clone(&located));
        Ok(located)
    }

    /// Reads a whole commit.
    pub(super) fn commit(&self, position: u64, location: Location) -> Result<Batch, StoreError> {
        let path = Part::Log.path(&self.folder, location.generation);
        let found = commit_at(&path, location.offset, location.length);
        let found = found.map_err(|error| self.unreadable(position, location, &error.to_string()))?;
        found
            .filter(|batch| batch.position == position)
            .ok_or_else(|| self.unreadable(position, location, "its checksum does not match"))
    }

    /// Reads some entries of the resources that a commit changed: at most so many, after the first ones.
    pub(super) fn some_entries(
        &self,
        position: u64,
        location: Location,
        skip: usize,
        most: usize,
    ) -> Result<CommitEntries, StoreError> {
        let path = Part::Log.path(&self.folder, location.generation);
        let found = some_entries_at(&path, location.offset, position, skip, most);
        let found = found.map_err(|error| self.unreadable(position, location, &error.to_string()))?;
        found.ok_or_else(|| self.unreadable(position, location, "a checksum does not match"))
    }

    /// Reads the entry of a commit that a row leads to, for a visitor of histories of resources.
    pub(super) fn visit(
        &mut self,
        number: usize,
        row: &IndexRow,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let (position, location) = (row.position, row.location);
        let found = self.header(position, location)?;
        let at = location.offset + found.lengths.entries_at() + row.entry_offset();
        let bytes = entry_at(self.file(location.generation)?, at);
        let bytes = bytes.map_err(|error| self.unreadable(position, location, &error.to_string()))?;
        let bytes = bytes.unwrap_or_default();
        match decode_entry(&bytes) {
            Some(entry) => visit(number, &found.header, &entry),
            None => Err(self.unreadable(position, location, "the checksum of an entry does not match")),
        }
    }
}

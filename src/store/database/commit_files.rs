//! Reads commits, and single entries of them, where the index says that they are.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::index::{IndexRow, Location};
use crate::store::commit::batch::Batch;
use crate::store::commit::entries::{CommitEntries, decode_entry};
use crate::store::commit::header::CommitHeader;
use crate::store::disk::files::{self, Part};
use crate::store::engine::ResourceHistoryVisit;
use crate::store::error::StoreError;
use crate::store::log::frame::FrameLengths;
use crate::store::log::reader::{commit_at, entry_at, header_at, some_entries_at};

/// The parts of a log from which commits are read. Each is opened once.
pub(super) struct CommitFiles {
    folder: PathBuf,
    opened: HashMap<u64, File>,
}

impl CommitFiles {
    /// Opens no file yet.
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), opened: HashMap::new() }
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

    /// Returns what was read of a commit. `otherwise` says what is wrong if something else is in its place.
    fn found<T>(
        &self,
        position: u64,
        location: Location,
        read: io::Result<Option<T>>,
        otherwise: &str,
    ) -> Result<T, StoreError> {
        let read = read.map_err(|error| self.unreadable(position, location, &error.to_string()))?;
        read.ok_or_else(|| self.unreadable(position, location, otherwise))
    }

    /// Reads the header of a commit, and the lengths of the parts of its frame.
    pub(super) fn header(
        &mut self,
        position: u64,
        location: Location,
    ) -> Result<(CommitHeader, FrameLengths), StoreError> {
        let read = header_at(self.file(location.generation)?, location.offset);
        let read = read.map(|found| found.filter(|(batch, _)| batch.position == position));
        let (batch, lengths) = self.found(position, location, read, "its checksum does not match")?;
        Ok((CommitHeader::from_bytes(&batch.header)?, lengths))
    }

    /// Reads a whole commit.
    pub(super) fn commit(&self, position: u64, location: Location) -> Result<Batch, StoreError> {
        let path = Part::Log.path(&self.folder, location.generation);
        let read = commit_at(&path, location.offset, location.length);
        let read = read.map(|found| found.filter(|batch| batch.position == position));
        self.found(position, location, read, "its checksum does not match")
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
        let read = some_entries_at(&path, location.offset, position, skip, most);
        self.found(position, location, read, "a checksum does not match")
    }

    /// Reads the entry of a commit that a row leads to, for a visitor of histories of resources.
    pub(super) fn visit(
        &mut self,
        number: usize,
        row: &IndexRow,
        visit: &mut ResourceHistoryVisit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let (position, location) = (row.position, row.location);
        let (header, lengths) = self.header(position, location)?;
        let at = location.offset + lengths.entries_at() + row.entry_offset();
        let damaged = "the checksum of an entry does not match";
        let read = entry_at(self.file(location.generation)?, at);
        let bytes = self.found(position, location, read, damaged)?;
        let entry = decode_entry(&bytes).ok_or_else(|| self.unreadable(position, location, damaged))?;
        visit(number, &header, &entry)
    }
}

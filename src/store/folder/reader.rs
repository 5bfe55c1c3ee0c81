//! Reads a journal or a history file batch by batch, so that memory is bounded by the largest batch.
//!
//! A server folds journals for as long as it runs, on threads that come and go. Whole files in memory would stay with
//! the allocator, once for each of its arenas.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    base::StoreId,
    files, frame,
    journal::{self, start_of},
};
use crate::store::{
    StoreError,
    engine::{Batch, Tip},
};

const BUFFER: usize = 1 << 16;

/// The bytes after the last readable batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    /// An interrupted write: no complete batch follows.
    Torn,
    /// Complete batches follow, so this was not the last write.
    Damaged,
}

/// A batch, and the bytes of the file that it takes.
pub(super) struct Framed {
    /// The offset of its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The batch itself.
    pub batch: Batch,
}

/// A journal or history file that is being read.
pub(super) struct LogReader {
    file: BufReader<File>,
    path: PathBuf,
    with_changes: bool,
    /// The length of the file when it was opened.
    size: u64,
    frame: Vec<u8>,
    /// The store that the file is part of.
    pub store: StoreId,
    /// The batch before the first one of the file.
    pub start: Tip,
    /// The batch that was read last.
    pub tip: Tip,
    /// The end of that batch in the file.
    pub end: u64,
    /// Set at the end of the file if the last bytes are not a batch.
    pub rest: Option<Rest>,
}

impl LogReader {
    /// Opens a file and reads its header. Without `with_changes`, batches are checked but have no changes.
    pub(super) fn open(path: &Path, with_changes: bool) -> Result<Self, StoreError> {
        let opened = files::open(path, File::options().read(true)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::corrupt(path, "the file is missing"),
            _ => StoreError::io("read", path, &error),
        })?;
        let size = opened.metadata().map_or(0, |file| file.len());
        let mut file = BufReader::with_capacity(BUFFER, opened);
        let mut head = Vec::with_capacity(journal::HEAD);
        let read = file.by_ref().take(journal::HEAD as u64).read_to_end(&mut head);
        read.map_err(|error| StoreError::io("read", path, &error))?;
        let (store, start) = start_of(&head).ok_or_else(|| StoreError::corrupt(path, "its header is invalid"))?;
        let end = journal::HEAD as u64;
        Ok(Self {
            file,
            path: path.to_owned(),
            with_changes,
            size,
            frame: Vec::new(),
            store,
            start,
            tip: start,
            end,
            rest: None,
        })
    }

    /// Reads the next batch. Returns none at the end of the file and before bytes that are not a batch.
    pub(super) fn batch(&mut self) -> Result<Option<Framed>, StoreError> {
        if self.rest.is_some() {
            return Ok(None);
        }
        self.frame.clear();
        self.fill(frame::HEAD)?;
        if self.frame.is_empty() {
            return Ok(None);
        }
        if let Ok(length) = frame::frame_length(&self.frame) {
            self.fill(length)?;
        }
        let Ok((batch, length)) = frame::decode(&self.frame, self.with_changes) else {
            self.fill(usize::MAX)?;
            let later = self.frame.get(1..).is_some_and(frame::is_anywhere);
            self.rest = Some(if later { Rest::Damaged } else { Rest::Torn });
            return Ok(None);
        };
        if batch.position != self.tip.position + 1 {
            let found = format!("record {} follows record {}", batch.position, self.tip.position);
            return Err(StoreError::corrupt(&self.path, found));
        }
        let (offset, length) = (self.end, length as u64);
        self.tip = Tip::after(&batch);
        self.end += length;
        Ok(Some(Framed { offset, length, batch }))
    }

    /// The error of a file whose next record cannot be read, although it must be there.
    pub(super) fn unreadable(&self) -> StoreError {
        let found = format!("record {} at byte {} cannot be read", self.tip.position + 1, self.end);
        StoreError::corrupt(&self.path, found)
    }

    /// Reads on until the frame has `length` bytes or the file ends.
    fn fill(&mut self, length: usize) -> Result<(), StoreError> {
        let missing = length.saturating_sub(self.frame.len()) as u64;
        // A vector that grows would copy a large frame several times. A damaged length exceeds the file.
        let left = self.size.saturating_sub(self.end + self.frame.len() as u64);
        self.frame.reserve_exact(missing.min(left) as usize);
        let read = self.file.by_ref().take(missing).read_to_end(&mut self.frame);
        read.map(|_| ()).map_err(|error| StoreError::io("read", &self.path, &error))
    }
}

/// Reads the one batch at an offset, without its changes.
pub(super) fn read_at(path: &Path, offset: u64, length: usize) -> io::Result<Option<Batch>> {
    let mut bytes = vec![0; length];
    files::open(path, File::options().read(true))?.read_exact_at(&mut bytes, offset)?;
    Ok(frame::decode(&bytes, false).ok().map(|(batch, _)| batch))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_long_file_is_read_in_little_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.0000000001");
        let mut journal = journal::Journal::create(path.clone(), [7; 16], Tip::default()).unwrap();
        let batch = |position: u64| {
            let record = Arc::from(vec![b'x'; 1000]);
            let changes = vec![("r/a".to_owned(), Some(vec![1; 100]))];
            Batch { position, revision: position, next_order: 1, record, hash: [2; 32], changes }
        };
        let batches: Vec<Batch> = (1..=2000).map(batch).collect();
        let frames: Vec<frame::BatchFrame<'_>> = batches.iter().map(frame::BatchFrame::new).collect();
        journal.append(&frames).unwrap();
        let mut reader = LogReader::open(&path, true).unwrap();
        let mut count = 0;
        while let Some(framed) = reader.batch().unwrap() {
            count += 1;
            let found = read_at(&path, framed.offset, framed.length as usize).unwrap().unwrap();
            assert_eq!((found.position, framed.batch.position, framed.batch.changes.len()), (count, count, 1));
        }
        assert_eq!((count, reader.end, reader.rest), (2000, journal.length(), None));
        assert!(reader.frame.capacity() < 1 << 16, "{} of {} bytes", reader.frame.capacity(), reader.end);
    }
}

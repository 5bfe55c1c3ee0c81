//! Reads a part of the log batch by batch, so that memory is bounded by the largest batch.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::{
    files, frame,
    journal::{self, start_of},
    parallel_read,
};
use crate::store::{
    StoreError,
    engine::{Batch, Tip},
    seal::StoreId,
};

const BUFFER: usize = 1 << 16;
/// How much of the changes of a large batch is read at a time, only to verify them.
const PIECE: usize = 1 << 20;
/// The most bytes of the beginning of a record: its author can have the message of a commit.
const BEGINNING: usize = 1 << 16;
/// From this size on, a batch is read on all cores.
const LARGE: u64 = 1 << 22;

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

/// A part of the log that is being read.
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
        if let Some((batch, length)) = self.large()? {
            return self.found(batch, length).map(Some);
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
        self.found(batch, length as u64).map(Some)
    }

    /// Reads a large batch, of which only the head was read yet: on all cores, into the memory where it stays. Returns none
    /// for any other, and leaves what is damaged to be found.
    fn large(&mut self) -> Result<Option<(Batch, u64)>, StoreError> {
        let Ok((record, changes)) = frame::lengths(&self.frame) else { return Ok(None) };
        let start = self.end + frame::HEAD as u64;
        let end = start.checked_add(record).and_then(|end| end.checked_add(changes));
        let Some(end) = end.filter(|end| self.with_changes && end - start >= LARGE && *end <= self.size) else {
            return Ok(None);
        };
        let failed = |error: io::Error| StoreError::io("read", &self.path, &error);
        let read =
            |offset: u64, length: u64| parallel_read::read_part(self.file.get_ref(), offset, length).map_err(failed);
        let (kept, changed) = (read(start, record)?, read(start + record, changes)?);
        let Ok(batch) = frame::assemble(&self.frame, kept, changed) else { return Ok(None) };
        self.file.seek(SeekFrom::Start(end)).map_err(|error| StoreError::io("read", &self.path, &error))?;
        Ok(Some((batch, end - self.end)))
    }

    /// A batch that was read, if it follows the one before.
    fn found(&mut self, batch: Batch, length: u64) -> Result<Framed, StoreError> {
        if batch.position != self.tip.position + 1 {
            let found = format!("record {} follows record {}", batch.position, self.tip.position);
            return Err(StoreError::corrupt(&self.path, found));
        }
        let offset = self.end;
        self.tip = Tip::after(&batch);
        self.end += length;
        Ok(Framed { offset, length, batch })
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

/// Reads the one batch at an offset, without its changes. The changes of a large one are never in memory as a whole.
pub(super) fn read_at(path: &Path, offset: u64, length: usize) -> io::Result<Option<Batch>> {
    let file = files::open(path, File::options().read(true))?;
    if length as u64 >= LARGE {
        return read_large_at(&file, offset, length as u64);
    }
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(frame::decode(&bytes, false).ok().map(|(batch, _)| batch))
}

fn read_large_at(file: &File, offset: u64, length: u64) -> io::Result<Option<Batch>> {
    let mut head = [0; frame::HEAD];
    file.read_exact_at(&mut head, offset)?;
    let start = frame::HEAD as u64;
    let lengths = frame::lengths(&head).ok().filter(|(record, changes)| {
        record.checked_add(*changes).and_then(|content| content.checked_add(start)) == Some(length)
    });
    let Some((record, changes)) = lengths else { return Ok(None) };
    let kept = parallel_read::read_part(file, offset + start, record)?;
    let mut checked = frame::PartlyRead::new(head, kept);
    let mut piece = vec![0; PIECE];
    let (mut at, end) = (offset + start + record, offset + start + record + changes);
    while at < end {
        let next = piece.get_mut(..PIECE.min((end - at) as usize)).unwrap_or_default();
        file.read_exact_at(next, at)?;
        checked.add_changes(next);
        at += next.len() as u64;
    }
    Ok(checked.finish().ok())
}

/// Reads the first bytes of the record of the batch at an offset, without verifying them. Returns them with the length of
/// the record, or none if there is no batch.
pub(super) fn beginning_at(path: &Path, offset: u64) -> io::Result<Option<(u64, Bytes)>> {
    let file = files::open(path, File::options().read(true))?;
    let mut bytes = Vec::with_capacity(frame::HEAD + BEGINNING);
    let mut from = &file;
    from.seek(SeekFrom::Start(offset))?;
    from.take((frame::HEAD + BEGINNING) as u64).read_to_end(&mut bytes)?;
    let Ok((record, _)) = frame::lengths(&bytes) else { return Ok(None) };
    let mut beginning = Bytes::from(bytes).split_off(frame::HEAD);
    beginning.truncate(usize::try_from(record).unwrap_or(usize::MAX));
    Ok(Some((record, beginning)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{frame::BatchFrame, *};

    #[test]
    fn a_long_file_is_read_in_little_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.0000000001");
        let mut journal = journal::Journal::create(path.clone(), [7; 16], Tip::default()).unwrap();
        let batch = |position: u64| {
            let record = Bytes::from(vec![b'x'; 1000]);
            let changes = std::iter::once(("r/a", Some(vec![1; 100]))).collect();
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

    #[test]
    fn a_large_batch_is_read_as_the_others_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.0000000001");
        let mut journal = journal::Journal::create(path.clone(), [7; 16], Tip::default()).unwrap();
        let batch = |position: u64, many: usize| {
            let change = |number: usize| (format!("r/{number}"), (!number.is_multiple_of(7)).then(|| vec![1; 1000]));
            let record = Bytes::from(vec![b'x'; 100 * many]);
            let changes = (0..many).map(change).collect();
            Batch { position, revision: position, next_order: 1, record, hash: [2; 32], changes }
        };
        let batches = [batch(1, 3), batch(2, 6000), batch(3, 5), batch(4, 5000), batch(5, 1)];
        let frames: Vec<BatchFrame<'_>> = batches.iter().map(BatchFrame::new).collect();
        assert!(journal.append(&frames).is_ok());
        for with_changes in [true, false] {
            let mut reader = LogReader::open(&path, with_changes).unwrap();
            for (expected, frame) in batches.iter().zip(&frames) {
                let Framed { length, batch, .. } = reader.batch().unwrap().unwrap();
                assert_eq!(
                    (batch.position, length, &batch.record),
                    (expected.position, frame.length(), &expected.record)
                );
                assert!(batch.changes == if with_changes { expected.changes.clone() } else { Default::default() });
            }
            assert!(reader.batch().unwrap().is_none() && reader.rest.is_none());
        }
        let whole = std::fs::read(&path).unwrap();
        let first: u64 = frames.iter().take(3).map(BatchFrame::length).sum();
        let fourth = journal::HEAD + first as usize;
        let rest_of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut reader = LogReader::open(&path, true).unwrap();
            while reader.batch().unwrap().is_some() {}
            (reader.tip.position, reader.rest)
        };
        for at in [0, 10, 50, frame::HEAD, 1_000_000, 4_500_000] {
            let mut damaged = whole.clone();
            *damaged.get_mut(fourth + at).unwrap() ^= 1;
            assert_eq!(rest_of(&damaged), (3, Some(Rest::Damaged)), "byte {at}");
            assert_eq!(rest_of(whole.get(..fourth + at + 1).unwrap()), (3, Some(Rest::Torn)), "cut at {at}");
        }
        // The head is written last.
        let mut headless = whole.get(..fourth + 4_500_000).unwrap().to_vec();
        headless.get_mut(fourth..fourth + frame::HEAD).unwrap().fill(0);
        assert_eq!(rest_of(&headless), (3, Some(Rest::Torn)));
    }
}

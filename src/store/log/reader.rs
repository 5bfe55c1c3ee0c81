//! Reads a part of the log batch by batch, so that memory is bounded by the largest batch.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::appender::{self, start_of};
use super::frame::{self, FrameLengths};
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::entries::{self, CommitEntries, decode_entry, entry_key, entry_length};
use crate::store::commit::record_key::RECORD;
use crate::store::disk::files;
use crate::store::error::{Doing, StoreError};
use crate::store::seal::StoreId;

const BUFFER: usize = 1 << 16;
/// How much is read at once where a header is expected, and where an entry is: most are shorter.
const HEADER_BYTES: usize = 1 << 10;
const ENTRY_BYTES: usize = 1 << 11;
/// How many places are tried at which another frame may begin.
const MOST_STARTS: usize = 1000;

/// The bytes after the last readable batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogTail {
    /// An interrupted write: no complete batch follows.
    Torn,
    /// Complete batches follow, so this was not the last write.
    Damaged,
}

/// A batch, and the bytes of the file that it takes.
pub(crate) struct ReadBatch {
    /// The offset of its first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// The batch itself.
    pub batch: Batch,
}

/// A part of the log that is being read.
pub(crate) struct LogReader {
    file: BufReader<File>,
    path: PathBuf,
    with_entries: bool,
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
    pub tail: Option<LogTail>,
}

impl LogReader {
    /// Opens a file and reads its header.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { with_entries: true, ..Self::open_headers(path)? })
    }

    /// Opens a file to read on after a batch that ends at an offset.
    pub(crate) fn open_after(path: &Path, tip: Tip, end: u64) -> Result<Self, StoreError> {
        let mut reader = Self { tip, end, ..Self::open(path)? };
        reader.skip_to(end)?;
        Ok(reader)
    }

    /// Opens a file and reads its header. Batches are read without their calls and entries, which are not verified then.
    pub(crate) fn open_headers(path: &Path) -> Result<Self, StoreError> {
        let opened = files::open(path, File::options().read(true)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => StoreError::corrupt(path, "the file is missing"),
            _ => StoreError::io("read", path, &error),
        })?;
        let size = opened.metadata().map_or(0, |file| file.len());
        let mut file = BufReader::with_capacity(BUFFER, opened);
        let mut head = Vec::with_capacity(appender::HEAD);
        file.by_ref().take(appender::HEAD as u64).read_to_end(&mut head).doing("read", path)?;
        let (store, start) = start_of(&head).ok_or_else(|| StoreError::corrupt(path, "its header is invalid"))?;
        let end = appender::HEAD as u64;
        Ok(Self {
            file,
            path: path.to_owned(),
            with_entries: false,
            size,
            frame: Vec::new(),
            store,
            start,
            tip: start,
            end,
            tail: None,
        })
    }

    /// Reads the next batch. Returns none at the end of the file and before bytes that are not a batch.
    pub(crate) fn batch(&mut self) -> Result<Option<ReadBatch>, StoreError> {
        if self.tail.is_some() {
            return Ok(None);
        }
        self.frame.clear();
        self.fill(frame::HEAD)?;
        if self.frame.is_empty() {
            return Ok(None);
        }
        if let Some((batch, length)) = self.frame()? {
            return self.found(batch, length).map(Some);
        }
        // If a batch follows somewhere, these bytes were not the last write.
        self.skip_to(self.end)?;
        self.frame.clear();
        self.fill(usize::MAX)?;
        let later = frame::next_frame(&self.frame, MOST_STARTS).is_some();
        self.tail = Some(if later { LogTail::Damaged } else { LogTail::Torn });
        Ok(None)
    }

    /// Reads a frame whose start was read. Returns none if it is incomplete or damaged.
    fn frame(&mut self) -> Result<Option<(Batch, u64)>, StoreError> {
        let Some(lengths) = FrameLengths::read(&self.frame) else { return Ok(None) };
        let Some(length) = lengths.frame().filter(|length| *length <= self.size - self.end) else {
            return Ok(None);
        };
        self.fill(frame::HEAD + lengths.header as usize)?;
        let Some(batch) = frame::decode_start(&self.frame) else { return Ok(None) };
        let batch = if self.with_entries {
            let (calls, entries) = (self.take(lengths.calls)?, self.take(lengths.entries)?);
            frame::complete(batch, calls.into(), entries.into())
        } else {
            self.skip_to(self.end + length)?;
            Some(batch)
        };
        Ok(batch.map(|batch| (batch, length)))
    }

    /// Reads the next bytes, into the memory where they stay.
    fn take(&mut self, length: u64) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::with_capacity(length as usize);
        self.file.by_ref().take(length).read_to_end(&mut bytes).doing("read", &self.path)?;
        Ok(bytes)
    }

    fn skip_to(&mut self, offset: u64) -> Result<(), StoreError> {
        self.file.seek(SeekFrom::Start(offset)).map(|_| ()).doing("read", &self.path)
    }

    /// A batch that was read, if it follows the one before.
    fn found(&mut self, batch: Batch, length: u64) -> Result<ReadBatch, StoreError> {
        if batch.position != self.tip.position + 1 {
            let found = format!("record {} follows record {}", batch.position, self.tip.position);
            return Err(StoreError::corrupt(&self.path, found));
        }
        let offset = self.end;
        self.tip = Tip::after(&batch);
        self.end += length;
        Ok(ReadBatch { offset, length, batch })
    }

    /// The error of a file whose next record cannot be read, although it must be there.
    pub(crate) fn unreadable(&self) -> StoreError {
        let found = format!("record {} at byte {} cannot be read", self.tip.position + 1, self.end);
        StoreError::corrupt(&self.path, found)
    }

    /// Reads on until the frame has `length` bytes or the file ends.
    fn fill(&mut self, length: usize) -> Result<(), StoreError> {
        let missing = length.saturating_sub(self.frame.len()) as u64;
        // A vector that grows would copy a large frame several times. A damaged length exceeds the file.
        let left = self.size.saturating_sub(self.end + self.frame.len() as u64);
        self.frame.reserve_exact(missing.min(left) as usize);
        self.file.by_ref().take(missing).read_to_end(&mut self.frame).map(|_| ()).doing("read", &self.path)
    }
}

/// Reads the whole commit at an offset.
pub(crate) fn commit_at(path: &Path, offset: u64, length: u64) -> io::Result<Option<Batch>> {
    let file = files::open(path, File::options().read(true))?;
    let Some((batch, lengths)) = header_at(&file, offset)? else { return Ok(None) };
    if lengths.frame() != Some(length) {
        return Ok(None);
    }
    let entries_at = offset + lengths.entries_at();
    let calls = read_part(&file, entries_at - lengths.calls, lengths.calls)?;
    let entries = read_part(&file, entries_at, lengths.entries)?;
    Ok(frame::complete(batch, calls.into(), entries.into()))
}

/// Reads the header of the commit at an offset, and the lengths of its parts.
pub(crate) fn header_at(file: &File, offset: u64) -> io::Result<Option<(Batch, FrameLengths)>> {
    let mut bytes = read_up_to(file, offset, frame::HEAD + HEADER_BYTES)?;
    let Some(lengths) = FrameLengths::read(&bytes) else { return Ok(None) };
    let length = frame::HEAD + lengths.header as usize;
    if bytes.len() < length {
        bytes = read_up_to(file, offset, length)?;
    }
    let batch = bytes.get(..length).and_then(frame::decode_start);
    Ok(batch.map(|batch| (batch, lengths)))
}

/// Reads the encoded entry at an offset. Whoever decodes it verifies it.
pub(crate) fn entry_at(file: &File, offset: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = read_up_to(file, offset, ENTRY_BYTES)?;
    let Some(length) = entry_length(&bytes) else { return Ok(None) };
    // A damaged length can be anything.
    if bytes.len() < length && (length as u64) < file.metadata()?.len() {
        bytes = read_up_to(file, offset, length)?;
    }
    Ok((bytes.len() >= length).then(|| {
        bytes.truncate(length);
        bytes
    }))
}

/// Reads some entries of resources of the commit at an offset: at most so many, after the first ones. Only one of them is in
/// memory besides those that are returned, and each of these is verified. Returns none if the commit is another one.
pub(crate) fn some_entries_at(
    path: &Path,
    offset: u64,
    position: u64,
    skip: usize,
    most: usize,
) -> io::Result<Option<CommitEntries>> {
    let file = files::open(path, File::options().read(true))?;
    let found = header_at(&file, offset)?.filter(|(batch, _)| batch.position == position);
    let Some((_, lengths)) = found else { return Ok(None) };
    let mut file = BufReader::with_capacity(BUFFER, file);
    file.seek(SeekFrom::Start(offset + lengths.entries_at()))?;
    let (mut left, mut seen, mut bytes) = (lengths.entries, 0, Vec::new());
    let mut entries = CommitEntries::default();
    while left > 0 && entries.len() < most {
        bytes.clear();
        file.by_ref().take(entries::HEAD as u64).read_to_end(&mut bytes)?;
        // A damaged length can be anything.
        let Some(length) = entry_length(&bytes).filter(|length| *length as u64 <= left) else { return Ok(None) };
        file.by_ref().take((length - bytes.len()) as u64).read_to_end(&mut bytes)?;
        left -= length as u64;
        if !entry_key(&bytes).is_some_and(|key| key.starts_with(RECORD.as_bytes())) {
            continue;
        }
        seen += 1;
        if seen > skip {
            let Some(entry) = decode_entry(&bytes) else { return Ok(None) };
            entries.push(&entry);
        }
    }
    Ok(Some(entries))
}

/// Reads so many bytes at an offset.
fn read_part(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// Reads so many bytes at an offset, or less at the end of the file.
fn read_up_to(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; most];
    let mut read = 0;
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{frame::BatchFrame, *};
    use crate::store::log::frame::tests::batch;

    #[test]
    fn a_long_file_is_read_in_little_memory_and_each_commit_by_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.0000000001");
        let mut appender = appender::LogAppender::create(path.clone(), [7; 16], Tip::default()).unwrap();
        let batches: Vec<Batch> = (1..=2000).map(|position| batch(position, 1)).collect();
        appender.append(&batches).unwrap();
        for with_entries in [true, false] {
            let opened = if with_entries { LogReader::open(&path) } else { LogReader::open_headers(&path) };
            let mut reader = opened.unwrap();
            let mut count = 0;
            while let Some(framed) = reader.batch().unwrap() {
                count += 1;
                let found = commit_at(&path, framed.offset, framed.length).unwrap().unwrap();
                let entries = (found.entries.len(), framed.batch.entries.len());
                assert_eq!((found.position, entries), (count, (1, usize::from(with_entries))));
            }
            assert_eq!((count, reader.end, reader.tail), (2000, appender.length(), None));
            assert!(reader.frame.capacity() < 1 << 16, "{} of {} bytes", reader.frame.capacity(), reader.end);
        }
    }

    #[test]
    fn a_large_batch_is_read_as_the_others_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.0000000001");
        let mut appender = appender::LogAppender::create(path.clone(), [7; 16], Tip::default()).unwrap();
        let batches = [batch(1, 3), batch(2, 6000), batch(3, 5), batch(4, 5000), batch(5, 1)];
        let frames: Vec<BatchFrame<'_>> = batches.iter().map(BatchFrame::new).collect();
        appender.append(&batches).unwrap();
        for with_entries in [true, false] {
            let opened = if with_entries { LogReader::open(&path) } else { LogReader::open_headers(&path) };
            let mut reader = opened.unwrap();
            for (expected, frame) in batches.iter().zip(&frames) {
                let ReadBatch { length, batch, .. } = reader.batch().unwrap().unwrap();
                assert_eq!(
                    (batch.position, length, &batch.header),
                    (expected.position, frame.length(), &expected.header)
                );
                assert!(batch.entries == if with_entries { expected.entries.clone() } else { Default::default() });
            }
            assert!(reader.batch().unwrap().is_none() && reader.tail.is_none());
        }
        let whole = std::fs::read(&path).unwrap();
        let first: u64 = frames.iter().take(3).map(BatchFrame::length).sum();
        let fourth = appender::HEAD + first as usize;
        let file = File::open(&path).unwrap();
        let (_, lengths) = header_at(&file, fourth as u64).unwrap().unwrap();
        for (offset, expected) in batches.get(3).unwrap().entries.located().step_by(500) {
            let entry = entry_at(&file, fourth as u64 + lengths.entries_at() + offset).unwrap().unwrap();
            assert!(decode_entry(&entry) == Some(expected));
        }
        let fourth_batch = batches.get(3).unwrap();
        for (skip, most) in [(0, 0), (0, 25), (4_990, 25), (5_000, 25)] {
            let some = some_entries_at(&path, fourth as u64, 4, skip, most).unwrap().unwrap();
            assert!(some == fourth_batch.some_entries(skip, most) && some.len() <= most, "{skip}");
        }
        assert!(some_entries_at(&path, fourth as u64, 3, 0, 1).unwrap().is_none(), "it is another commit");
        let rest_of = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let mut reader = LogReader::open(&path).unwrap();
            while reader.batch().unwrap().is_some() {}
            (reader.tip.position, reader.tail)
        };
        for at in [0, 10, 50, frame::HEAD, 1_000_000, 4_500_000] {
            let mut damaged = whole.clone();
            *damaged.get_mut(fourth + at).unwrap() ^= 1;
            assert_eq!(rest_of(&damaged), (3, Some(LogTail::Damaged)), "byte {at}");
            assert_eq!(rest_of(whole.get(..fourth + at + 1).unwrap()), (3, Some(LogTail::Torn)), "cut at {at}");
        }
        // The start is written last.
        let mut headless = whole.get(..fourth + 4_500_000).unwrap().to_vec();
        headless.get_mut(fourth..fourth + frame::HEAD).unwrap().fill(0);
        assert_eq!(rest_of(&headless), (3, Some(LogTail::Torn)));
    }
}

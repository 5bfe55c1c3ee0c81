//! A part of the log: a file to which batches are appended, with one write and one sync for all waiting batches.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::frame::{self, BatchFrame, hash_at, number};
use crate::{
    model::diagnostics::code::Code,
    store::{
        StoreError,
        disk::files,
        engine::{Batch, Hash, Tip},
        fault,
        seal::StoreId,
    },
};

const MAGIC: [u8; 8] = *b"ewlog-4\n";
/// How many bytes are collected for one write.
const TOGETHER: usize = 1 << 20;
/// Magic, position, revision, next order, hash, store, checksum.
pub(crate) const HEAD: usize = 8 + 8 + 8 + 8 + 32 + 16 + 32;

/// The part of the log that is being written.
pub(crate) struct LogAppender {
    file: File,
    path: PathBuf,
    length: u64,
}

impl LogAppender {
    /// Creates a part that continues the log after `start`.
    pub(crate) fn create(path: PathBuf, store: StoreId, start: Tip) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::io("create", &path, &error);
        let head = head(store, start);
        let (temporary, file) = files::create_temporary(&path).map_err(failed)?;
        fault::write_all_at("log.create", &file, &head, 0).map_err(failed)?;
        fault::point("log.sync").and_then(|()| file.sync_all()).map_err(failed)?;
        files::rename(&temporary, &path)?;
        Ok(Self { file, path, length: HEAD as u64 })
    }

    /// Opens a part whose complete batches end at `length`, and cuts off the rest of an interrupted write.
    pub(crate) fn open(path: PathBuf, length: u64) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::io("open", &path, &error);
        let file = files::open(&path, File::options().read(true).write(true)).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > length {
            let cut = fault::point("log.cut").and_then(|()| file.set_len(length));
            cut.and_then(|()| file.sync_all()).map_err(failed)?;
        }
        Ok(Self { file, path, length })
    }

    /// Returns the offset of the next batch.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Appends frames durably. On an error the file is unchanged, except after [`AppendError::Unsure`].
    pub(crate) fn append(&mut self, frames: &[BatchFrame<'_>]) -> Result<(), AppendError> {
        let end = match self.write(frames) {
            Ok(end) => end,
            Err(error) => {
                let error = StoreError::io("write", &self.path, &error);
                // The usual cause is a full disk. Without the incomplete batch, a later write can succeed.
                let cut = fault::point("log.cut").and_then(|()| self.file.set_len(self.length));
                return Err(match cut.and_then(|()| self.file.sync_all()) {
                    Ok(()) => AppendError::Undone(error),
                    Err(_) => AppendError::Unsure(error),
                });
            }
        };
        // In a deleted file the bytes would be lost when the process ends.
        if self.file.metadata().is_ok_and(|file| file.nlink() == 0) {
            let message = format!("{} was deleted while the store was open", self.path.display());
            return Err(AppendError::Unsure(StoreError::new(Code::StoreFailed, message)));
        }
        // After a failed sync the content of the disk is unknown, and a second sync can succeed without writing it.
        let synced = fault::point("log.sync").and_then(|()| self.file.sync_data());
        synced.map_err(|error| AppendError::Unsure(StoreError::io("sync", &self.path, &error)))?;
        self.length = end;
        Ok(())
    }

    /// Writes frames after the last one: small ones together in one write, large ones in pieces. Returns the end.
    fn write(&self, frames: &[BatchFrame<'_>]) -> io::Result<u64> {
        let all: u64 = frames.iter().map(BatchFrame::length).sum();
        let mut writer =
            PieceWriter { file: &self.file, waiting: Vec::with_capacity(TOGETHER.min(all as usize)), end: self.length };
        for frame in frames {
            if let Some(whole) = frame.whole() {
                writer.write(whole)?;
                continue;
            }
            // The start goes last: without it, an interrupted write is no frame.
            writer.flush()?;
            let start = writer.end;
            writer.end += frame::HEAD as u64;
            frame.content().try_for_each(|piece| writer.write(piece))?;
            writer.flush()?;
            fault::write_all_at("log.write", &self.file, &frame.start(), start)?;
        }
        writer.flush()?;
        Ok(writer.end)
    }
}

/// Writes pieces to a file, one after another: small ones together, large ones without a copy.
struct PieceWriter<'f> {
    file: &'f File,
    waiting: Vec<u8>,
    /// Where the next bytes go.
    end: u64,
}

impl PieceWriter<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.waiting.len() + piece.len() > TOGETHER {
            self.flush()?;
        }
        if piece.len() > TOGETHER {
            return self.write_now(piece);
        }
        self.waiting.extend_from_slice(piece);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.write_now(&waiting)?;
        waiting.clear();
        self.waiting = waiting;
        Ok(())
    }

    fn write_now(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !bytes.is_empty() {
            fault::write_all_at("log.write", self.file, bytes, self.end)?;
            self.end += bytes.len() as u64;
        }
        Ok(())
    }
}

/// An error of an append.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// The file is unchanged.
    Undone(StoreError),
    /// The file may contain some or all of the bytes.
    Unsure(StoreError),
}

fn head(store: StoreId, start: Tip) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(&MAGIC);
    for number in [start.position, start.revision, start.next_order] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(&start.hash);
    head.extend_from_slice(&store);
    head.extend_from_slice(blake3::hash(&head).as_bytes());
    head
}

/// Writes a part of the log as a whole: the batches that `next` returns.
pub(crate) fn write_whole(
    path: &Path,
    store: StoreId,
    start: Tip,
    mut next: impl FnMut() -> Result<Option<Batch>, StoreError>,
) -> Result<(), StoreError> {
    let mut unreadable = None;
    let written = files::write_whole(path, |writer| {
        writer.write_all(&head(store, start))?;
        loop {
            let batch = match next() {
                Ok(Some(batch)) => batch,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let reason = io::Error::other(error.message.clone());
                    unreadable = Some(error);
                    return Err(reason);
                }
            };
            BatchFrame::new(&batch).write(&mut |piece: &[u8]| writer.write_all(piece))?;
        }
    });
    match unreadable {
        Some(error) => Err(error),
        None => written,
    }
}

/// Reads the header of a part of the log: its store, and the batch before its first one.
pub(super) fn start_of(bytes: &[u8]) -> Option<(StoreId, Tip)> {
    let (written, sum) = bytes.get(..HEAD)?.split_at_checked(HEAD - 32)?;
    if !written.starts_with(&MAGIC) || blake3::hash(written).as_bytes() != sum {
        return None;
    }
    let hash: Hash = hash_at(written, 32)?;
    let store: StoreId = written.get(64..80)?.try_into().ok()?;
    let (position, revision, next_order) =
        (number::<8>(written, 8)?, number::<8>(written, 16)?, number::<8>(written, 24)?);
    Some((store, Tip { position, revision, next_order, hash }))
}

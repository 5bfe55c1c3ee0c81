//! A part of the log: a file to which batches are appended, with one write and one sync for all waiting batches.
//!
//! A part begins with what it follows, so that parts cannot be mixed up or left out:
//!
//! ```text
//!   0  ewlog-4\n
//!   8  position, revision, next order after the commit before (8 bytes each)
//!  32  its hash in the chain
//!  64  the store (16 bytes)
//!  80  checksum: BLAKE3 of everything before it
//! 112  frames
//! ```
//!
//! The file `kept` has the same start and no frames.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::frame::{self, BatchFrame, hash_at, number};
use crate::files::fault;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::commit::entries::Hash;
use crate::store::disk::files;
use crate::store::error::{Doing, StoreError};
use crate::store::seal::StoreId;

const MAGIC: [u8; 8] = *b"ewlog-4\n";
/// Magic, position, revision, next order, hash, store, checksum.
pub(crate) const HEAD: usize = 8 + 8 + 8 + 8 + 32 + 16 + 32;

/// The longest frame that is written as a whole, together with others.
const TOGETHER: u64 = 1 << 16;

/// The part of the log that is being written.
pub(crate) struct LogAppender {
    file: File,
    path: PathBuf,
    length: u64,
    is_unsure: bool,
}

impl LogAppender {
    /// Creates a part that continues the log after `start`.
    pub(crate) fn create(path: PathBuf, store: StoreId, start: Tip) -> Result<Self, StoreError> {
        write_whole(&path, store, start, || Ok(None))?;
        Self::open(path, HEAD as u64)
    }

    /// Opens a part whose complete batches end at `length`, and cuts off the rest of an interrupted write.
    pub(crate) fn open(path: PathBuf, length: u64) -> Result<Self, StoreError> {
        let file = files::open(&path, File::options().read(true).write(true)).doing("open", &path)?;
        if file.metadata().doing("open", &path)?.len() > length {
            let cut = fault::point("log.cut").and_then(|()| file.set_len(length));
            cut.and_then(|()| file.sync_all()).doing("open", &path)?;
        }
        Ok(Self { file, path, length, is_unsure: false })
    }

    /// Returns the offset of the next batch.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Whether the file may have some or all of the bytes of an append that has failed.
    pub(crate) fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// Appends batches durably. On an error the file is unchanged, unless [`LogAppender::is_unsure`] returns true then.
    pub(crate) fn append(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        self.is_unsure = true;
        let end = match self.write(batches) {
            Ok(end) => end,
            Err(error) => {
                // The usual cause is a full disk. Without the incomplete batch, a later write can succeed.
                let cut = fault::point("log.cut").and_then(|()| self.file.set_len(self.length));
                self.is_unsure = cut.and_then(|()| self.file.sync_all()).is_err();
                return Err(StoreError::io("write", &self.path, &error));
            }
        };
        // In a deleted file the bytes would be lost when the process ends.
        if self.file.metadata().is_ok_and(|file| file.nlink() == 0) {
            let message = format!("{} was deleted while the store was open", self.path.display());
            return Err(StoreError::new(Code::StoreFailed, message));
        }
        // After a failed sync the content of the disk is unknown, and a second sync can succeed without writing it.
        fault::point("log.sync").and_then(|()| self.file.sync_data()).doing("sync", &self.path)?;
        (self.length, self.is_unsure) = (end, false);
        Ok(())
    }

    /// Writes frames after the last one: small ones together in one write, large ones in pieces. Returns the end.
    fn write(&self, batches: &[Batch]) -> io::Result<u64> {
        let (mut end, mut together) = (self.length, Vec::new());
        let write = |bytes: &[u8], at: u64| match bytes.is_empty() {
            true => Ok(at),
            false => fault::write_all_at("log.write", &self.file, bytes, at).map(|()| at + bytes.len() as u64),
        };
        for frame in batches.iter().map(BatchFrame::new) {
            if frame.length() <= TOGETHER {
                frame.append_to(&mut together);
                continue;
            }
            let start = write(&together, end)?;
            together.clear();
            // The start goes last: without it, an interrupted write is no frame.
            end = frame.content().try_fold(start + frame::HEAD as u64, |end, piece| write(piece, end))?;
            write(&frame.start(), start)?;
        }
        write(&together, end)
    }
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
    files::write_whole(path, |writer| {
        writer.write_all(&head(store, start))?;
        while let Some(batch) = next().map_err(io::Error::other)? {
            let frame = BatchFrame::new(&batch);
            writer.write_all(&frame.start())?;
            frame.content().try_for_each(|piece| writer.write_all(piece))?;
        }
        Ok(())
    })
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

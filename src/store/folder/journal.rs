//! The file that batches are appended to: one write and one sync for all that wait.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
};

use super::{
    base::StoreId,
    files::{self, sync_folder},
    frame::{self, Unreadable, hash_at, number},
};
use crate::{
    model::code::Code,
    store::{
        StoreError,
        engine::{Batch, Hash, Tip},
    },
};

const MAGIC: [u8; 8] = *b"ewjrnl2\n";
/// Magic, position, revision, next order, hash, store, checksum.
const HEAD: usize = 8 + 8 + 8 + 8 + 32 + 16 + 32;

/// What a journal or history file holds.
pub struct Content {
    /// The store that it is part of.
    pub store: StoreId,
    /// The batch before its first.
    pub start: Tip,
    /// Its batches, and where each starts.
    pub batches: Vec<(u64, Batch)>,
    /// Where the last whole batch ends.
    pub end: u64,
    /// What follows it, if that is no whole batch.
    pub rest: Option<Rest>,
}

/// Bytes behind the last whole batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// An interrupted write: nothing whole follows.
    Torn,
    /// Whole batches follow, so this was not the last write.
    Damaged,
}

/// An open journal.
pub struct Journal {
    file: File,
    path: PathBuf,
    length: u64,
}

impl Journal {
    /// Creates a journal that goes on from `start`.
    pub fn create(path: PathBuf, store: StoreId, start: Tip) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::io("create", &path, &error);
        let head = head(store, start);
        let (temporary, file) = files::create_temporary(&path).map_err(failed)?;
        file.write_all_at(&head, 0).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        fs::rename(&temporary, &path).map_err(failed)?;
        sync_folder(&path)?;
        Ok(Self { file, path, length: HEAD as u64 })
    }

    /// Opens a journal whose whole batches end at `length`, and cuts off what an interrupted write has left.
    pub fn open(path: PathBuf, length: u64) -> Result<Self, StoreError> {
        let failed = |error: io::Error| StoreError::io("open", &path, &error);
        let file = files::open(&path, File::options().read(true).write(true)).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > length {
            file.set_len(length).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        Ok(Self { file, path, length })
    }

    /// Where the next batch goes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes durably. On an error the file is as before; where even that cannot be had, the error is `Unsure`.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        let written = self.file.write_all_at(bytes, self.length);
        if let Err(error) = written {
            let error = StoreError::io("write", &self.path, &error);
            // A full disk is the common case: with the half-written batch gone, the next write may work again.
            return Err(match self.file.set_len(self.length).and_then(|()| self.file.sync_all()) {
                Ok(()) => AppendError::Undone(error),
                Err(_) => AppendError::Unsure(error),
            });
        }
        // Somebody removed the folder: the bytes would be gone with the process.
        if self.file.metadata().is_ok_and(|file| file.nlink() == 0) {
            let message = format!("{} was deleted while the store was open", self.path.display());
            return Err(AppendError::Unsure(StoreError::new(Code::StoreFailed, message)));
        }
        // After a failed sync nobody knows what is on the disk, and a second sync would not tell.
        self.file.sync_data().map_err(|error| AppendError::Unsure(StoreError::io("sync", &self.path, &error)))?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// Why nothing was appended.
#[derive(Debug)]
pub enum AppendError {
    /// The file is as it was.
    Undone(StoreError),
    /// The file may hold a part of what was written.
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

/// Writes a file of batches without their changes: what a journal becomes once a base has made them superfluous.
pub fn write_history(path: &Path, store: StoreId, start: Tip, batches: &[(u64, Batch)]) -> Result<(), StoreError> {
    files::write_whole(path, |writer| {
        writer.write_all(&head(store, start))?;
        let mut bytes = Vec::new();
        for (_, batch) in batches {
            bytes.clear();
            frame::encode(batch, false, &mut bytes);
            writer.write_all(&bytes)?;
        }
        Ok(())
    })
}

/// Reads a journal or history file.
pub fn read(path: &Path, with_changes: bool) -> Result<Content, StoreError> {
    let bytes = files::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::corrupt(path, "the file is missing"),
        _ => StoreError::io("read", path, &error),
    })?;
    let (store, start) =
        start_of(&bytes).ok_or_else(|| StoreError::corrupt(path, "its first bytes are not what was written"))?;
    let mut content = Content { store, start, batches: Vec::new(), end: HEAD as u64, rest: None };
    let mut rest = bytes.get(HEAD..).unwrap_or_default();
    let mut before = start;
    while !rest.is_empty() {
        match frame::decode(rest, with_changes) {
            Ok((batch, length)) => {
                if batch.position != before.position + 1 {
                    return Err(StoreError::corrupt(
                        path,
                        format!("record {} follows record {}", batch.position, before.position),
                    ));
                }
                before = Tip::after(&batch);
                content.batches.push((content.end, batch));
                content.end += length as u64;
                rest = rest.get(length..).unwrap_or_default();
            }
            Err(Unreadable::Short | Unreadable::Damaged) => {
                let later = rest.get(1..).is_some_and(frame::is_anywhere);
                content.rest = Some(if later { Rest::Damaged } else { Rest::Torn });
                break;
            }
        }
    }
    Ok(content)
}

/// Reads the one batch at an offset, without its changes.
pub fn read_at(path: &Path, offset: u64, length: usize) -> io::Result<Option<Batch>> {
    let mut bytes = vec![0; length];
    files::open(path, File::options().read(true))?.read_exact_at(&mut bytes, offset)?;
    Ok(frame::decode(&bytes, false).ok().map(|(batch, _)| batch))
}

fn start_of(bytes: &[u8]) -> Option<(StoreId, Tip)> {
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

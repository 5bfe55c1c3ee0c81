//! The file that says how far the log was acknowledged, so that a missing tail is noticed.
//!
//! A journal whose end is damaged looks like one whose last write was interrupted. What tells the two apart is this file:
//! it is written right after each acknowledgement, and synced when the disk has nothing more urgent to do.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    base::StoreId,
    files,
    frame::{hash_at, number},
};
use crate::{
    model::code::Code,
    store::{StoreError, engine::Hash},
};

const MAGIC: [u8; 8] = *b"ewhead2\n";
/// Magic, counter, position, generation, chain hash, store, checksum.
const SLOT: usize = 8 + 8 + 8 + 8 + 32 + 16 + 32;
/// Each slot has a disk sector of its own: a torn write of one cannot reach the other.
const STRIDE: u64 = 4096;

/// How far the log was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The last batch.
    pub position: u64,
    /// The generation of the journal that it is in.
    pub generation: u64,
    /// Its hash.
    pub hash: Hash,
    /// The store that it is part of.
    pub store: StoreId,
}

/// The open file.
pub struct HeadFile {
    file: File,
    counter: u64,
}

/// The path of the file.
pub fn path(folder: &Path) -> PathBuf {
    folder.join("head")
}

impl HeadFile {
    /// Creates the file of a store that is whole otherwise: from now on the folder is a store.
    pub fn create(folder: &Path, head: Head) -> Result<Self, StoreError> {
        let path = path(folder);
        let failed = |error: std::io::Error| StoreError::io("write", &path, &error);
        let (temporary, file) = files::create_temporary(&path).map_err(failed)?;
        let mut created = Self { file, counter: 0 };
        created.write(head).map_err(failed)?;
        created.write(head).map_err(failed)?;
        created.sync().map_err(failed)?;
        files::rename(&temporary, &path)?;
        Ok(created)
    }

    /// Opens the file and reads the newer of its two slots.
    pub fn open(folder: &Path) -> Result<(Self, Head), StoreError> {
        let path = path(folder);
        let failed = |error: std::io::Error| StoreError::io("open", &path, &error);
        let file = files::open(&path, File::options().read(true).write(true)).map_err(failed)?;
        let (counter, head) = newest(&file, &path)?;
        Ok((Self { file, counter }, head))
    }

    /// Writes the slot that is not the current one. Survives the process; [`HeadFile::sync`] makes it survive more.
    pub fn write(&mut self, head: Head) -> std::io::Result<()> {
        let mut slot = Vec::with_capacity(SLOT);
        slot.extend_from_slice(&MAGIC);
        for number in [self.counter + 1, head.position, head.generation] {
            slot.extend_from_slice(&number.to_le_bytes());
        }
        slot.extend_from_slice(&head.hash);
        slot.extend_from_slice(&head.store);
        slot.extend_from_slice(blake3::hash(&slot).as_bytes());
        self.file.write_all_at(&slot, ((self.counter + 1) % 2) * STRIDE)?;
        self.counter += 1;
        Ok(())
    }

    /// Makes the last write durable.
    pub fn sync(&self) -> std::io::Result<()> {
        self.file.sync_all()
    }

    /// Another handle to the same file, to sync it without holding up a writer.
    pub fn handle(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}

/// Reads the newer of the two slots without opening the file for writing.
pub fn read_only(folder: &Path) -> Result<Head, StoreError> {
    let path = path(folder);
    let file = files::open(&path, File::options().read(true)).map_err(|error| StoreError::io("open", &path, &error))?;
    newest(&file, &path).map(|(_, head)| head)
}

fn newest(file: &File, path: &Path) -> Result<(u64, Head), StoreError> {
    let slots = [0, 1].map(|slot| read(file, slot));
    let newer = slots.iter().flatten().any(|(magic, _)| *magic != MAGIC && magic.starts_with(b"ewhead"));
    let newest = slots.into_iter().flatten().filter_map(|(_, slot)| slot).max_by_key(|(counter, _)| *counter);
    newest.ok_or_else(|| match newer {
        true => {
            let message = format!("{} was written by a newer version of edgewright", path.display());
            StoreError::new(Code::StoreFormat, message)
        }
        false => StoreError::corrupt(path, "neither of its two slots can be read"),
    })
}

type Slot = Option<(u64, Head)>;

fn read(file: &File, slot: u64) -> Option<([u8; 8], Slot)> {
    let mut bytes = [0; SLOT];
    file.read_exact_at(&mut bytes, slot * STRIDE).ok()?;
    let magic = bytes.get(..8)?.try_into().ok()?;
    let (written, sum) = bytes.split_at(SLOT - 32);
    let whole = magic == MAGIC && blake3::hash(written).as_bytes() == sum;
    let head = whole.then(|| {
        let head = Head {
            position: number::<8>(&bytes, 16)?,
            generation: number::<8>(&bytes, 24)?,
            hash: hash_at(&bytes, 32)?,
            store: bytes.get(64..80)?.try_into().ok()?,
        };
        Some((number::<8>(&bytes, 8)?, head))
    });
    Some((magic, head.flatten()))
}

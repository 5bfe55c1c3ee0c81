//! The head: a file with the position up to which the log was acknowledged, and the generation of the newest state.
//!
//! A log with a damaged end looks like one whose last write was interrupted, and a state that is missing like one that was
//! never written. The head distinguishes them. It is written after each sync of the log, and synced itself when the disk is
//! idle.
//!
//! A write of the head can be interrupted, too, so it has two slots in different sectors of the disk, each with a counter and
//! a checksum. A write goes to the older one, and the newer one of those that are whole counts:
//!
//! ```text
//! slot 0 (byte 0)     counter 18  position 41  generation 3  state 3  hash  store  checksum
//! slot 1 (byte 4096)  counter 19  position 42  generation 3  state 3  hash  store  checksum   <- counts
//! ```
//!
//! The head is also written last in a new or restored store: a folder without a head is no store.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::frame::{hash_at, number};
use crate::files::fault;
use crate::model::Code;
use crate::store::commit::entries::Hash;
use crate::store::disk::files;
use crate::store::error::{Doing, StoreError};
use crate::store::seal::StoreId;

const MAGIC: [u8; 8] = *b"ewhead3\n";
/// Magic, counter, position, generation, state, chain hash, store, checksum.
const SLOT: usize = 8 + 8 + 8 + 8 + 8 + 32 + 16 + 32;
/// The slots are in different disk sectors, so that a torn write damages only one of them.
const STRIDE: u64 = 4096;

/// The position up to which the log was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The position of the last batch.
    pub position: u64,
    /// The generation of its part of the log.
    pub generation: u64,
    /// The generation of the newest state, or 0 if there is none yet: then the log has everything.
    pub state: u64,
    pub hash: Hash,
    /// The id of the store.
    pub store: StoreId,
}

/// The open head.
pub(crate) struct HeadFile {
    file: File,
    counter: u64,
}

/// Returns the path of the head.
pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("head")
}

impl HeadFile {
    /// Creates the head as the last file of a new store: a folder without one is not a store.
    pub(crate) fn create(folder: &Path, head: Head) -> Result<(), StoreError> {
        let mut slots = slot(2, head);
        slots.resize(STRIDE as usize, 0);
        slots.extend(slot(1, head));
        files::write_whole(&path(folder), |writer| writer.write_all(&slots))
    }

    /// Opens the head and reads the newer of its two slots.
    pub(crate) fn open(folder: &Path) -> Result<(Self, Head), StoreError> {
        let path = path(folder);
        let file = files::open(&path, File::options().read(true).write(true)).doing("open", &path)?;
        let (counter, head) = newest(&file, &path)?;
        Ok((Self { file, counter }, head))
    }

    /// Overwrites the older slot. It survives a crash of the process, and a power loss once it is synced.
    pub(crate) fn write(&mut self, head: Head) -> std::io::Result<()> {
        let counter = self.counter + 1;
        fault::write_all_at("head.write", &self.file, &slot(counter, head), (counter % 2) * STRIDE)?;
        self.counter += 1;
        Ok(())
    }

    /// Returns another handle of the file, to sync it while a writer continues.
    pub(crate) fn handle(&self) -> std::io::Result<File> {
        self.file.try_clone()
    }
}

/// The bytes of a slot.
fn slot(counter: u64, head: Head) -> Vec<u8> {
    let mut slot = Vec::with_capacity(SLOT);
    slot.extend_from_slice(&MAGIC);
    for number in [counter, head.position, head.generation, head.state] {
        slot.extend_from_slice(&number.to_le_bytes());
    }
    slot.extend_from_slice(&head.hash);
    slot.extend_from_slice(&head.store);
    slot.extend_from_slice(blake3::hash(&slot).as_bytes());
    slot
}

/// Reads the newer of the two slots without opening the file for writing.
pub(crate) fn read_only(folder: &Path) -> Result<Head, StoreError> {
    let path = path(folder);
    let file = files::open(&path, File::options().read(true)).doing("open", &path)?;
    newest(&file, &path).map(|(_, head)| head)
}

fn newest(file: &File, path: &Path) -> Result<(u64, Head), StoreError> {
    let read = |slot: u64| {
        let mut bytes = [0; SLOT];
        file.read_exact_at(&mut bytes, slot * STRIDE).ok().map(|()| bytes)
    };
    let slots = [0, 1].map(read);
    let newer = slots.iter().flatten().any(|slot| slot.starts_with(b"ewhead") && !slot.starts_with(&MAGIC));
    let newest = slots.iter().flatten().filter_map(|slot| head_in(slot)).max_by_key(|(counter, _)| *counter);
    newest.ok_or_else(|| match newer {
        true => {
            let message = format!("{} was written by a newer version of edgewright", path.display());
            StoreError::new(Code::StoreFormat, message)
        }
        false => StoreError::corrupt(path, "both of its slots are invalid"),
    })
}

/// The counter and the head in a slot that is whole.
fn head_in(slot: &[u8]) -> Option<(u64, Head)> {
    let (written, sum) = slot.split_at_checked(SLOT - 32)?;
    if !written.starts_with(&MAGIC) || blake3::hash(written).as_bytes() != sum {
        return None;
    }
    let head = Head {
        position: number::<8>(written, 16)?,
        generation: number::<8>(written, 24)?,
        state: number::<8>(written, 32)?,
        hash: hash_at(written, 40)?,
        store: written.get(72..88)?.try_into().ok()?,
    };
    Some((number::<8>(written, 8)?, head))
}

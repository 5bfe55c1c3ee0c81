//! A cache of parsed manifest files (D75): a file with the same text is decoded from it instead of being parsed again.
//!
//! An entry is found by the content of its file and the program that parsed it, so it is never out of date. One that is
//! damaged or missing only costs time.

mod entry;
mod shelf;
#[cfg(test)]
mod tests;

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use blake3::Hasher;

use super::{FileRead, document::is_json, origin::ManifestFile};
use shelf::Shelf;

/// The folder of the entries.
const FOLDER: &str = "parsed";
/// Separates the keys of entries from all other hashes.
const CONTEXT: &str = "edgewright 2026-11-21 parsed manifest file";
/// Shorter files are parsed: that takes as long as reading an entry.
const FEWEST_BYTES: usize = 2 << 10;
/// The most bytes of all entries.
const MOST_BYTES: u64 = 256 << 20;
/// A run that writes more checks the limit at once.
const MANY_BYTES: u64 = MOST_BYTES / 4;

/// The parsed files of earlier runs.
pub(crate) struct ParsedFiles {
    shelf: Shelf,
    /// The start of every key.
    keys: Hasher,
    /// The bytes of the entries that this run has read or written.
    used: AtomicU64,
    written: AtomicU64,
}

impl ParsedFiles {
    /// Opens the cache in a folder. `program` identifies the program, because another version may read the same text
    /// differently. Returns none if the folder cannot be read, or if others can write to it.
    pub(crate) fn within(folder: &Path, program: &str) -> Option<Self> {
        let mut keys = Hasher::new_derive_key(CONTEXT);
        keys.update(&(program.len() as u64).to_le_bytes()).update(program.as_bytes());
        let shelf = Shelf::open(&folder.join(FOLDER)).ok()?;
        Some(Self { shelf, keys, used: AtomicU64::new(0), written: AtomicU64::new(0) })
    }

    /// Returns what a file declares: from its entry, or by parsing it.
    pub(super) fn read(&self, file: &Arc<ManifestFile>, parse: impl FnOnce() -> FileRead) -> FileRead {
        if let Some(read) = self.find(file) {
            return read;
        }
        let read = parse();
        self.keep(file, &read);
        read
    }

    /// Returns what a file declares, if it has an entry.
    pub(super) fn find(&self, file: &Arc<ManifestFile>) -> Option<FileRead> {
        let payload = self.shelf.read(&self.key_of(file)?)?;
        let declared = entry::decode(&payload, file)?;
        self.used.fetch_add(payload.len() as u64, Ordering::Relaxed);
        Some(FileRead { declared, ..FileRead::default() })
    }

    /// Writes the entry of a file, if it can have one.
    pub(super) fn keep(&self, file: &ManifestFile, read: &FileRead) {
        if let Some(key) = self.key_of(file)
            && let Some(payload) = entry::encode(read)
        {
            self.write(&key, &payload);
        }
    }

    /// Whether a file has an intact entry.
    pub(super) fn has(&self, file: &ManifestFile) -> bool {
        self.key_of(file).is_some_and(|key| self.shelf.read(&key).is_some())
    }

    /// The key of a file's entry, unless the file is too short to have one.
    fn key_of(&self, file: &ManifestFile) -> Option<blake3::Hash> {
        (file.source.text.len() >= FEWEST_BYTES).then(|| self.key(file))
    }

    /// Writes an entry, unless this run uses as much as the cache may keep: a larger source would replace its own
    /// entries in each run.
    fn write(&self, key: &blake3::Hash, payload: &[u8]) {
        let length = payload.len() as u64;
        if self.used.fetch_add(length, Ordering::Relaxed).saturating_add(length) > MOST_BYTES {
            return;
        }
        // Without the entry, the next run takes longer.
        if self.shelf.write(key, payload).is_ok() {
            self.written.fetch_add(length, Ordering::Relaxed);
        }
    }

    /// Removes old entries: once a day, and after a run that wrote many.
    pub(super) fn tidy(&self) {
        let now = SystemTime::now();
        if self.written.swap(0, Ordering::Relaxed) > MANY_BYTES || self.shelf.is_due(now) {
            self.shelf.sweep(now, MOST_BYTES);
        }
    }

    fn key(&self, file: &ManifestFile) -> blake3::Hash {
        let mut key = self.keys.clone();
        key.update(&[u8::from(is_json(file))]).update(file.source.text.as_bytes());
        key.finalize()
    }
}

//! Backups: one file with everything that a store needs at one revision (D100).
//!
//! A running store changes while it is copied, and a copy of its folder can have a head that names a state which was not
//! there yet. But states and parts of the log never change, except that the newest part grows. So all files are opened at one
//! moment, while no checkpoint removes any, and the newest part is read up to the last commit of that moment. What happens to
//! their names afterwards does not matter, and commits go on. A store in a database is copied into a folder first
//! (`backup_begin`).
//!
//! ```text
//! ewback2 · length · manifest {revision, position, hash, parts: [{name, length, blake3}, …]}
//! the files of the state · log.0000000002 · log.0000000003 · keys · kept · suspensions
//! BLAKE3 of everything before
//! ```
//!
//! The whole history is verified before, and each part is hashed twice: when it is described, and when it is sent. The
//! secrets in the parts stay encrypted, and the master key is not among them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::store::clock;
use crate::store::commit::entries::Hash;
use crate::store::error::{Doing, StoreError};
use crate::store::log::head::Head;
use crate::store::seal::name_of;

/// The first bytes of a backup.
pub(crate) const MAGIC: [u8; 8] = *b"ewback2\n";
/// The format in the manifest.
pub(crate) const FORMAT: &str = "edgewright backup 2";
/// The length of a hash.
pub(crate) const HASH: usize = 32;
/// The size of the pieces in which a backup is read.
const PIECE: u64 = 256 << 10;

/// The start of a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackupManifest {
    /// The format of the file.
    pub format: String,
    /// The version of edgewright that wrote it.
    pub version: String,
    /// When it was made.
    pub at: Timestamp,
    /// The id of the store, in hexadecimal.
    pub store: String,
    pub revision: u64,
    /// The position of the last record.
    pub position: u64,
    /// The hash, in hexadecimal.
    pub hash: String,
    /// The generation of the last part of the log.
    pub generation: u64,
    /// The generation of the state, or 0 if the log has everything.
    pub state: u64,
    /// The files, in their order.
    pub parts: Vec<BackupPart>,
}

/// A file of the store in a backup.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct BackupPart {
    pub name: String,
    /// The length in bytes.
    pub length: u64,
    /// The hash, in hexadecimal.
    pub blake3: String,
}

/// A file of a store that was opened for a backup. Nothing that happens to its name changes what is read.
pub(crate) struct OpenedPart {
    pub name: String,
    pub file: File,
    /// How much of it is part of the revision.
    pub length: u64,
}

/// A backup that is ready to be read. Its files are open, so commits and checkpoints do not change it.
pub struct Backup {
    manifest: BackupManifest,
    start: Option<Vec<u8>>,
    parts: VecDeque<PartReader>,
    whole: blake3::Hasher,
    length: u64,
    is_done: bool,
}

/// A part that is being read.
struct PartReader {
    file: File,
    part: BackupPart,
    /// How many bytes of it are left to read.
    remaining: u64,
    hasher: blake3::Hasher,
}

impl Backup {
    /// Prepares a backup of opened files, whose head is at a revision.
    pub(crate) fn new(folder: &Path, head: Head, revision: u64, opened: Vec<OpenedPart>) -> Result<Self, StoreError> {
        let (mut parts, mut written) = (VecDeque::with_capacity(opened.len()), Vec::with_capacity(opened.len()));
        let mut length = 0;
        for OpenedPart { name, mut file, length: size } in opened {
            let blake3 =
                blake3::Hash::from(hash_of(&mut file, size).doing("read", &folder.join(&name))?).to_hex().to_string();
            length += size;
            let part = BackupPart { name, length: size, blake3 };
            written.push(part.clone());
            parts.push_back(PartReader { file, part, remaining: size, hasher: blake3::Hasher::new() });
        }
        let manifest = BackupManifest {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at: clock::now(),
            store: name_of(&head.store),
            revision,
            position: head.position,
            hash: blake3::Hash::from(head.hash).to_hex().to_string(),
            generation: head.generation,
            state: head.state,
            parts: written,
        };
        let start = start_of(&manifest)?;
        length += (start.len() + HASH) as u64;
        Ok(Self { manifest, start: Some(start), parts, whole: blake3::Hasher::new(), length, is_done: false })
    }

    /// Returns the revision.
    pub fn revision(&self) -> u64 {
        self.manifest.revision
    }

    /// Returns the position of the last history record.
    pub fn position(&self) -> u64 {
        self.manifest.position
    }

    /// Returns the length in bytes of everything that [`Backup::next_piece`] returns.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Reads the next bytes. Returns none at the end.
    pub fn next_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(start) = self.start.take() {
            self.whole.update(&start);
            return Ok(Some(start));
        }
        while let Some(PartReader { file, part, remaining, hasher }) = self.parts.front_mut() {
            if *remaining == 0 {
                if hasher.finalize().to_hex().as_str() != part.blake3 {
                    return Err(io::Error::other(format!("`{}` changed while it was read", part.name)));
                }
                self.parts.pop_front();
                continue;
            }
            let mut piece = vec![0; (*remaining).min(PIECE) as usize];
            file.read_exact(&mut piece)?;
            *remaining -= piece.len() as u64;
            hasher.update(&piece);
            self.whole.update(&piece);
            return Ok(Some(piece));
        }
        if self.is_done {
            return Ok(None);
        }
        self.is_done = true;
        Ok(Some(self.whole.finalize().as_bytes().to_vec()))
    }
}

/// The bytes before the parts: magic, length of the manifest, manifest, and a hash of these.
fn start_of(manifest: &BackupManifest) -> Result<Vec<u8>, StoreError> {
    let manifest = serde_json::to_vec(manifest).map_err(StoreError::internal)?;
    let mut start = Vec::with_capacity(MAGIC.len() + 4 + manifest.len() + HASH);
    start.extend_from_slice(&MAGIC);
    start.extend_from_slice(&(manifest.len() as u32).to_le_bytes());
    start.extend_from_slice(&manifest);
    let hash = blake3::hash(&start);
    start.extend_from_slice(hash.as_bytes());
    Ok(start)
}

/// Hashes the first bytes of a file, and goes back to its start.
fn hash_of(file: &mut File, length: u64) -> io::Result<Hash> {
    let mut hasher = blake3::Hasher::new();
    let read = io::copy(&mut file.by_ref().take(length), &mut hasher)?;
    if read != length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than its records"));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(hasher.finalize().into())
}

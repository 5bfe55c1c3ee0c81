//! The base: a file with the complete state at the start of a generation. It is written once and never changed. Journals
//! become history, which cannot replace it, so it has a copy.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{
    content_base,
    files::{self, Part},
    format::{FORMAT, other_format},
    frame::number,
    parallel_read,
    twice::{self, Damage},
};
use crate::{
    model::code::Code,
    store::{
        StoreError,
        changes::{change_length, encode_change},
        engine::{Hash, Tip},
        seal::{KeyId, Keyring, Sealed, name_of, store_named},
        state_records::StateRecords,
    },
};

const MAGIC: [u8; 8] = *b"ewbase3\n";
/// The approximate size of a write.
const CHUNK: usize = 1 << 16;
/// What the root secret is sealed for.
const ROOT: [&[u8]; 1] = [b"root secret"];

/// Identifies the store of a file, so that files of two stores are not mixed up.
pub(super) use crate::store::seal::StoreId;

/// Derives the id of a store from its root secret, which the id does not reveal.
pub(super) fn id_of(root_secret: &[u8; 32]) -> StoreId {
    let mut id = StoreId::default();
    let derived = blake3::derive_key("edgewright 2026 store files", root_secret);
    id.copy_from_slice(derived.first_chunk::<16>().unwrap_or(&[0; 16]));
    id
}

/// The header before the records.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    /// The format of the whole folder.
    format: String,
    /// The id of the store, in hexadecimal.
    store: String,
    /// The position of the last batch in the state.
    position: u64,
    /// Its hash, in hexadecimal.
    hash: String,
    /// The revision.
    revision: u64,
    /// The `order` of the next creation.
    next_order: u64,
    /// The store's own secret, encrypted.
    sealed_root_secret: Sealed,
}

impl Header {
    /// Creates the header of a state.
    pub(super) fn new(tip: Tip, root_secret: &[u8; 32], keyring: &Keyring) -> Result<Self, StoreError> {
        Ok(Self {
            format: FORMAT.into(),
            store: name_of(&id_of(root_secret)),
            position: tip.position,
            hash: blake3::Hash::from(tip.hash).to_hex().to_string(),
            revision: tip.revision,
            next_order: tip.next_order,
            sealed_root_secret: keyring.seal(root_secret, &ROOT)?,
        })
    }

    /// The data key that the root secret is sealed with.
    pub(super) fn key(&self) -> KeyId {
        self.sealed_root_secret.key()
    }
}

/// The content of a base.
pub(super) struct Base {
    /// The last batch in the state.
    pub tip: Tip,
    /// The id of the store.
    pub store: StoreId,
    /// The store's own secret, encrypted.
    root: Sealed,
    /// All records, in the memory that the file was read to.
    pub records: StateRecords,
}

impl Base {
    /// Returns the store's own secret, and the data key of the base. `path` is the one of the base.
    pub(super) fn root_secret(&self, path: &Path, keyring: &Keyring) -> Result<([u8; 32], KeyId), StoreError> {
        let opened = keyring.open(&self.root, &ROOT).ok();
        let root = opened.and_then(|opened| <[u8; 32]>::try_from(opened.as_slice()).ok());
        match root.filter(|root| id_of(root) == self.store) {
            Some(root) => {
                keyring.set_root(&root);
                Ok((root, self.root.key()))
            }
            None => Err(StoreError::corrupt(path, "its root secret cannot be decrypted")),
        }
    }
}

/// The paths of the base of a generation and of its copy.
fn paths(folder: &Path, generation: u64) -> (PathBuf, PathBuf) {
    (Part::Base.path(folder, generation), Part::Copy.path(folder, generation))
}

/// Lists the generations that have a base or its copy, in order.
pub(super) fn generations(folder: &Path) -> Result<Vec<u64>, StoreError> {
    let mut found = Part::Base.generations(folder)?;
    found.extend(Part::Copy.generations(folder)?);
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Removes the bases before a generation, and their copies.
pub(super) fn remove_before(folder: &Path, generation: u64) -> Result<(), StoreError> {
    for old in generations(folder)?.into_iter().filter(|old| *old < generation) {
        files::remove(&Part::Copy.path(folder, old))?;
        files::remove(&Part::Base.path(folder, old))?;
    }
    Ok(())
}

/// Writes a base and its copy, and reads what was written: afterwards, nothing else has the state.
pub(super) fn write(
    folder: &Path,
    generation: u64,
    header: &Header,
    records: &mut dyn Iterator<Item = (String, Vec<u8>)>,
) -> Result<(), StoreError> {
    let header = serde_json::to_vec(header).map_err(|error| StoreError::new(Code::Internal, error.to_string()))?;
    let (path, copy) = paths(folder, generation);
    files::write_whole(&path, |writer| {
        let mut hasher = blake3::Hasher::new();
        let mut chunk = Vec::with_capacity(CHUNK + CHUNK / 4);
        chunk.extend_from_slice(&MAGIC);
        chunk.extend_from_slice(&(header.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&header);
        for (key, value) in records {
            encode_change(&key, Some(&value), &mut chunk);
            if chunk.len() >= CHUNK {
                hasher.update(&chunk);
                writer.write_all(&chunk)?;
                chunk.clear();
            }
        }
        hasher.update(&chunk);
        writer.write_all(&chunk)?;
        writer.write_all(hasher.finalize().as_bytes())
    })?;
    let copied = files::copy(&path, &copy).and_then(|()| verify(&copy));
    if copied.is_err() {
        // The base before it and its journals are complete.
        for written in [&copy, &path] {
            let _ = fs::remove_file(written);
        }
    }
    copied
}

/// Reads a base in little memory, only to verify its checksum.
fn verify(path: &Path) -> Result<(), StoreError> {
    let failed = |error: io::Error| files::unreadable(path, &error);
    let mut file = files::open(path, File::options().read(true)).map_err(failed)?;
    let content = file.metadata().map_err(failed)?.len().saturating_sub(32);
    let (mut hasher, mut sum) = (blake3::Hasher::new(), Vec::new());
    io::copy(&mut file.by_ref().take(content), &mut hasher).map_err(failed)?;
    file.read_to_end(&mut sum).map_err(failed)?;
    match sum.as_slice() == hasher.finalize().as_bytes() {
        true => Ok(()),
        false => Err(damaged(path)),
    }
}

fn damaged(path: &Path) -> StoreError {
    StoreError::corrupt(path, "its checksum does not match its content")
}

/// Copies an intact base if its copy is missing or incomplete.
pub(super) fn complete(folder: &Path, generation: u64) -> Result<(), StoreError> {
    let (path, copy) = paths(folder, generation);
    let length = |path: &Path| fs::symlink_metadata(path).map_or(0, |file| file.len());
    if length(&copy) == length(&path) { Ok(()) } else { files::copy(&path, &copy) }
}

/// Returns the newest generation with a base, and the path of that base or, if it is damaged, of its copy.
pub(super) fn intact(folder: &Path) -> Result<(u64, PathBuf), StoreError> {
    let generation = content_base(folder)?;
    let (path, copy) = paths(folder, generation);
    Ok((generation, twice::intact(path, copy, verify)?))
}

/// Reads a base or, if it is damaged, its copy, and verifies every byte. Returns the damage, too.
pub(super) fn read_either(folder: &Path, generation: u64) -> Result<(Base, Option<Damage>), StoreError> {
    let (path, copy) = paths(folder, generation);
    twice::read_either(&path, &copy, read)
}

/// Like [`read_either`], and also verifies the copy of an intact base.
pub(super) fn read_both(folder: &Path, generation: u64) -> Result<(Base, Option<Damage>), StoreError> {
    let (path, copy) = paths(folder, generation);
    twice::read_both(&path, &copy, read)
}

/// Finds where each record of a base starts, or none if one has no complete head. The last one may be longer than the base.
fn starts_of_records(content: &[u8]) -> Option<Vec<usize>> {
    let mut at = 12 + number::<4>(content, 8)? as usize;
    let mut starts = Vec::new();
    while let Some(rest) = content.get(at..).filter(|rest| !rest.is_empty()) {
        starts.push(at);
        at = at.checked_add(change_length(rest)?)?;
    }
    Some(starts)
}

/// Reads a base and verifies every byte of it.
fn read(path: &Path) -> Result<Base, StoreError> {
    let bytes = Bytes::from(parallel_read::read(path).map_err(|error| files::unreadable(path, &error))?);
    let damaged = || damaged(path);
    // Checked before the checksum: a file of a newer format is not damaged.
    if bytes.starts_with(b"ewbase") && !bytes.starts_with(&MAGIC) && bytes.get(7) == Some(&b'\n') {
        let number = String::from_utf8_lossy(bytes.get(6..7).unwrap_or_default());
        return Err(other_format(path, &format!("edgewright {number}")));
    }
    let (content, sum) = bytes.split_at_checked(bytes.len().saturating_sub(32)).ok_or_else(damaged)?;
    let (hash, starts) = rayon::join(
        || blake3::Hasher::new().update_rayon(content).finalize(),
        // Each record tells where the next one starts, so only one thread can find them. If the hash is wrong, they do not
        // count.
        || starts_of_records(content),
    );
    if hash.as_bytes() != sum || !content.starts_with(&MAGIC) {
        return Err(damaged());
    }
    let length = number::<4>(content, 8).ok_or_else(damaged)? as usize;
    let header: Header =
        content.get(12..12 + length).and_then(|it| serde_json::from_slice(it).ok()).ok_or_else(damaged)?;
    if header.format != FORMAT {
        return Err(other_format(path, &header.format));
    }
    let hash_of = |text: &str| -> Option<Hash> { Some(*blake3::Hash::from_hex(text).ok()?.as_bytes()) };
    let records = starts.and_then(|starts| StateRecords::in_memory(bytes.slice_ref(content), &starts));
    Ok(Base {
        tip: Tip {
            position: header.position,
            hash: hash_of(&header.hash).ok_or_else(damaged)?,
            revision: header.revision,
            next_order: header.next_order,
        },
        store: store_named(&header.store).ok_or_else(damaged)?,
        root: header.sealed_root_secret,
        records: records.ok_or_else(damaged)?,
    })
}

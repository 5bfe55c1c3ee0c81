//! The base: a file with the complete state at the start of a generation. It is written once and never changed.

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

use super::{
    files::{self, write_whole},
    frame::{decode_changes, encode_changes, number},
};
use crate::{
    model::code::Code,
    store::{
        StoreError,
        engine::{Hash, Tip},
    },
};

/// The only format that this version reads and writes.
pub(super) const FORMAT: &str = "edgewright 2";
const MAGIC: [u8; 8] = *b"ewbase2\n";
/// The approximate size of a write.
const CHUNK: usize = 1 << 16;

/// Identifies the store of a file, so that files of two stores are not mixed up.
pub(super) type StoreId = [u8; 16];

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
    pub format: String,
    /// The position of the last batch in the state.
    pub position: u64,
    /// Its hash, in hexadecimal.
    pub hash: String,
    /// The revision.
    pub revision: u64,
    /// The `order` of the next creation.
    pub next_order: u64,
    /// The store's own secret, in hexadecimal.
    pub root_secret: String,
}

impl Header {
    /// Creates the header of a state.
    pub(super) fn new(tip: Tip, root_secret: &[u8; 32]) -> Self {
        Self {
            format: FORMAT.into(),
            position: tip.position,
            hash: blake3::Hash::from(tip.hash).to_hex().to_string(),
            revision: tip.revision,
            next_order: tip.next_order,
            root_secret: blake3::Hash::from(*root_secret).to_hex().to_string(),
        }
    }
}

/// The content of a base.
pub(super) struct Base {
    /// The last batch in the state.
    pub tip: Tip,
    /// The store's own secret.
    pub root_secret: [u8; 32],
    /// All records.
    pub records: Vec<(String, Vec<u8>)>,
}

/// Writes a base.
pub(super) fn write(
    path: &Path,
    header: &Header,
    records: &mut dyn Iterator<Item = (String, Vec<u8>)>,
) -> Result<(), StoreError> {
    let header = serde_json::to_vec(header).map_err(|error| StoreError::new(Code::Internal, error.to_string()))?;
    write_whole(path, |writer| {
        let mut hasher = blake3::Hasher::new();
        let mut chunk = Vec::with_capacity(CHUNK + CHUNK / 4);
        chunk.extend_from_slice(&MAGIC);
        chunk.extend_from_slice(&(header.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&header);
        for (key, value) in records {
            encode_changes([(key.as_str(), Some(value.as_slice()))].into_iter(), &mut chunk);
            if chunk.len() >= CHUNK {
                hasher.update(&chunk);
                writer.write_all(&chunk)?;
                chunk.clear();
            }
        }
        hasher.update(&chunk);
        writer.write_all(&chunk)?;
        writer.write_all(hasher.finalize().as_bytes())
    })
}

/// Reads a base and verifies every byte of it.
pub(super) fn read(path: &Path) -> Result<Base, StoreError> {
    let bytes = files::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::corrupt(path, "the file is missing"),
        _ => StoreError::io("read", path, &error),
    })?;
    let damaged = || StoreError::corrupt(path, "its checksum does not match its content");
    // Checked before the checksum: a file of a newer format is not damaged.
    if bytes.starts_with(b"ewbase") && !bytes.starts_with(&MAGIC) && bytes.get(7) == Some(&b'\n') {
        let found = String::from_utf8_lossy(bytes.get(..7).unwrap_or_default()).into_owned();
        let message = format!("{} has the format `{found}` of another version of edgewright", path.display());
        return Err(StoreError::new(Code::StoreFormat, message));
    }
    let (content, sum) = bytes.split_at_checked(bytes.len().saturating_sub(32)).ok_or_else(damaged)?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_rayon(content);
    if hasher.finalize().as_bytes() != sum || !content.starts_with(&MAGIC) {
        return Err(damaged());
    }
    let length = number::<4>(content, 8).ok_or_else(damaged)? as usize;
    let header: Header =
        content.get(12..12 + length).and_then(|it| serde_json::from_slice(it).ok()).ok_or_else(damaged)?;
    if header.format != FORMAT {
        let message =
            format!("{} has the unsupported format `{}` (expected `{FORMAT}`)", path.display(), header.format);
        return Err(StoreError::new(Code::StoreFormat, message));
    }
    let hash = |text: &str| -> Option<Hash> { Some(*blake3::Hash::from_hex(text).ok()?.as_bytes()) };
    let changes = decode_changes(content.get(12 + length..).unwrap_or_default()).map_err(|_| damaged())?;
    Ok(Base {
        tip: Tip {
            position: header.position,
            hash: hash(&header.hash).ok_or_else(damaged)?,
            revision: header.revision,
            next_order: header.next_order,
        },
        root_secret: hash(&header.root_secret).ok_or_else(damaged)?,
        records: changes.into_iter().filter_map(|(key, value)| Some((key, value?))).collect(),
    })
}

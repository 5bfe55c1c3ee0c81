//! The fingerprint of a store: what its files look like from outside, without reading the state.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use super::keys;
use crate::model::secrets::digest_key::DigestKey;
use crate::store::disk::files::{self, Part};
use crate::store::disk::folder_lock;
use crate::store::engine::OnDisk;
use crate::store::error::{Doing, StoreError};
use crate::store::log::{appender, head};
use crate::store::seal::MasterKeySource;

/// Returns the store in a folder, or none if there is none. Fails while another process has it open for writing.
pub(crate) fn on_disk(folder: &Path, source: &MasterKeySource) -> Result<Option<OnDisk>, StoreError> {
    if !files::exists(&head::path(folder))? {
        return Ok(None);
    }
    let _lock = folder_lock::lock_shared(folder)?;
    of_files(folder, keys::digest_key(folder, source)).map(Some)
}

/// The fingerprint of a store that this process has open. A checkpoint does not change it.
pub(super) fn of_files(folder: &Path, digest_key: Option<DigestKey>) -> Result<OnDisk, StoreError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&head::read_only(folder)?.store);
    for generation in Part::Log.generations(folder)? {
        let path = Part::Log.path(folder, generation);
        let facts = fs::metadata(&path).doing("read", &path)?;
        if facts.len() > appender::HEAD as u64 {
            for number in [generation, facts.len(), facts.ino(), facts.mtime() as u64, facts.mtime_nsec() as u64] {
                hasher.update(&number.to_le_bytes());
            }
        }
    }
    Ok(OnDisk { digest_key, ..OnDisk::new(folder.to_owned(), hasher.finalize()) })
}

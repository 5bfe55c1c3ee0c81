//! The fingerprint of a store: what its files look like from outside, without reading the state.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use super::{
    files::{self, Part},
    head, keys,
};
use crate::{
    model::digest_key::DigestKey,
    store::{StoreError, engine::OnDisk, seal::MasterKeySource},
};

/// Returns the store in a folder, or none if there is none. Fails while another process has it open for writing.
pub(crate) fn on_disk(folder: &Path, source: &MasterKeySource) -> Result<Option<OnDisk>, StoreError> {
    if !files::exists(&head::path(folder))? {
        return Ok(None);
    }
    let _lock = files::lock_shared(folder)?;
    of_files(folder, keys::digest_key(folder, source)).map(Some)
}

/// The fingerprint of a store that this process has open.
pub(super) fn of_files(folder: &Path, digest_key: Option<DigestKey>) -> Result<OnDisk, StoreError> {
    let mut hasher = blake3::Hasher::new();
    let head = head::path(folder);
    hasher.update(&files::read(&head).map_err(|error| StoreError::io("read", &head, &error))?);
    for part in [Part::Base, Part::Journal, Part::History] {
        let generations = part.generations(folder)?;
        hasher.update(&generations.len().to_le_bytes());
        for generation in generations {
            let path = part.path(folder, generation);
            let facts = fs::metadata(&path).map_err(|error| StoreError::io("read", &path, &error))?;
            for number in [generation, facts.len(), facts.ino(), facts.mtime() as u64, facts.mtime_nsec() as u64] {
                hasher.update(&number.to_le_bytes());
            }
        }
    }
    Ok(OnDisk { digest_key, ..OnDisk::new(folder.to_owned(), hasher.finalize()) })
}

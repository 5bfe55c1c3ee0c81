//! Files of others beside those of a store: what is derived from it and can be lost at any time, and suspended sources.

use std::io::Read;

use super::files;
use crate::store::{StoreError, engine::OnDisk};

/// Reads a file beside a store, if it is a regular file of at most `most` bytes.
pub(crate) fn read_beside(store: &OnDisk, name: &str, most: u64) -> Option<Vec<u8>> {
    let file = files::open(&store.folder.join(name), std::fs::File::options().read(true)).ok()?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Replaces a file beside a store, durably.
pub(crate) fn write_beside(store: &OnDisk, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    files::write_whole(&store.folder.join(name), |writer| writer.write_all(bytes))
}

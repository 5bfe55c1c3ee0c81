//! Creates a store in a folder: keys, the first part of the log, and a head that says that there is no state yet.

use std::path::Path;

use super::keys;
use crate::store::commit::batch::Tip;
use crate::store::disk::files::Part;
use crate::store::error::StoreError;
use crate::store::ids;
use crate::store::log::appender::LogAppender;
use crate::store::log::head::{self, Head, HeadFile};
use crate::store::log::reader::LogReader;
use crate::store::seal::{Keyring, MasterKeySource};

/// The first generation of a new store.
pub(crate) const FIRST_GENERATION: u64 = 1;

/// Creates an empty store. The head comes last: a folder without one was never a store.
pub(super) fn create(folder: &Path, source: &MasterKeySource) -> Result<Keyring, StoreError> {
    let mut used = !Part::State.generations(folder)?.is_empty();
    for generation in Part::Log.generations(folder)? {
        used |= generation != FIRST_GENERATION;
        // A log that cannot be read may have records, so it must not be replaced.
        let mut reader = LogReader::open_headers(&Part::Log.path(folder, generation))?;
        used |= reader.batch()?.is_some() || reader.tail.is_some();
    }
    if used {
        return Err(StoreError::corrupt(&head::path(folder), "the file is missing"));
    }
    let keyring = keys::create(folder, ids::random_secret(), source)?;
    let store = keyring.store();
    LogAppender::create(Part::Log.path(folder, FIRST_GENERATION), store, Tip::default())?;
    HeadFile::create(folder, Head { position: 0, generation: FIRST_GENERATION, state: 0, hash: [0; 32], store })?;
    Ok(keyring)
}

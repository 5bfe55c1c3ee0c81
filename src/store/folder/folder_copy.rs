//! A copy of another store, in a folder (D115).
//!
//! It has the history in its first part of the log, and the state at the end of it, as if a checkpoint had just been written. The head
//! comes last: a copy that was interrupted is no store.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::creation::FIRST_GENERATION;
use super::keys;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::database::state::{self, StateIdentity};
use crate::store::disk::files::{self, Part};
use crate::store::disk::folder_lock;
use crate::store::engine::{StateRecords, StoreCopy};
use crate::store::error::StoreError;
use crate::store::log::appender::LogAppender;
use crate::store::log::head::{Head, HeadFile};
use crate::store::log::parts;
use crate::store::seal::{KeyId, StoreId};

/// The folder of a copy that is being written.
pub(crate) struct FolderCopy {
    folder: PathBuf,
    store: StoreId,
    key: KeyId,
    log: LogAppender,
    tip: Tip,
    _lock: Vec<File>,
}

impl FolderCopy {
    /// Begins in a folder that is missing or empty, with wrapped keys, of which `key` encrypts. The history begins after `start`.
    pub(crate) fn begin(
        folder: &Path,
        store: StoreId,
        wrapped: &[u8],
        key: KeyId,
        start: Tip,
    ) -> Result<Self, StoreError> {
        files::create_folder(folder)?;
        let lock = folder_lock::lock(folder)?;
        keys::write(folder, wrapped)?;
        if start.position > 0 {
            parts::keep_from(folder, store, start)?;
        }
        let log = LogAppender::create(Part::Log.path(folder, FIRST_GENERATION), store, start)?;
        Ok(Self { folder: folder.to_owned(), store, key, log, tip: start, _lock: lock })
    }
}

impl StoreCopy for FolderCopy {
    fn append(&mut self, batches: &[Batch]) -> Result<(), StoreError> {
        let Some(last) = batches.last() else { return Ok(()) };
        self.log.append(batches)?;
        self.tip = Tip::after(last);
        Ok(())
    }

    fn keep_file(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        files::write_whole(&self.folder.join(name), |writer| writer.write_all(bytes))
    }

    fn finish(self: Box<Self>, state: &mut StateRecords<'_>) -> Result<(), StoreError> {
        let Tip { position, hash, .. } = self.tip;
        let mut head = Head { position, generation: FIRST_GENERATION, state: 0, hash, store: self.store };
        if position > 0 {
            let generation = FIRST_GENERATION + 1;
            let identity = StateIdentity { store: self.store, tip: self.tip, key: self.key };
            state::write(&self.folder, generation, identity, state)?;
            LogAppender::create(Part::Log.path(&self.folder, generation), self.store, self.tip)?;
            head = Head { generation, state: generation, ..head };
        }
        HeadFile::create(&self.folder, head)
    }
}

//! A store that is only read, for example on a read-only mount (D61).
//!
//! To look at a store must not change it: a backup would no longer be what was saved, and a user who may only read could not
//! look at all. Nothing in the folder is created, repaired or rebuilt, an interrupted write at the end of the log is skipped
//! and not cut off, and damage that has cost nothing is only told. The history comes from the log, and the state from a copy
//! of its database in a temporary folder, because sled writes to open one.
//!
//! Readers share the lock that a writer has alone. Without it, a checkpoint could remove files under a reader, which could
//! not tell that from damage.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::content::{FolderContent, describe_damage, read};
use super::{fingerprint, format, key_copies, keys};
use crate::lock::Lock;
use crate::model::Code;
use crate::store::commit::batch::{Batch, Tip};
use crate::store::database::state::Access;
use crate::store::disk::{files, folder_lock};
use crate::store::engine::{Engine, History, OnDisk, State, Statistics};
use crate::store::error::StoreError;
use crate::store::log::head::{self, Head};
use crate::store::log::parts;
use crate::store::log::search::LogSearch;
use crate::store::maintenance::backup::Backup;
use crate::store::maintenance::backup_write;
use crate::store::seal::{Keyring, MasterKeySource};

/// An engine that reads a folder. Many processes can read one, but not while another has it open for writing.
pub(crate) struct FolderReader {
    folder: PathBuf,
    log: LogSearch,
    acknowledged: Head,
    tip: Tip,
    /// The generation of the last part of the log, and the end of its complete batches.
    last: (u64, u64),
    keyring: Arc<Keyring>,
    /// The state that was read at the start, until it is loaded.
    opened: Lock<Option<State>>,
    _lock: Vec<File>,
}

impl FolderReader {
    /// Opens the store in a folder. Returns none if the folder has no head: creating a store is a write.
    pub(crate) fn open(folder: &Path, source: &MasterKeySource) -> Result<Option<Self>, StoreError> {
        format::check(folder)?;
        if !files::exists(&head::path(folder))? {
            return Ok(None);
        }
        let lock = folder_lock::lock_shared(folder)?;
        let acknowledged = head::read_only(folder)?;
        let keyring = keys::open(folder, acknowledged.store, source)?;
        Self::over(folder, acknowledged, keyring, Access::ReadOnly, lock).map(Some)
    }

    /// Reads the files in a folder as a store with this head.
    pub(crate) fn over(
        folder: &Path,
        acknowledged: Head,
        keyring: Keyring,
        access: Access,
        lock: Vec<File>,
    ) -> Result<Self, StoreError> {
        let keyring = Arc::new(keyring);
        let content = read(folder, acknowledged, &keyring, access)?;
        let FolderContent { mut state, generation, end, tip, damage, .. } = content;
        state.warnings = key_copies::warnings(folder, acknowledged.store);
        state.warnings.extend(damage.as_ref().map(describe_damage));
        state.keyring = Some(Arc::clone(&keyring));
        let (log, last, opened) = (LogSearch::new(folder), (generation, end), Lock::new(Some(state)));
        Ok(Self { folder: folder.to_owned(), log, acknowledged, tip, last, keyring, opened, _lock: lock })
    }
}

impl Engine for FolderReader {
    fn load(&self) -> Result<State, StoreError> {
        let loaded = || StoreError::new(Code::Internal, "the state of the store was loaded before");
        self.opened.lock().take().ok_or_else(loaded)
    }

    fn append(&self, _after: u64, _batches: &[Batch]) -> Result<(), StoreError> {
        self.health()
    }

    fn history(&self) -> &dyn History {
        &self.log
    }

    fn statistics(&self) -> Statistics {
        parts::statistics(&self.folder)
    }

    fn on_disk(&self) -> Option<(OnDisk, u64)> {
        let digest_key = Some(self.keyring.digest_key());
        Some((fingerprint::of_files(&self.folder, digest_key).ok()?, self.tip.revision))
    }

    fn backup(&self) -> Result<Backup, StoreError> {
        let (generation, end) = self.last;
        let Tip { position, hash, revision, .. } = self.tip;
        let head = Head { position, generation, hash, ..self.acknowledged };
        let (head, parts) = backup_write::open(&self.folder, head, &self.keyring, end)?;
        Backup::new(&self.folder, head, revision, parts)
    }

    fn health(&self) -> Result<(), StoreError> {
        let message = format!("the store {} is open read-only", self.folder.display());
        Err(StoreError::new(Code::StoreFailed, message))
    }
}

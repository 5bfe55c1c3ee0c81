//! Begins a backup of a store (D100): of its files, or of a copy of what is in a database (D115).
//!
//! A database has no files that could be opened at one moment. So a store in one is copied into a temporary folder first, as it is at
//! its last commit, and the backup is one of that folder. A backup is the same file then, whatever engine the store has, and
//! either engine can have the store that is restored from it.

use std::sync::Arc;

use super::backup::Backup;
use super::backup_write::SUSPENSIONS;
use super::copy::StoreMoment;
use crate::model::Code;
use crate::store::commit::header::Retention;
use crate::store::database::state::Access;
use crate::store::disk::temp_dir::TempFolder;
use crate::store::error::StoreError;
use crate::store::folder::FolderReader;
use crate::store::log::head;
use crate::store::open_store::Store;
use crate::store::read_again::read_again;
use crate::store::session_kind::SessionKind;

impl Store {
    /// Prepares a backup of the current revision and its history (D100). Verifies the whole history first: a backup with a
    /// damaged part is none. A store in a database is copied into a temporary folder, which needs as much room.
    pub fn backup(&self) -> Result<Backup, StoreError> {
        if self.engine.sidecar_files().is_some() {
            return read_again(|| self.backup_of_copy());
        }
        self.verify()?;
        self.engine.backup()
    }

    /// Copies a store that is in a database, and prepares a backup of the copy.
    fn backup_of_copy(&self) -> Result<Backup, StoreError> {
        let (moment, folder) = (StoreMoment::now(self)?, TempFolder::new()?);
        let verified = moment.write(folder.path(), &[SUSPENSIONS])?;
        let head = head::read_only(folder.path())?;
        let reader = FolderReader::over(folder.path(), head, moment.keyring.frozen(), Access::Alone, Vec::new())?;
        let copied = Self::load_from(Arc::new(reader), Retention::default(), SessionKind::Brief)?;
        if !moment.is_in(&copied, &verified)? {
            return Err(StoreError::new(Code::Internal, "the copy for the backup is not what was copied"));
        }
        // What it opens can be read after the folder is removed.
        copied.engine.backup()
    }
}

//! A restore that was interrupted: its folder is no store yet.

use std::path::Path;

use crate::model::Code;
use crate::store::disk::files;
use crate::store::error::StoreError;
use crate::store::log::head;

/// The folder in which a backup is unpacked. A folder with it and without a head is an interrupted restore.
pub(crate) const STAGING: &str = "restore.tmp";

/// Returns whether a restore into a folder was interrupted.
pub(crate) fn is_interrupted(folder: &Path) -> Result<bool, StoreError> {
    Ok(files::exists(&folder.join(STAGING))? && !files::exists(&head::path(folder))?)
}

/// Fails if a restore into a folder was interrupted.
pub(crate) fn check_complete(folder: &Path) -> Result<(), StoreError> {
    if is_interrupted(folder)? {
        let message = format!("a restore into {} was interrupted: run it again", folder.display());
        return Err(StoreError::new(Code::StoreFormat, message).help("run the same restore again"));
    }
    Ok(())
}

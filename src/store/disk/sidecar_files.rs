//! Files of others beside those of a store: what is derived from it and can be lost at any time, suspended sources, the
//! commits that sources applied last, and notifications.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::files;
use crate::files::{fault, if_exists, read_regular};
use crate::store::engine::OnDisk;
use crate::store::error::{Doing, StoreError};
use crate::store::folder::{key_copies, keys};

/// Reads a file beside a store, if it is a regular file of at most `most` bytes.
pub(crate) fn read_beside(store: &OnDisk, name: &str, most: u64) -> Option<Vec<u8>> {
    let bytes = read_regular(&store.folder.join(name), most + 1).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Replaces a file beside a store, durably.
pub(crate) fn write_beside(store: &OnDisk, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    files::write_whole(&store.folder.join(name), |writer| writer.write_all(bytes))
}

/// Renames a damaged file beside a store to `NAME.damaged`, in place of an earlier one, and returns its new path.
pub(crate) fn set_aside(store: &OnDisk, name: &str) -> Result<PathBuf, StoreError> {
    let (path, aside) = (store.folder.join(name), store.folder.join(format!("{name}.damaged")));
    fault::point("file.rename").and_then(|()| fs::rename(&path, &aside)).doing("rename", &path)?;
    Ok(aside)
}

/// Removes what dry runs left beside a store: digests of manifests and values, whose secrets are not to be kept.
pub(crate) fn forget_runs(folder: &Path) -> Result<(), StoreError> {
    for name in ["remembered", "remembered.tmp"] {
        let path = folder.join(name);
        let found = if_exists(fs::symlink_metadata(&path)).doing("remove", &path)?;
        // Runs ignore a folder in place of the file.
        if found.is_some_and(|found| !found.is_dir()) {
            files::remove(&path)?;
        }
    }
    Ok(())
}

/// Returns whether a folder has files other than those of an interrupted creation.
pub(crate) fn holds_something_else(folder: &Path) -> bool {
    let ours = |name: &str| {
        let beside = [
            "remembered",
            "suspensions",
            "applied",
            "conditions",
            "notifications",
            "transitions",
            key_copies::KEYS,
            key_copies::KEYS_COPY,
            keys::MASTER,
        ];
        ["lock", "index", "kept", "head.tmp", "log.tmp", "state.tmp", "security.log"].contains(&name)
            || beside.contains(&[".tmp", ".damaged"].iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(name))
            || ["state.", "log.", "security.log."].iter().any(|part| name.starts_with(part))
    };
    fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|it| it.file_name().to_str().is_none_or(|name| !ours(name))))
    })
}

//! Files of others beside those of a store: what is derived from it and can be lost at any time, suspended sources, the
//! commits that sources applied last, and notifications.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::files;
use crate::files::{fault, if_exists, read_regular};
use crate::store::engine::{OnDisk, SidecarFiles};
use crate::store::error::{Doing, StoreError};
use crate::store::folder::{key_copies, keys, local_mark};

/// The files in which sources and notifications keep what is not in the history.
pub(crate) const OF_SOURCES: [&str; 5] = ["suspensions", "applied", "conditions", "notifications", "transitions"];

/// The files in the folder of a store. One that cannot be read, or is no regular file, counts as missing.
impl SidecarFiles for OnDisk {
    fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let bytes = read_regular(&self.folder.join(name), most.saturating_add(1)).ok();
        Ok(bytes.filter(|bytes| bytes.len() as u64 <= most))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        files::write_whole(&self.folder.join(name), |writer| writer.write_all(bytes))
    }

    fn place(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join(name).symlink_metadata().is_ok()
    }

    fn set_aside(&self, name: &str) -> Result<String, StoreError> {
        let (path, aside) = (self.folder.join(name), self.folder.join(format!("{name}.damaged")));
        fault::point("file.rename").and_then(|()| fs::rename(&path, &aside)).doing("rename", &path)?;
        Ok(aside.display().to_string())
    }
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
        let beside = ["remembered", key_copies::KEYS, key_copies::KEYS_COPY, keys::MASTER, local_mark::MARK];
        let whole = [".tmp", ".damaged"].iter().find_map(|end| name.strip_suffix(*end)).unwrap_or(name);
        ["lock", "index", "kept", "head.tmp", "log.tmp", "state.tmp", "security.log"].contains(&name)
            || beside.contains(&whole)
            || OF_SOURCES.contains(&whole)
            || ["state.", "log.", "security.log."].iter().any(|part| name.starts_with(part))
    };
    fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|it| it.file_name().to_str().is_none_or(|name| !ours(name))))
    })
}

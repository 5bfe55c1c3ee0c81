//! Files of others beside those of a store: what is derived from it and can be lost at any time, suspended sources, the
//! commits that sources applied last, and notifications.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files;
use crate::files::{fault, if_exists, read_regular};
use crate::store::engine::{OnDisk, SidecarFiles};
use crate::store::error::{Doing, StoreError};
use crate::store::folder::{key_copies, keys, local_mark};

/// The files in which sources and notifications keep what is not in the history.
pub(crate) const OF_SOURCES: [&str; 5] = ["suspensions", "applied", "conditions", "notifications", "transitions"];

/// Reads a file beside a store, if it is a regular file of at most `most` bytes.
pub(crate) fn read_beside(store: &OnDisk, name: &str, most: u64) -> Option<Vec<u8>> {
    let bytes = read_regular(&store.folder.join(name), most + 1).ok()?;
    (bytes.len() as u64 <= most).then_some(bytes)
}

/// Replaces a file beside a store, durably.
pub(crate) fn write_beside(store: &OnDisk, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
    files::write_whole(&store.folder.join(name), |writer| writer.write_all(bytes))
}

/// Where the files of others beside a store are: in its folder, or where its engine keeps them.
#[derive(Clone)]
pub(crate) enum Sidecars {
    /// In the folder of the store.
    Folder(OnDisk),
    /// With the engine.
    Engine(Arc<dyn SidecarFiles>),
}

impl Sidecars {
    /// The place of a file, for messages.
    pub(crate) fn place(&self, name: &str) -> String {
        match self {
            Sidecars::Folder(store) => store.folder.join(name).display().to_string(),
            Sidecars::Engine(_) => format!("the file `{name}` of the store"),
        }
    }

    /// Whether a file exists, also if it cannot be read.
    pub(crate) fn has(&self, name: &str) -> bool {
        match self {
            Sidecars::Folder(store) => store.folder.join(name).symlink_metadata().is_ok(),
            Sidecars::Engine(files) => !matches!(files.read(name), Ok(None)),
        }
    }

    /// Reads a file of at most `most` bytes. One in a folder that cannot be read counts as missing; a database that does not
    /// answer is an error.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Sidecars::Folder(store) => Ok(read_beside(store, name, most)),
            Sidecars::Engine(files) => Ok(files.read(name)?.filter(|bytes| bytes.len() as u64 <= most)),
        }
    }

    /// Replaces a file, durably.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        match self {
            Sidecars::Folder(store) => write_beside(store, name, bytes),
            Sidecars::Engine(files) => files.write(name, bytes),
        }
    }

    /// Keeps a damaged file as `NAME.damaged`, in place of an earlier one, and returns its new place.
    pub(crate) fn set_aside(&self, name: &str) -> Result<String, StoreError> {
        match self {
            Sidecars::Folder(store) => set_aside(store, name).map(|path| path.display().to_string()),
            Sidecars::Engine(files) => {
                let aside = format!("{name}.damaged");
                files.write(&aside, &files.read(name)?.unwrap_or_default())?;
                Ok(self.place(&aside))
            }
        }
    }
}

/// Renames a damaged file beside a store to `NAME.damaged`, in place of an earlier one, and returns its new path.
fn set_aside(store: &OnDisk, name: &str) -> Result<PathBuf, StoreError> {
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

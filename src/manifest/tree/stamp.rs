//! How a file was when it was read, to tell whether it has been written since.

use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::Path,
    time::SystemTime,
};

/// The identity, length and modification time of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// The device and inode.
    pub identity: (u64, u64),
    /// The length in bytes.
    pub length: u64,
    /// When the content was last modified.
    pub modified: SystemTime,
}

impl FileStamp {
    /// The stamp of a file with these metadata; none if the system does not record modifications.
    pub(super) fn of(facts: &Metadata) -> Option<Self> {
        let modified = facts.modified().ok()?;
        Some(Self { identity: (facts.dev(), facts.ino()), length: facts.len(), modified })
    }

    /// The stamp of the file at a path now, through links; none if there is no file.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        Self::of(&fs::metadata(path).ok()?)
    }
}

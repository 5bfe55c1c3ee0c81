//! The stamp of a file when it was read, to detect later writes.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

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

/// A file that was read, as it was then.
#[derive(Debug, Clone)]
pub struct NotedFile {
    /// The path that it was read by.
    pub path: Arc<OsStr>,
    /// The stamp.
    pub stamp: FileStamp,
}

impl NotedFile {
    /// The stamp of the file at the path now; none if there is none.
    pub(crate) fn now(&self) -> Option<FileStamp> {
        FileStamp::at(Path::new(&self.path))
    }
}

impl FileStamp {
    /// The stamp of a file with these metadata; none if the system does not record modifications.
    pub(super) fn from_metadata(facts: &Metadata) -> Option<Self> {
        let modified = facts.modified().ok()?;
        Some(Self { identity: (facts.dev(), facts.ino()), length: facts.len(), modified })
    }

    /// The stamp of the file at a path now, through links; none if there is no file.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        Self::from_metadata(&fs::metadata(path).ok()?)
    }
}

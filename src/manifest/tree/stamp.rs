//! How a file was when it was read, to tell whether it has been written since.

use std::{
    ffi::OsStr,
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
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

/// A file that was read, as it was then.
#[derive(Debug, Clone)]
pub struct NotedFile {
    /// The path that it was read by.
    pub path: Arc<OsStr>,
    /// The stamp.
    pub stamp: FileStamp,
    /// Whether its text is that of an earlier reading, because its folder lists it without a change for a while (D74).
    pub is_kept: bool,
}

impl NotedFile {
    /// The stamp of the file at the path now; none if there is none.
    pub(crate) fn now(&self) -> Option<FileStamp> {
        FileStamp::at(Path::new(&self.path))
    }
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

/// The identity of a file with everything that shows a change of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    /// The stamp.
    pub stamp: FileStamp,
    /// When the file was last changed, its metadata included, in seconds and nanoseconds since 1970. The system sets it
    /// to its own time.
    changed: (i64, i64),
}

impl FileVersion {
    /// The version of a file with these metadata.
    pub(super) fn of(facts: &Metadata) -> Option<Self> {
        Some(Self { stamp: FileStamp::of(facts)?, changed: (facts.ctime(), facts.ctime_nsec()) })
    }

    /// The version of a file that a folder lists.
    pub(super) fn listed(facts: &cap_std::fs::Metadata) -> Option<Self> {
        use cap_std::fs::MetadataExt as _;
        let modified = facts.modified().ok()?.into_std();
        let stamp = FileStamp { identity: (facts.dev(), facts.ino()), length: facts.len(), modified };
        Some(Self { stamp, changed: (facts.ctime(), facts.ctime_nsec()) })
    }

    /// Whether the file had not changed for a while at a time. A time in the future is no time of this clock, so it is
    /// unknown when the file changed.
    pub(super) fn is_settled(&self, at: SystemTime, quiet: Duration) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let (Ok(seconds), Ok(nanoseconds)) = (u64::try_from(seconds), u32::try_from(nanoseconds)) else { return false };
        let changed = SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds.min(999_999_999)));
        let is_before = |time: SystemTime| at.duration_since(time).is_ok_and(|since| since >= quiet);
        changed.is_some_and(is_before) && is_before(self.stamp.modified)
    }
}

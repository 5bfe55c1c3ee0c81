//! The size limits of a source (D48), and the errors of what exceeds them.

use std::{fmt, io};

use crate::model::{Code, Diagnostic};

/// The size limit of a manifest file, so that a stray database dump or device cannot exhaust memory.
pub(super) const MOST_MANIFEST_BYTES: u64 = 64 << 20;
/// The most files of a source.
pub(super) const MOST_FILES: usize = 100_000;
/// The most files and folders that a search for them visits: links can make few of them stand for any number.
pub(super) const MOST_ENTRIES: usize = 500_000;
/// The most folders in each other.
pub(super) const MOST_DEPTH: usize = 100;
/// The most bytes of all files of a source.
pub(super) const MOST_TOTAL_BYTES: u64 = 1 << 30;
/// The size limit of a value file; keys, certificates and metadata are smaller.
pub(super) const MOST_VALUE_BYTES: u64 = 4 << 20;

/// The error for a source over the limits (D48).
pub(super) fn too_many(place: impl fmt::Display) -> Diagnostic {
    let (files, size) = (MOST_FILES, MOST_TOTAL_BYTES >> 20);
    let message = format!("{place} contains more than {files} manifests or more than {size} MiB");
    Diagnostic::error(Code::TooLarge, message).help("use the folder of the manifests, or split the source")
}

/// The reason for which a search does not enter a folder.
pub(super) fn too_deep() -> String {
    format!("more than {MOST_DEPTH} folders deep")
}

pub(super) fn too_large() -> io::Error {
    io::Error::other(format!("larger than {} MiB", MOST_MANIFEST_BYTES >> 20))
}

//! Errors of places that cannot be read, or must not be.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rustix::io::Errno;

use super::paths::is_manifest;
use crate::files::folder_of;
use crate::model::secrets::redact::quotable_path;
use crate::model::{Cause, Code, Diagnostic, Fault, Place, SourceFile, nearest};
use crate::syntax::text::printable_path;

/// The most names of a folder that are compared with one that does not exist.
const MOST_NEAR: usize = 1000;

/// The error for manifests that cannot be read.
pub(super) fn not_read(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, message).caused_by(Cause::NotRead)
}

pub(super) fn no_manifest(place: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::EmptySource, format!("no manifests found in {place}"))
        .caused_by(Cause::NoContent)
        .help("use a folder with .yaml, .yml or .json files")
}

/// A path that is neither a folder nor a regular file. If it is named like a manifest, Docker may have created a folder
/// because the file to mount is missing.
pub(super) fn no_file(path: &Path) -> Diagnostic {
    match path.file_name().is_some_and(|name| is_manifest(&name.to_string_lossy())) {
        true => unreadable(path.display(), "it has a manifest extension but is not a regular file")
            .help("replace it with the file, or rename it"),
        false => unreadable(path.display(), "it is neither a folder nor a regular file")
            .help("name a folder or a file, or `-` for standard input"),
    }
}

/// Adds to the error of a path in a command the path beside it that may be meant.
pub(super) fn with_similar(error: Diagnostic, path: &Path) -> Diagnostic {
    match similar_path(path) {
        Some(similar) => error.help(format!("did you mean `{}`?", printable_path(&similar.display().to_string()))),
        None => error,
    }
}

/// The path with the most similar name in the folder of one that does not exist.
pub(crate) fn similar_path(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    if path.symlink_metadata().is_ok() {
        return None;
    }
    let entries = std::fs::read_dir(folder_of(path)).ok()?.flatten().take(MOST_NEAR);
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Some(path.with_file_name(nearest(name, names.iter().map(String::as_str))?))
}

pub(super) fn unreadable(name: impl fmt::Display, reason: impl fmt::Display) -> Diagnostic {
    not_read(format!("{name} cannot be read: {reason}")).help("check the path and its permissions")
}

/// The error for a path that the system does not open.
pub(super) fn unopened(path: &Path, error: &io::Error) -> Diagnostic {
    match error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        true => looping(path, "it is a link that leads to itself"),
        false => unreadable(path.display(), error),
    }
}

/// The error for a link that has no end.
pub(super) fn looping(path: &Path, reason: &str) -> Diagnostic {
    unreadable(path.display(), reason).help("remove the link")
}

/// Why a search for manifests has ended.
pub(super) enum Unsearched {
    /// The search has seen too much.
    AtLimit(String),
    /// Something cannot be read.
    AtEntry(String),
}

impl From<String> for Unsearched {
    fn from(reason: String) -> Self {
        Self::AtEntry(reason)
    }
}

impl Unsearched {
    /// The error for the place of the search.
    pub(super) fn diagnostic(self, place: impl fmt::Display) -> Diagnostic {
        let help = "use the folder of the manifests, or list folders without any in its `.edgewrightignore`";
        match self {
            Self::AtLimit(limit) => unreadable(place, limit).help(help),
            Self::AtEntry(reason) => unreadable(place, reason),
        }
    }
}

/// The error for a file that is written while the manifests are read.
pub(crate) fn changed_while_read(path: &Path) -> Diagnostic {
    unreadable(path.display(), "it changes while the manifests are read")
        .help("wait until the file is complete, or write it under another name and rename it")
}

/// The name of a file or folder that a report cannot show.
pub(super) fn not_utf8(what: &str, name: impl fmt::Display) -> Diagnostic {
    unreadable(name, format!("{what} name is not UTF-8")).help(format!("rename the {what}"))
}

/// The error for a link to a manifest or folder outside the root.
pub(super) fn outside_manifest(path: &Path, root: &Path) -> Diagnostic {
    let help = "move the target into the folder, or run with --allow-outside-files";
    refused_manifest(path, &format!("is a link that leads outside `{}`", root.display())).help(help)
}

/// The error for a link to a manifest or folder that is not read.
pub(super) fn refused_manifest(path: &Path, why: &str) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!("`{name}` {why}");
    // The text is not read, so the place is the start of an empty file.
    let file = Arc::new(SourceFile::new(name, String::new()));
    Diagnostic::error(Code::OutsideFile, message).at(Place { file, span: 0..0 })
}

pub(super) fn outside(name: &str) -> Fault {
    Fault::new(Code::OutsideFile, format!("`{}` is outside the source tree", printable_path(quotable_path(name))))
        .help("move the file into the tree, or run with --allow-outside-files")
}

pub(super) fn inside_git(name: &str) -> Fault {
    let name = printable_path(quotable_path(name));
    Fault::new(Code::OutsideFile, format!("`{name}` is inside `.git`, which can contain credentials"))
        .help("move the file out of `.git`")
}

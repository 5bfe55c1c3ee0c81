//! Errors of places that cannot be read, or must not be.

use std::{fmt, path::Path, sync::Arc};

use crate::model::secrets::redact::quotable_path;
use crate::model::{Code, Diagnostic, Fault, Place, SourceFile};
use crate::syntax::text::printable_path;

pub(super) fn no_manifest(place: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::EmptySource, format!("no manifests found in {place}"))
        .help("use a folder with .yaml, .yml or .json files")
}

/// A path named like a manifest that is not a file: Docker creates a folder if the file to mount is missing.
pub(super) fn no_file(name: impl fmt::Display) -> Diagnostic {
    unreadable(name, "it has a manifest extension but is not a regular file")
        .help("replace it with the file, or rename it")
}

pub(super) fn unreadable(name: impl fmt::Display, reason: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("{name} cannot be read: {reason}"))
        .help("check the path and its permissions")
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

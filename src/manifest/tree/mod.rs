//! The places that manifests and their values are read from: folders, commits of Git, or a request.
//!
//! # The problem
//!
//! The same manifests come from a disk on which others write, from a repository that others push to, or from a client that
//! others control. A link must not lead out of the folder, a half-written file must not become a plan, and a value must be
//! read where its manifest is from.
//!
//! # The idea
//!
//! A [`Tree`] lists manifests and reads their values; nothing else knows where they are. [`Disk`], [`CommitTree`], [`RefTree`]
//! and [`Sent`] read one place each. Two trees wrap others: [`ContextTree`] adds manifests that a source uses without owning
//! them, and [`Recorder`] keeps what was read, to send it or to see whether it has changed.
//!
//! For example, `{from_file: tls/key.pem}` in `shop/edge.yaml` asks the tree of that manifest for `tls/key.pem`. A disk opens
//! it inside the folder, a commit looks it up in its objects, and a request has it in its body or refuses.
//!
//! # What it never does
//!
//! It does not parse manifests. It never reads outside the root of a tree unless that was allowed, and never in `.git`.

mod cancellation;
mod context;
mod disk;
mod file_stamp;
pub(crate) mod git;
mod ignored;
mod jail;
mod recorder;
pub(crate) mod remote;
mod request;
mod source_values;
mod value_cache;

use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

pub(crate) use cancellation::StopCheck;
pub(crate) use context::{ContextTree, UnsetValues, context_error};
pub use disk::Disk;
pub use file_stamp::{FileStamp, NotedFile};
pub use git::commit::CommitTree;
pub(crate) use git::lineage::{Lineage, whole_commit};
pub(crate) use git::range::revisions;
pub(crate) use git::reference::{RefTree, RepositoryPlace};
pub(crate) use git::revision_spec::RevisionSpec;
pub(crate) use git::signed::CommitVerifier;
pub(crate) use jail::find;
pub use recorder::Recorder;
pub(crate) use recorder::{ReadDigests, collect};
pub(crate) use request::SharedFile;
pub use request::{Sent, SentFile, SentValue};
pub(crate) use source_values::SourceValues;

use super::resolve::origin::ManifestFile;
use crate::{
    model::{
        diagnostics::{Code, Diagnostic, Fault, Place, SourceFile, fault::Path as FieldPath},
        operation::CommitAuthor,
        secrets::redact::{quotable_path, quotable_variable},
    },
    syntax::text::{printable, printable_path},
};

/// The size limit of a manifest file, so that a stray database dump or device cannot exhaust memory.
const MOST_MANIFEST_BYTES: u64 = 64 << 20;
/// The most files of a source.
const MOST_FILES: usize = 100_000;
/// The most bytes of all files of a source.
const MOST_TOTAL_BYTES: u64 = 1 << 30;
/// The size limit of a value file; keys, certificates and metadata are smaller.
const MOST_VALUE_BYTES: u64 = 4 << 20;

/// The manifests of a tree in path order, and the errors in reading them.
pub type TreeFiles = (Vec<Arc<ManifestFile>>, Vec<Diagnostic>);

/// The details of the manifests' Git commit, in addition to its ID.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitCommitDetails {
    /// The author.
    pub author: Option<CommitAuthor>,
    /// The first line of the message: at most 120 characters.
    pub message: Option<String>,
    /// The tag, if it was chosen from a range of versions.
    pub tag: Option<String>,
}

/// Reads manifests and their value sources (D28).
pub trait Tree: fmt::Debug + Send + Sync {
    /// All manifest files in path order, and the errors in reading them.
    fn manifests(&self) -> TreeFiles;

    /// The tree that this one reads its manifests from, and whose answers it gives unless it has its own.
    fn inner(&self) -> Option<&dyn Tree> {
        None
    }

    /// The Git commit of the manifests, if known.
    fn commit(&self) -> Option<String> {
        self.inner()?.commit()
    }

    /// The other details of this commit.
    fn commit_details(&self) -> GitCommitDetails {
        self.inner().map(|inner| inner.commit_details()).unwrap_or_default()
    }

    /// The text of a file referenced by a manifest, relative to the manifest.
    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault>;

    /// The value of an environment variable referenced by a manifest.
    fn variable(&self, _manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let shown = printable(quotable_variable(name));
        let unset = |state: &str| {
            Fault::new(Code::EnvUnset, format!("the environment variable `{shown}` is {state}"))
                .help("set it in edgewright's environment")
        };
        match std::env::var(name) {
            Ok(value) if !value.trim().is_empty() => Ok(value),
            Ok(_) => Err(unset("empty")),
            Err(std::env::VarError::NotPresent) => Err(unset("not set")),
            Err(std::env::VarError::NotUnicode(_)) => Err(unset("not UTF-8")),
        }
    }

    /// Whether a value that is unset is assumed to be unchanged, for a review without secrets (D106).
    fn assumes_values(&self) -> bool {
        self.inner().is_some_and(|inner| inner.assumes_values())
    }

    /// Whether some of the manifests only surround the others (D107).
    fn has_context(&self) -> bool {
        self.inner().is_some_and(|inner| inner.has_context())
    }

    /// The files that were read since the manifests were last listed, as they were when they were opened. One that
    /// differs now may have been read while it was written.
    fn files_read(&self) -> Vec<NotedFile> {
        self.inner().map(|inner| inner.files_read()).unwrap_or_default()
    }

    /// The path of a file by which another tree of the same files knows it, too. `name` is its name in diagnostics.
    fn identity(&self, name: &str) -> PathBuf {
        let whole = absolute(Path::new(name));
        whole.canonicalize().unwrap_or_else(|_| resolved(&whole))
    }

    /// The path to write a token to. It must be outside the tree, because a token is a secret and the tree is shared.
    fn token_file(&self, manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        match self.inner() {
            Some(inner) => inner.token_file(manifest, file),
            None => outside_of(&absolute(&manifest.root), &absolute(&manifest.folder.join(file))),
        }
    }
}

/// Checks that a token's path is outside the source tree, and returns its one spelling, by which two keys with the same
/// file are found. Both paths are absolute.
fn outside_of(root: &Path, file: &Path) -> Result<PathBuf, Fault> {
    let root = root.canonicalize().unwrap_or_else(|_| normalize(root));
    let file = resolved(file);
    if file.starts_with(root) {
        let message = "a token file must be outside the source tree";
        let fault = Fault::new(Code::NotAllowed, message).at(FieldPath::root());
        return Err(fault.help("use a path outside the tree, because others can read the tree"));
    }
    Ok(file)
}

/// The path of a file that does not exist yet, with the links to its folder resolved. A folder that does not exist has no
/// links.
fn resolved(file: &Path) -> PathBuf {
    match (file.parent().and_then(|folder| folder.canonicalize().ok()), file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => normalize(file),
    }
}

/// Normalizes `.` and `..` lexically.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(normalized.components().next_back(), Some(Component::Normal(_))) => {
                normalized.pop();
            }
            other => normalized.push(other),
        }
    }
    normalized
}

/// The absolute path.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a file or folder is skipped as hidden, such as `.git` or a mounted volume's `..data`.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Whether a file name is that of a manifest.
fn is_manifest(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    // The configuration file may be in the same folder (D43).
    name != "edgewright.config.yaml"
        && ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn no_manifest(place: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::EmptySource, format!("no manifests found in {place}"))
        .help("use a folder with .yaml, .yml or .json files")
}

/// A path named like a manifest that is not a file: Docker creates a folder if the file to mount is missing.
fn no_file(name: impl fmt::Display) -> Diagnostic {
    unreadable(name, "it has a manifest extension but is not a regular file")
        .help("replace it with the file, or rename it")
}

fn unreadable(name: impl fmt::Display, reason: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("{name} cannot be read: {reason}"))
        .help("check the path and its permissions")
}

/// The error for a file that is written while the manifests are read.
pub(crate) fn changed_while_read(path: &Path) -> Diagnostic {
    unreadable(path.display(), "it changes while the manifests are read")
        .help("wait until the file is complete, or write it under another name and rename it")
}

/// The name of a file or folder that a report cannot show.
fn not_utf8(what: &str, name: impl fmt::Display) -> Diagnostic {
    unreadable(name, format!("{what} name is not UTF-8")).help(format!("rename the {what}"))
}

/// The error for a source over the limits (D48).
fn too_many(place: impl fmt::Display) -> Diagnostic {
    let (files, size) = (MOST_FILES, MOST_TOTAL_BYTES >> 20);
    let message = format!("{place} contains more than {files} manifests or more than {size} MiB");
    Diagnostic::error(Code::TooLarge, message).help("use the folder of the manifests, or split the source")
}

fn too_large() -> io::Error {
    io::Error::other(format!("larger than {} MiB", MOST_MANIFEST_BYTES >> 20))
}

/// The text of a value file.
fn value_of(name: &str, path: &Path, read: Result<Vec<u8>, String>) -> Result<String, Fault> {
    let shown = printable(quotable_path(name));
    let path = if shown == name { path.display().to_string() } else { shown.to_owned() };
    let unreadable = |reason: &str| {
        Fault::new(Code::FileUnreadable, format!("`{shown}` cannot be read: {reason}"))
            .help(format!("check the path, which is relative to the manifest: {path}"))
    };
    let bytes = read.map_err(|reason| unreadable(&reason))?;
    if bytes.len() as u64 > MOST_VALUE_BYTES {
        return Err(unreadable("larger than 4 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(unreadable("empty file"));
    }
    if text.contains('\0') {
        return Err(unreadable("not a text file: it contains NUL bytes"));
    }
    Ok(text)
}

/// The error for a link to a manifest or folder outside the root.
fn outside_manifest(path: &Path, root: &Path) -> Diagnostic {
    let help = "move the target into the folder, or run with --allow-outside-files";
    refused_manifest(path, &format!("is a link that leads outside `{}`", root.display())).help(help)
}

/// The error for a link to a manifest or folder that is not read.
fn refused_manifest(path: &Path, why: &str) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!("`{name}` {why}");
    // The text is not read, so the place is the start of an empty file.
    let file = Arc::new(SourceFile::new(name, String::new()));
    Diagnostic::error(Code::OutsideFile, message).at(Place { file, span: 0..0 })
}

fn outside(name: &str) -> Fault {
    Fault::new(Code::OutsideFile, format!("`{}` is outside the source tree", printable_path(quotable_path(name))))
        .help("move the file into the tree, or run with --allow-outside-files")
}

fn inside_git(name: &str) -> Fault {
    let name = printable_path(quotable_path(name));
    Fault::new(Code::OutsideFile, format!("`{name}` is inside `.git`, which can contain credentials"))
        .help("move the file out of `.git`")
}

/// Converts bytes to a manifest file; reports bytes that are not UTF-8, and empty files.
fn manifest_file(
    name: String,
    bytes: Vec<u8>,
    folder: &Path,
    root: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<ManifestFile>> {
    let (mut text, bad_byte) = match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let bad_byte = error.utf8_error().valid_up_to();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(bad_byte))
        }
    };
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    text.drain(..bom);
    if let Some(offset) = bad_byte {
        let file = Arc::new(ManifestFile::new(name, text, folder.to_owned(), root.to_owned()));
        let offset = offset.saturating_sub(bom);
        diagnostics.push(
            Diagnostic::error(Code::NotUtf8, "invalid UTF-8")
                .at(file.place(offset..offset + '\u{fffd}'.len_utf8()))
                .help("save the file as UTF-8"),
        );
        return None;
    }
    text_file(name, Arc::new(text), folder, root, diagnostics)
}

/// Converts a text without a byte order mark to a manifest file; reports empty files.
fn text_file(
    name: String,
    text: Arc<String>,
    folder: &Path,
    root: &Path,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<ManifestFile>> {
    let empty = text.trim().is_empty();
    let file = Arc::new(ManifestFile::shared(name, text, folder.to_owned(), root.to_owned()));
    if empty {
        diagnostics.push(
            Diagnostic::error(Code::EmptyFile, "empty file, possibly half-written")
                .at(file.place(0..0))
                .help("restore its content, delete the file, or add a comment to keep it"),
        );
        return None;
    }
    Some(file)
}

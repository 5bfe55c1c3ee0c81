//! Where manifests, and the files that they name, are read from: folders, a commit of git, or a request.

mod commit;
mod disk;
mod jail;
mod recorder;
mod sent;

use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

pub use commit::{Commit, revisions};
pub use disk::Disk;
pub use jail::find;
pub use recorder::{Recorder, collect};
pub use sent::{Sent, SentFile, SentValue};

use super::origin::ManifestFile;
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Place, SourceFile},
        fault::{Fault, Path as FieldPath},
        redact::{quotable_path, quotable_variable},
    },
    text::{printable, printable_path},
};

/// Larger files are not manifests; the limit keeps a stray database dump or device from filling the memory.
const MOST_MANIFEST_BYTES: u64 = 64 << 20;
/// How many files a source has at most.
const MOST_FILES: usize = 100_000;
/// How many bytes the files of a source have at most, together.
const MOST_TOTAL_BYTES: u64 = 1 << 30;
/// No key, certificate or metadata is larger.
const MOST_VALUE_BYTES: u64 = 4 << 20;

/// Where manifests, and what they take values from (D28), are read.
pub trait Tree: fmt::Debug + Send + Sync {
    /// Every manifest file, in the order of their paths, and what is wrong with the files as such.
    fn manifests(&self) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>);

    /// The commit of git that the manifests are from, if they are from one.
    fn commit(&self) -> Option<String>;

    /// The text of a file that a manifest names, relative to the manifest.
    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault>;

    /// The value of an environment variable that a manifest names.
    fn variable(&self, _manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let shown = printable(quotable_variable(name));
        let unset = |state: &str| {
            Fault::new(Code::EnvUnset, format!("the environment variable `{shown}` is {state}"))
                .help("set it where edgewright runs")
        };
        match std::env::var(name) {
            Ok(value) if !value.trim().is_empty() => Ok(value),
            Ok(_) => Err(unset("empty")),
            Err(std::env::VarError::NotPresent) => Err(unset("not set")),
            Err(std::env::VarError::NotUnicode(_)) => Err(unset("not UTF-8")),
        }
    }

    /// Where a token is written. A token is a secret and the tree is shared, so the file must be somewhere else; the
    /// path of the fault is the file's own.
    fn token_file(&self, manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        outside_of(&whole(&manifest.root), whole(&manifest.folder.join(file)))
    }
}

/// The path of a token, if it is outside the source tree. Both paths are absolute.
fn outside_of(root: &Path, file: PathBuf) -> Result<PathBuf, Fault> {
    if plain(&file).starts_with(plain(root)) {
        let message = "the token would be written into the source tree, where others can read it";
        let fault = Fault::new(Code::NotAllowed, message).at(FieldPath::root());
        return Err(fault.help("name a file outside of the tree"));
    }
    Ok(file)
}

/// A path without `.` and `..`, by its words alone.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(plain.components().next_back(), Some(Component::Normal(_))) => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// The folder that a path is in.
fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Whether a file or folder is looked into: hidden ones (`.git`, a mounted volume's `..data`) are not.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Whether a file in a folder is a manifest, by its name.
fn is_manifest(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    // The configuration of edgewright itself may stand beside the manifests (D43).
    name != "edgewright.config.yaml"
        && ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn no_manifest(place: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::EmptySource, format!("no manifest was found in {place}"))
        .help("manifests are files that end in .yaml, .yml or .json")
}

/// What is called as a manifest is but is none: Docker makes a folder where the file that it should mount is missing.
fn no_file(name: impl fmt::Display) -> Diagnostic {
    unreadable(name, "it is called as a manifest is, but it is no file")
        .help("put the file there, or rename what is there")
}

fn unreadable(name: impl fmt::Display, reason: impl fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("{name} cannot be read: {reason}"))
        .help("check the path and its permissions")
}

/// A name that nobody could type, and no report could repeat.
fn not_utf8(name: impl fmt::Display) -> Diagnostic {
    unreadable(name, "its name is not UTF-8").help("rename the file")
}

/// A source of more files, or more text, than are read (D48).
fn too_many(place: impl fmt::Display) -> Diagnostic {
    let (files, size) = (MOST_FILES, MOST_TOTAL_BYTES >> 20);
    let message = format!("{place} holds more than {files} manifests or {size} MiB of them");
    Diagnostic::error(Code::TooLarge, message).help("name the folder of the manifests, or split the source in two")
}

fn too_large() -> io::Error {
    io::Error::other(format!("it is larger than {} MiB", MOST_MANIFEST_BYTES >> 20))
}

/// The value that a file holds, or what is wrong with it.
fn value_of(name: &str, path: &Path, read: Result<Vec<u8>, String>) -> Result<String, Fault> {
    let shown = printable(quotable_path(name));
    let path = if shown == name { path.display().to_string() } else { shown.to_owned() };
    let unreadable = |reason: &str| {
        Fault::new(Code::FileUnreadable, format!("`{shown}` cannot be read: {reason}"))
            .help(format!("the path is relative to the manifest: {path}"))
    };
    let bytes = read.map_err(|reason| unreadable(&reason))?;
    if bytes.len() as u64 > MOST_VALUE_BYTES {
        return Err(unreadable("it is not a file of at most 4 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8"))?;
    if text.trim().is_empty() {
        return Err(unreadable("it is empty"));
    }
    if text.contains('\0') {
        return Err(unreadable("it is not text: it has NUL bytes"));
    }
    Ok(text)
}

/// A manifest, or a folder of them, that a link reaches outside the root.
fn outside_manifest(path: &Path, root: &Path) -> Diagnostic {
    let name = path.display().to_string();
    let message = format!("`{name}` is a link that leads outside `{}`", root.display());
    // Its text was never read, so the place is the beginning of an empty file.
    let file = Arc::new(SourceFile::new(name, String::new()));
    Diagnostic::error(Code::OutsideFile, message)
        .at(Place { file, span: 0..0 })
        .help("move what it leads to into the folder, or run with --allow-outside-files")
}

fn outside(name: &str) -> Fault {
    Fault::new(Code::OutsideFile, format!("`{}` is outside of the source tree", printable_path(quotable_path(name))))
        .help("move the file into the tree, or run with --allow-outside-files")
}

/// A manifest file, if its bytes are text. What is not UTF-8, or nothing at all, is reported at its place.
fn manifest_file(
    name: String,
    bytes: &[u8],
    folder: PathBuf,
    root: PathBuf,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<ManifestFile>> {
    let bad_byte = std::str::from_utf8(bytes).err().map(|error| error.valid_up_to());
    let text = String::from_utf8_lossy(bytes);
    let bom = text.len() - text.trim_start_matches('\u{feff}').len();
    let text = text.trim_start_matches('\u{feff}').to_owned();
    let empty = text.trim().is_empty();
    let file = Arc::new(ManifestFile::new(name, text, folder, root));
    if let Some(offset) = bad_byte {
        let offset = offset.saturating_sub(bom);
        diagnostics.push(
            Diagnostic::error(Code::NotUtf8, "the file is not UTF-8 from here on")
                .at(file.place(offset..offset + '\u{fffd}'.len_utf8()))
                .help("save it as UTF-8"),
        );
        return None;
    }
    if empty {
        diagnostics.push(
            Diagnostic::error(Code::EmptyFile, "the file is empty; it may be half-written")
                .at(file.place(0..0))
                .help("restore its content, delete the file, or leave a comment in it"),
        );
        return None;
    }
    Some(file)
}

//! Paths of manifests and of token files: what they name, and which are read.

use std::path::{Component, Path, PathBuf};

use crate::model::{Code, Fault, FieldPath};

/// Checks that a token's path is outside the source tree, and returns its one spelling, by which two keys with the same
/// file are found. Both paths are absolute.
pub(super) fn outside_of(root: &Path, file: &Path) -> Result<PathBuf, Fault> {
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
pub(super) fn resolved(file: &Path) -> PathBuf {
    match (file.parent().and_then(|folder| folder.canonicalize().ok()), file.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => normalize(file),
    }
}

/// Normalizes `.` and `..` lexically.
pub(super) fn normalize(path: &Path) -> PathBuf {
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
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

/// Whether a file name is that of a manifest.
pub(super) fn is_manifest(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    // The configuration file may be in the same folder (D43).
    name != "edgewright.config.yaml"
        && ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

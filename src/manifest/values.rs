//! Values that come from the environment or from a file (D28).

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    path::{Component, Path, PathBuf},
};

use super::origin::ManifestFile;
use crate::model::{
    code::Code,
    decode::ValueSource,
    fault::{Fault, Path as FieldPath},
};

/// No key, certificate or metadata is larger.
const MOST_BYTES: u64 = 4 << 20;

/// Value sources of one manifest file.
pub struct Files {
    folder: PathBuf,
    root: PathBuf,
    allow_outside: bool,
    plain_secrets: RefCell<BTreeSet<FieldPath>>,
}

impl Files {
    /// Paths are relative to the manifest, and stay inside its source tree unless `allow_outside` is set.
    pub fn new(file: &ManifestFile, allow_outside: bool) -> Self {
        Self { folder: file.folder.clone(), root: file.root.clone(), allow_outside, plain_secrets: RefCell::default() }
    }

    /// The secrets that were written as plain text in what was decoded since the last call.
    pub fn take_plain_secrets(&self) -> Vec<FieldPath> {
        self.plain_secrets.take().into_iter().collect()
    }

    fn read(&self, name: &str) -> Result<String, Fault> {
        let path = self.folder.join(name);
        if !self.allow_outside {
            // First by the path's words, so that nothing outside is even touched; then by where links really lead.
            let inside = plain(&path).starts_with(plain(&self.root)) && !Path::new(name).is_absolute();
            let leads_inside = || match (path.canonicalize(), self.root.canonicalize()) {
                (Ok(path), Ok(root)) => path.starts_with(root),
                _ => true,
            };
            if !inside || !leads_inside() {
                return Err(Fault::new(Code::OutsideFile, format!("`{name}` is outside of the source tree"))
                    .help("move the file into the tree, or run with --allow-outside-files"));
            }
        }
        let unreadable = |reason: String| {
            Fault::new(Code::FileUnreadable, format!("`{name}` cannot be read: {reason}"))
                .help(format!("the path is relative to the manifest: {}", path.display()))
        };
        let facts = fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?;
        if !facts.is_file() || facts.len() > MOST_BYTES {
            return Err(unreadable("it is not a file of at most 4 MiB".into()));
        }
        let text = fs::read_to_string(&path).map_err(|error| unreadable(error.to_string()))?;
        if text.trim().is_empty() {
            return Err(unreadable("it is empty".into()));
        }
        Ok(text)
    }
}

impl ValueSource for Files {
    fn plain_secret(&self, path: FieldPath) {
        self.plain_secrets.borrow_mut().insert(path);
    }

    fn resolve(&self, source: &str, argument: &str) -> Result<String, Fault> {
        if source == "from_file" {
            return self.read(argument);
        }
        match std::env::var(argument) {
            Ok(value) if !value.is_empty() => Ok(value),
            Err(std::env::VarError::NotUnicode(_)) => {
                Err(Fault::new(Code::EnvUnset, format!("the environment variable `{argument}` is not UTF-8")))
            }
            Ok(_) => Err(Fault::new(Code::EnvUnset, format!("the environment variable `{argument}` is empty"))
                .help("set it where edgewright runs")),
            Err(_) => Err(Fault::new(Code::EnvUnset, format!("the environment variable `{argument}` is not set"))
                .help("set it where edgewright runs")),
        }
    }
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

//! The values of a followed source in Git that its commits do not have: files in a folder on the server's machine
//! (D28).
//!
//! # The problem
//!
//! Private keys do not belong in a repository, and a server that follows one has no pipeline that could pass them. They
//! have to be rotated without a commit, and the history must not say that the author of the last commit has changed
//! them.
//!
//! # The idea
//!
//! A `from_file` that the commit does not have is read in the folder, by its path in the folder, wherever its manifest
//! is. The stamps of the files that were read tell which values have changed since the same commit was applied, so that
//! such a revision is recorded as `values changed:` with their names.
//!
//! For example, `from_file: tls/key.pem` in `edge/shop.yaml` is `edge/tls/key.pem` of the commit or, if it has none,
//! `tls/key.pem` of the folder.
//!
//! # What it never does
//!
//! It never leaves the folder: absolute paths, `..` and links that lead out are refused. It shows names and times,
//! never a value.

use std::io;
use std::path::{Component, Path};
use std::time::SystemTime;

use super::contents::value_of;
use super::faults::outside;
use super::file_stamp::{FileStamp, NotedFile};
use super::jail::{AccessError, Jail};
use super::limits::MOST_VALUE_BYTES;
use crate::manifest::prelude::*;

/// The values of a source that its commits do not have.
#[derive(Debug, Default)]
pub(crate) struct SourceValues {
    /// The folder with the values, if the source has one.
    pub folder: Option<PathBuf>,
    files: Lock<ValueFiles>,
}

/// The files that were read, by the names in the manifests.
#[derive(Debug, Default)]
struct ValueFiles {
    /// Since the manifests were last listed.
    current: BTreeMap<String, NotedFile>,
    /// Before that.
    before: BTreeMap<String, NotedFile>,
    /// The commit that this process applied last, and the values as they were then.
    applied: Option<(String, BTreeMap<String, FileStamp>)>,
}

impl ValueFiles {
    /// The stamps of all files, also during a reading, which finds one after the other.
    fn stamps(&self) -> BTreeMap<String, FileStamp> {
        let all = self.before.iter().chain(&self.current);
        all.map(|(name, file)| (name.clone(), file.stamp)).collect()
    }
}

impl SourceValues {
    /// The values in a folder, if the source has one.
    pub(crate) fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, files: Lock::default() }
    }

    /// Begins a new reading of the manifests.
    pub(super) fn begin(&self) {
        let mut files = self.files.lock();
        files.before = std::mem::take(&mut files.current);
    }

    /// The files that were read since the manifests were last listed.
    pub(super) fn files_read(&self) -> Vec<NotedFile> {
        self.files.lock().current.values().cloned().collect()
    }

    /// The names of the values, and when each was last changed.
    pub(crate) fn names(&self) -> Vec<(String, SystemTime)> {
        self.files.lock().stamps().into_iter().map(|(name, stamp)| (name, stamp.modified)).collect()
    }

    /// Notes that a commit is applied with the values as they are.
    pub(crate) fn note_applied(&self, commit: &str) {
        let mut files = self.files.lock();
        let mut stamps = files.stamps();
        if let Some((applied, before)) = files.applied.take()
            && applied == commit
        {
            // A reading may not have come to all of them.
            for (name, stamp) in before {
                stamps.entry(name).or_insert(stamp);
            }
        }
        files.applied = Some((commit.to_owned(), stamps));
    }

    /// The names of the values that have changed since this process applied the same commit; none if it applied another one.
    pub(crate) fn changed_since(&self, commit: &str) -> Vec<String> {
        let files = self.files.lock();
        let Some((_, before)) = files.applied.as_ref().filter(|(applied, _)| applied == commit) else {
            return Vec::new();
        };
        let changed = files.stamps().into_iter().filter(|(name, now)| before.get(name).is_some_and(|then| then != now));
        changed.map(|(name, _)| name).collect()
    }

    /// Reads a value that the commit does not have. The name is relative to the folder, wherever the manifest is.
    pub(super) fn read(&self, name: &str) -> Result<String, Fault> {
        let Some(folder) = &self.folder else {
            let missing = value_of(name, Path::new(name), Err("it is not in the commit".to_owned()));
            return missing.map_err(|fault| {
                fault.help("add it to the commit, or to the folder on the server that the source's `values` names")
            });
        };
        let inside = Path::new(name);
        if !inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(self.outside(name));
        }
        let read = Jail::new(folder, false).map_err(AccessError::from);
        let reason = match read.and_then(|jail| jail.read(inside, MOST_VALUE_BYTES)) {
            Ok(file) => {
                if let Some(stamp) = file.stamp {
                    let path = Arc::from(folder.join(inside).into_os_string());
                    self.files.lock().current.insert(name.to_owned(), NotedFile { path, stamp });
                }
                return value_of(name, inside, Ok(file.bytes));
            }
            Err(AccessError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                "it is neither in the commit nor in the folder that the source's `values` names".to_owned()
            }
            Err(refused) => refused.reason(name, || self.outside(name))?,
        };
        value_of(name, inside, Err(reason)).map_err(|fault| {
            fault.help("check the path, which is relative to the folder that the source's `values` names")
        })
    }

    /// The refusal of a file outside the commit and the folder.
    pub(super) fn outside(&self, name: &str) -> Fault {
        outside(name).help(match &self.folder {
            Some(_) => {
                "move the file into the folder that the source's `values` names, and use its path in that folder"
            }
            None => {
                "set the source's `values` to a folder on the server that has the file, and use its path in that folder"
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn only_files_in_the_folder_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        fs::create_dir_all(at("values/tls")).unwrap();
        fs::write(at("values/tls/key"), "in").unwrap();
        fs::write(at("outside"), "out").unwrap();
        symlink("tls/key", at("values/link")).unwrap();
        symlink("../outside", at("values/escape")).unwrap();
        let values = SourceValues::new(Some(at("values")));
        assert_eq!(values.read("tls/key").unwrap(), "in");
        assert_eq!(values.read("./link").unwrap(), "in");
        let whole = at("values/tls/key").display().to_string();
        for name in ["escape", "../outside", "tls/../tls/key", whole.as_str()] {
            let fault = values.read(name).unwrap_err();
            assert!(fault.help.unwrap().contains("`values`"), "{name}");
        }
        assert!(values.read("tls").is_err() && values.read("none").is_err());
        assert_eq!((values.files_read().len(), values.names().len()), (2, 2));
        values.begin();
        assert_eq!((values.files_read().len(), values.names().len()), (0, 2));
        values.note_applied("one");
        fs::write(at("values/tls/key"), "other").unwrap();
        assert!(values.changed_since("one").is_empty());
        assert_eq!(values.read("tls/key").unwrap(), "other");
        assert_eq!(
            (values.changed_since("one"), values.changed_since("two")),
            (vec!["tls/key".to_owned()], Vec::new())
        );
        values.note_applied("one");
        assert!(values.changed_since("one").is_empty());
        let none = SourceValues::default();
        assert!(none.read("tls/key").unwrap_err().help.unwrap().contains("`values`"));
    }
}

//! Manifests in a commit of a Git repository, read without a work tree and without running Git.
//!
//! A few kilobytes of objects can stand for any number of paths, bytes and links, so all of these are bounded, and sizes are
//! known before anything is read.

mod files;
#[cfg(test)]
mod tests;

use std::path::Path;

use git2::{ObjectType, Oid, Repository};

use super::provenance;
use super::repository::{absolute, commit, discover, root_of};
use crate::files::folder_of;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::manifest::tree::cancellation::StopCheck;
use crate::manifest::tree::contents::{manifest_file, value_of};
use crate::manifest::tree::faults::{Unsearched, no_manifest, outside, outside_manifest, unreadable};
use crate::manifest::tree::manifest_tree::{GitCommitDetails, Tree, TreeFiles};
use crate::manifest::tree::paths::{normalize, outside_of};
use crate::manifest::tree::source_values::SourceValues;
use files::{Files, PathFault, Walk};

/// Files and folders of a commit.
pub struct CommitTree {
    repository: Lock<Repository>,
    /// The folder of the work tree.
    root: PathBuf,
    id: Oid,
    /// The revision as given.
    revision: String,
    /// Each path as given, and relative to the repository.
    paths: Vec<(PathBuf, PathBuf)>,
    /// The repository, for errors: nothing if the paths tell which one it is.
    pub(super) repository_name: String,
    /// Whether this is the older of two revisions.
    is_older: bool,
    /// Whether manifests and values may be read from files outside the paths (D28, D50).
    pub allow_outside_files: bool,
    /// The values of a followed source that the commit does not have.
    pub(super) values: Option<Arc<SourceValues>>,
    /// Ends a listing early.
    pub(super) stop: StopCheck,
}

impl fmt::Debug for CommitTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitTree({} {})", self.revision, self.id)
    }
}

impl CommitTree {
    /// Paths inside a repository at a commit. Files have their names in the repository.
    pub(super) fn at(repository: Repository, id: Oid, revision: String, inside: &[PathBuf]) -> Self {
        let (root, repository_name, stop) = (root_of(&repository), String::new(), StopCheck::default());
        let paths = inside.iter().map(|path| normalize(path)).map(|path| (path.clone(), path)).collect();
        let repository = Lock::new(repository);
        let (is_older, allow_outside_files, values) = (false, false, None);
        Self { repository, root, id, revision, paths, repository_name, is_older, allow_outside_files, values, stop }
    }

    /// Opens the paths at a revision.
    pub fn open(revision: &str, paths: &[PathBuf]) -> Result<Self, Diagnostic> {
        let here = PathBuf::from(".");
        let repository = discover(paths.first().unwrap_or(&here))?;
        let id = commit(&repository, revision)?;
        let root = root_of(&repository);
        let inside = |path: &PathBuf| {
            let whole = absolute(path);
            // Links can be followed only in the part of the path that still exists.
            let there = whole.ancestors().find(|path| path.exists()).unwrap_or(&whole);
            let rest = whole.strip_prefix(there).unwrap_or(Path::new(""));
            let real = there.canonicalize().unwrap_or_else(|_| there.to_owned());
            let real = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
            match real.strip_prefix(&root) {
                Ok(inside) => Ok((path.clone(), inside.to_owned())),
                Err(_) => Err(unreadable(path.display(), "not in the same repository as the other paths")),
            }
        };
        let paths = paths.iter().map(inside).collect::<Result<_, _>>()?;
        Ok(Self { paths, ..Self::at(repository, id, revision.to_owned(), &[]) })
    }

    /// The refusal of a value file.
    fn outside(&self, name: &str) -> Fault {
        self.values.as_ref().map_or_else(|| outside(name), |values| values.outside(name))
    }

    /// Marks the older of two revisions: file names start with the revision, to tell them from those of the other
    /// one, and a path that is missing or has no manifests is empty, because it can be new in the other one.
    #[must_use]
    pub fn older(self) -> Self {
        Self { is_older: true, ..self }
    }

    fn named(&self, path: &Path) -> String {
        // The top folder of a repository.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        if self.is_older { format!("{}:{}", self.revision, path.display()) } else { path.display().to_string() }
    }

    /// Like [`Self::named`], with the repository, for errors that concern a whole path of the source.
    fn placed(&self, path: &Path) -> String {
        let named = self.named(path);
        match self.repository_name.as_str() {
            "" => named,
            repository => format!("{named} of {repository} at `{}`", self.revision),
        }
    }

    /// Calls `run` with the files of the commit.
    fn with<R, E: From<String>>(&self, run: impl FnOnce(&Files<'_>) -> Result<R, E>) -> Result<R, E> {
        let repository = self.repository.lock();
        let files = Files::of_commit(&repository, self.id, &self.stop)?;
        run(&files)
    }
}

impl Tree for CommitTree {
    fn manifests(&self) -> TreeFiles {
        let (mut files, mut diagnostics) = (Vec::new(), Vec::new());
        for (shown, inside) in &self.paths {
            let walked = self.with(|tree| {
                let entry = match tree.find(inside) {
                    Ok(entry) => entry,
                    Err(PathFault::Missing) if self.is_older => return Ok((Walk::default(), Vec::new())),
                    Err(missing @ PathFault::Missing) => {
                        return Err(Unsearched::AtEntry(String::from(missing) + &tree.instead_of(inside)));
                    }
                    Err(PathFault::Unreadable(reason)) => return Err(reason.into()),
                };
                let folder = entry.kind == ObjectType::Tree;
                let root =
                    if folder { entry.path.clone() } else { tree.find(folder_of(inside)).map_err(String::from)?.path };
                let mut walk = Walk { root, anywhere: self.allow_outside_files, ..Walk::default() };
                if folder {
                    walk.open.push(entry.path.clone());
                    (walk.top, walk.ignored) = (shown.clone(), tree.ignored(&entry, &walk)?);
                    tree.walk(&entry, shown, &mut walk)?;
                } else if walk.allows(&entry) {
                    walk.found.push((shown.clone(), entry));
                } else {
                    walk.outside.push(shown.clone());
                }
                let read = walk.found.iter().map(|(shown, entry)| {
                    tree.visit(0).map_err(Unsearched::AtLimit)?;
                    let about = |reason: String| if folder { format!("{}: {reason}", shown.display()) } else { reason };
                    Ok(tree.read(entry).map_err(about)?)
                });
                let read = read.collect::<Result<Vec<_>, Unsearched>>()?;
                Ok((walk, read))
            });
            let (Walk { root, found, outside, .. }, read) = match walked {
                Ok(walked) => walked,
                Err(end) => {
                    diagnostics.push(end.diagnostic(self.placed(shown)));
                    continue;
                }
            };
            if found.is_empty() && outside.is_empty() && !self.is_older {
                diagnostics.push(no_manifest(self.placed(shown)));
            }
            diagnostics.extend(outside.iter().map(|path| outside_manifest(Path::new(&self.named(path)), &root)));
            for ((shown, entry), bytes) in found.into_iter().zip(read) {
                let name = self.named(&shown);
                match manifest_file(name, bytes, folder_of(&entry.path), &root) {
                    Ok(file) => files.push(file),
                    Err(fault) => diagnostics.push(fault),
                }
            }
        }
        (files, diagnostics)
    }

    fn commit(&self) -> Option<String> {
        Some(self.id.to_string())
    }

    fn commit_details(&self) -> GitCommitDetails {
        let repository = self.repository.lock();
        provenance::details(&repository, self.id)
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        let path = normalize(&manifest.folder.join(name));
        let root = normalize(&manifest.root);
        if Path::new(name).is_absolute() || (!self.allow_outside_files && !path.starts_with(&root)) {
            return Err(self.outside(name));
        }
        let found = self.with(|tree| -> Result<_, PathFault> {
            let entry = tree.find(&path)?;
            let bytes = tree.read(&entry)?;
            Ok((entry.path, bytes))
        });
        match (found, &self.values) {
            (Ok((real, _)), _) if !self.allow_outside_files && !real.starts_with(&root) => Err(self.outside(name)),
            (Ok((_, bytes)), _) => value_of(name, &path, Ok(bytes)),
            (Err(PathFault::Missing), Some(values)) => values.read(name),
            (Err(fault), _) => value_of(name, &path, Err(format!("{} in {}", String::from(fault), self.revision))),
        }
    }

    fn identity(&self, name: &str) -> PathBuf {
        let label = format!("{}:", self.revision);
        let name = if self.is_older { name.strip_prefix(label.as_str()).unwrap_or(name) } else { name };
        let path = Path::new(name);
        // The work tree can have other links than the commit, so the path is not looked up there.
        let below = self.paths.iter().find_map(|(shown, inside)| Some(inside.join(path.strip_prefix(shown).ok()?)));
        let inside = normalize(below.as_deref().unwrap_or(path));
        self.with(|tree| tree.find(&inside).map(|entry| entry.path)).unwrap_or(inside)
    }

    /// Paths are relative to the top of the repository, wherever edgewright runs.
    fn token_file(&self, manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        outside_of(&self.root.join(&manifest.root), &self.root.join(&manifest.folder).join(file))
    }
}

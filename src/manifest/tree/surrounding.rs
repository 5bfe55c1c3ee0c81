//! Trees with surrounding manifests, whose names and module sets a source uses without owning them (D107), and with
//! unset values that are assumed, for a review without secrets (D106).
//!
//! # The problem
//!
//! Teams that share an ingress review and apply their folders one by one, and use names and module sets of each other.
//! Both folders as one source would make each team the owner of the resources of the other.
//!
//! # The idea
//!
//! [`SurroundedTree`] is the tree of a source and the tree around it in one. It lists the files of both, and marks those
//! that are only surrounding ones. A value is read in the tree that its manifest is from. Everything behind it needs no
//! other door for them: `resolve::surrounding` takes from marked files what a source may use.
//!
//! For example, `plan shop --with .` reads all files below `.`. Those below `shop` are files of the source, by
//! whichever path they were reached, and the others are marked.
//!
//! # What it never does
//!
//! It never drops an error in a surrounding file, because what could not be read may be what the source uses. It
//! reports no warning of one: that is left to its owner.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use super::file_stamp::NotedFile;
use super::manifest_tree::{Tree, TreeFiles};
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::{Diagnostic, Fault};

/// The meaning of a value that is unset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnsetValues {
    /// An error.
    Require,
    /// The value in the store, or an unknown one.
    Assume,
}

/// The manifests of a source with the surrounding manifests.
#[derive(Debug)]
pub(crate) struct SurroundedTree {
    own: Arc<dyn Tree>,
    surrounding: Option<Arc<dyn Tree>>,
    unset: UnsetValues,
}

impl SurroundedTree {
    /// Adds the surrounding manifests to those of a source, if there are any.
    pub(crate) fn wrap(own: Arc<dyn Tree>, surrounding: Option<Arc<dyn Tree>>, unset: UnsetValues) -> Arc<dyn Tree> {
        if surrounding.is_none() && unset == UnsetValues::Require {
            return own;
        }
        Arc::new(Self { own, surrounding, unset })
    }

    fn tree_of(&self, manifest: &ManifestFile) -> &dyn Tree {
        match &self.surrounding {
            Some(surrounding) if manifest.is_surrounding => surrounding.as_ref(),
            _ => self.own.as_ref(),
        }
    }
}

/// A diagnostic of a surrounding manifest, if it is an error: warnings are for the owner of the manifest.
pub(crate) fn surrounding_error(diagnostic: Diagnostic) -> Option<Diagnostic> {
    let message = format!("in the surrounding manifests: {}", diagnostic.message);
    diagnostic.is_error().then_some(Diagnostic { is_surrounding: true, message, ..diagnostic })
}

/// The file of a tree that a diagnostic is about.
fn file_of(tree: &dyn Tree, diagnostic: &Diagnostic) -> Option<PathBuf> {
    diagnostic.place.as_ref().map(|place| tree.identity(&place.file.name))
}

impl Tree for SurroundedTree {
    /// The files of the source, and the surrounding files that are not part of it.
    fn manifests(&self) -> TreeFiles {
        let (mut files, mut diagnostics) = self.own.manifests();
        let Some(surrounding) = &self.surrounding else { return (files, diagnostics) };
        // The surrounding folder can contain that of the source, under another path.
        let own: HashSet<PathBuf> = files
            .iter()
            .map(|file| self.own.identity(&file.source.name))
            .chain(diagnostics.iter().filter_map(|it| file_of(self.own.as_ref(), it)))
            .collect();
        let (others, found) = surrounding.manifests();
        let others = others.iter().filter(|file| !own.contains(&surrounding.identity(&file.source.name)));
        files.extend(others.map(|file| Arc::new(file.as_surrounding())));
        let found =
            found.into_iter().filter(|it| file_of(surrounding.as_ref(), it).is_none_or(|file| !own.contains(&file)));
        diagnostics.extend(found.filter_map(surrounding_error));
        (files, diagnostics)
    }

    fn inner(&self) -> Option<&dyn Tree> {
        Some(self.own.as_ref())
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.tree_of(manifest).file(manifest, name)
    }

    fn variable(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.tree_of(manifest).variable(manifest, name)
    }

    fn files_read(&self) -> Vec<NotedFile> {
        let mut read = self.own.files_read();
        read.extend(self.surrounding.iter().flat_map(|surrounding| surrounding.files_read()));
        read
    }

    fn token_file(&self, manifest: &ManifestFile, file: PathBuf) -> Result<PathBuf, Fault> {
        self.tree_of(manifest).token_file(manifest, file)
    }

    fn assumes_values(&self) -> bool {
        self.unset == UnsetValues::Assume
    }

    fn has_surrounding(&self) -> bool {
        self.surrounding.is_some()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;
    use crate::manifest::tree::Disk;
    use crate::model::Cause;

    #[test]
    fn surrounding_manifests_have_everything_but_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, text) in [("team/a.yaml", "# a\n"), ("team/empty.yaml", ""), ("shared/b.yaml", "# b\n")] {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), text).unwrap();
        }
        fs::write(path("shared/empty.yaml"), "").unwrap();
        // Another way to the same folder.
        let aside = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), aside.path().join("linked")).unwrap();
        for around in [path("team/.."), aside.path().join("linked")] {
            let around: Arc<dyn Tree> = Arc::new(Disk::new([around]));
            let tree = SurroundedTree::wrap(Arc::new(Disk::new([path("team")])), Some(around), UnsetValues::Require);
            let (files, diagnostics) = tree.manifests();
            let found: Vec<(bool, bool)> =
                files.iter().map(|file| (file.source.name.ends_with("team/a.yaml"), file.is_surrounding)).collect();
            assert_eq!(found, [(true, false), (false, true)]);
            assert!(diagnostics.iter().all(|it| it.cause == Some(Cause::NoContent)), "{diagnostics:?}");
            let is_surrounding = diagnostics.iter().map(|it| it.is_surrounding);
            assert_eq!(is_surrounding.collect::<Vec<bool>>(), [false, true], "{diagnostics:?}");
            let is_told = diagnostics.iter().map(|it| it.message.starts_with("in the surrounding manifests: "));
            assert_eq!(is_told.collect::<Vec<bool>>(), [false, true], "{diagnostics:?}");
            let (again, _) = tree.manifests();
            let mut pairs = files.iter().zip(&again);
            assert!(pairs.all(|(one, other)| Arc::ptr_eq(&one.source, &other.source)), "a text is in memory twice");
        }
    }
}

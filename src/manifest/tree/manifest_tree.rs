//! [`Tree`]: a place that manifests and their values are read from.

use std::path::Path;

use super::file_stamp::NotedFile;
use super::paths::{absolute, outside_of, resolved};
use super::variables::read_variable;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::ManifestFile;
use crate::model::CommitAuthor;

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

    /// The value of an environment variable referenced by a manifest. Those of the program itself are refused.
    fn variable(&self, _manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        read_variable(name)
    }

    /// Whether a value that is unset is assumed to be unchanged, for a review without secrets (D106).
    fn assumes_values(&self) -> bool {
        self.inner().is_some_and(|inner| inner.assumes_values())
    }

    /// Whether some of the manifests only surround the others (D107).
    fn has_surrounding(&self) -> bool {
        self.inner().is_some_and(|inner| inner.has_surrounding())
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

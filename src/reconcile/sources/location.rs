//! Where the manifests of a followed source are.

use std::path::PathBuf;

/// The location of a source's manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    /// The files and folders on disk; in a repository, at most one path inside it.
    pub paths: Vec<PathBuf>,
    /// The path or URL of the repository, or empty.
    pub repository: String,
    /// The branch, tag or commit in the repository, or empty.
    pub revision: String,
    /// The range of versions that the tag in the repository is in, or empty.
    pub semver: String,
}

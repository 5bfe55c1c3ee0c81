//! Folders for a while, which only their owner can read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::store::error::{Doing, StoreError};
use crate::store::ids;

/// A folder that is removed with this value.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    /// Creates an empty folder where temporary files belong.
    pub(crate) fn new() -> Result<Self, StoreError> {
        let path = std::env::temp_dir().join(ids::fresh("edgewright-").as_str());
        Self::at(path)
    }

    /// Creates an empty folder at a path where nothing exists.
    pub(crate) fn at(path: PathBuf) -> Result<Self, StoreError> {
        DirBuilder::new().mode(0o700).create(&path).doing("create", &path)?;
        Ok(Self(path))
    }

    /// The path.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

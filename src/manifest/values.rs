//! Values from the environment or from files (D28), for one manifest.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    path::PathBuf,
};

use super::{origin::ManifestFile, tree::Tree};
use crate::model::{
    decode::ValueSource,
    fault::{Fault, Path as FieldPath},
};

/// The value sources of one manifest.
pub(super) struct Values<'a> {
    tree: &'a dyn Tree,
    manifest: &'a ManifestFile,
    plain_secrets: RefCell<BTreeSet<FieldPath>>,
    /// Whether something outside of the manifest was read.
    looked_outside: Cell<bool>,
}

impl<'a> Values<'a> {
    /// Resolves the values of a manifest of `tree`.
    pub(super) fn new(tree: &'a dyn Tree, manifest: &'a ManifestFile) -> Self {
        Self { tree, manifest, plain_secrets: RefCell::default(), looked_outside: Cell::new(false) }
    }

    /// Returns the plain-text secrets decoded since the last call.
    pub(super) fn take_plain_secrets(&self) -> Vec<FieldPath> {
        self.plain_secrets.take().into_iter().collect()
    }

    /// Whether the manifest depends on more than its own text: values, or the place of a token file.
    pub(super) fn looked_outside(&self) -> bool {
        self.looked_outside.get()
    }

    /// The path to write a token to.
    pub(super) fn token_file(&self, file: PathBuf) -> Result<PathBuf, Fault> {
        self.looked_outside.set(true);
        self.tree.token_file(self.manifest, file)
    }
}

impl ValueSource for Values<'_> {
    fn plain_secret(&self, path: FieldPath) {
        self.plain_secrets.borrow_mut().insert(path);
    }

    fn resolve(&self, source: &str, argument: &str) -> Result<String, Fault> {
        self.looked_outside.set(true);
        match source {
            "from_file" => self.tree.file(self.manifest, argument),
            _ => self.tree.variable(self.manifest, argument),
        }
    }
}

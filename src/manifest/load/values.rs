//! Values from the environment or from files (D28), for one manifest.

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf};

use crate::manifest::resolve::origin::ManifestFile;
use crate::manifest::tree::manifest_tree::Tree;
use crate::model::decode::ValueSource;
use crate::model::secrets::unknown_value::{is_unknown, unknown};
use crate::model::{Code, Fault, FieldPath};

/// The value sources of one manifest.
pub(crate) struct Values<'a> {
    tree: &'a dyn Tree,
    manifest: &'a ManifestFile,
    plain_secrets: RefCell<BTreeSet<FieldPath>>,
    null_entries: RefCell<BTreeSet<FieldPath>>,
    /// The inputs of the manifest outside its text: values, and the places of token files.
    pub external_values: RefCell<Vec<ExternalValue>>,
}

/// The inputs of a manifest outside its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExternalValue {
    /// A value. One without a digest is unset and assumed (D106).
    Value { source: String, argument: String, digest: Option<blake3::Hash> },
    /// The path to write a token to.
    TokenFile { given: PathBuf, path: PathBuf },
    /// The value was missing or not allowed.
    Missing,
}

impl ExternalValue {
    /// Whether a manifest would take the same again. What was missing may come at any time.
    pub(crate) fn is_same(&self, tree: &dyn Tree, manifest: &ManifestFile) -> bool {
        let values = Values::new(tree, manifest);
        let _ = match self {
            ExternalValue::Missing | ExternalValue::Value { digest: None, .. } => return false,
            ExternalValue::Value { source, argument, .. } => values.resolve(source, argument).map(drop),
            ExternalValue::TokenFile { given, .. } => values.token_file(given.clone()).map(drop),
        };
        values.external_values.take().first() == Some(self)
    }
}

impl<'a> Values<'a> {
    /// Resolves the values of a manifest of `tree`.
    pub(crate) fn new(tree: &'a dyn Tree, manifest: &'a ManifestFile) -> Self {
        let (plain_secrets, null_entries, external_values) = Default::default();
        Self { tree, manifest, plain_secrets, null_entries, external_values }
    }

    /// Returns the plain-text secrets decoded since the last call.
    pub(super) fn take_plain_secrets(&self) -> Vec<FieldPath> {
        self.plain_secrets.take().into_iter().collect()
    }

    /// Returns the null entries of maps decoded since the last call.
    pub(super) fn take_null_entries(&self) -> BTreeSet<FieldPath> {
        self.null_entries.take()
    }

    /// The path to write a token to.
    pub(super) fn token_file(&self, file: PathBuf) -> Result<PathBuf, Fault> {
        let path = self.tree.token_file(self.manifest, file.clone());
        let taken = path.as_ref().map(|path| ExternalValue::TokenFile { given: file, path: path.clone() });
        self.external_values.borrow_mut().push(taken.unwrap_or(ExternalValue::Missing));
        path
    }
}

impl ValueSource for Values<'_> {
    fn plain_secret(&self, path: FieldPath) {
        self.plain_secrets.borrow_mut().insert(path);
    }

    fn null_entry(&self, path: FieldPath) {
        self.null_entries.borrow_mut().insert(path);
    }

    fn resolve(&self, source: &str, argument: &str) -> Result<String, Fault> {
        let value = match source {
            "from_file" => self.tree.file(self.manifest, argument),
            _ => self.tree.variable(self.manifest, argument),
        };
        // Most values of surrounding manifests belong to resources that the source does not own.
        let is_surrounding = self.manifest.is_surrounding;
        let may_assume = |fault: &Fault| match fault.code {
            Code::EnvUnset | Code::FileUnreadable => self.tree.assumes_values() || is_surrounding,
            Code::Forbidden => is_surrounding,
            _ => false,
        };
        let is_assumed = value.as_ref().is_err_and(may_assume);
        let value = match value {
            _ if is_assumed => Ok(unknown(source, argument)),
            Ok(value) if is_unknown(&value) => {
                Err(Fault::new(Code::InvalidFormat, "a value cannot start with the character U+F5ED"))
            }
            value => value,
        };
        let taken = value.as_ref().map(|value| {
            let digest = (!is_assumed).then(|| blake3::hash(value.as_bytes()));
            ExternalValue::Value { source: source.to_owned(), argument: argument.to_owned(), digest }
        });
        self.external_values.borrow_mut().push(taken.unwrap_or(ExternalValue::Missing));
        value
    }
}

//! The origin of a value: file, document and path. Lines and columns are computed only when needed.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use super::{locate::SourceMap, schema::fields};
use crate::model::{
    code::Code,
    diagnostic::{Diagnostic, Place, Severity, SourceFile},
    fault::{Aim, Fault, Path},
};

/// A manifest file.
#[derive(Debug)]
pub struct ManifestFile {
    /// The name and text.
    pub source: Arc<SourceFile>,
    /// The folder that value files are relative to.
    pub folder: PathBuf,
    /// The source tree's root.
    pub root: PathBuf,
    map: OnceLock<SourceMap>,
}

impl ManifestFile {
    /// Creates a file of the tree `root`.
    pub fn new(name: String, text: String, folder: PathBuf, root: PathBuf) -> Self {
        Self { source: Arc::new(SourceFile::new(name, text)), folder, root, map: OnceLock::new() }
    }

    /// The positions in the file, computed on first use.
    pub(crate) fn map(&self) -> &SourceMap {
        self.map.get_or_init(|| SourceMap::new(&self.source.text))
    }

    /// A byte range of the file.
    pub fn place(&self, span: std::ops::Range<usize>) -> Place {
        Place { file: Arc::clone(&self.source), span }
    }
}

/// Identifies a document within one run.
pub(super) type DocumentKey = (*const ManifestFile, usize);

/// The origin of a document or a part of it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    file: Arc<ManifestFile>,
    document: usize,
    base: Path,
}

impl Origin {
    /// The document at an index, from 0.
    pub(crate) fn new(file: Arc<ManifestFile>, document: usize) -> Self {
        Self { file, document, base: Path::root() }
    }

    /// The origin of a path inside this one.
    #[must_use]
    pub(crate) fn part(&self, path: &Path) -> Self {
        Self { base: path.under(&self.base), ..self.clone() }
    }

    /// The whole document.
    #[must_use]
    pub(crate) fn document(&self) -> Self {
        Self { base: Path::root(), ..self.clone() }
    }

    /// The name of the file.
    pub(crate) fn file_name(&self) -> &str {
        &self.file.source.name
    }

    /// A key that identifies the document within one run.
    pub(super) fn document_key(&self) -> DocumentKey {
        (Arc::as_ptr(&self.file), self.document)
    }

    /// The place of a path.
    pub(crate) fn place(&self, path: &Path, aim: Aim) -> Place {
        self.file.place(self.file.map().locate(self.document, &path.under(&self.base), aim))
    }

    /// A fault of this part as an error at its line.
    pub(crate) fn diagnostic(&self, mut fault: Fault) -> Diagnostic {
        // The code that made the message cannot know that a key or value is an alias of a secret.
        let source = &self.file.source;
        if fault.message.contains('`') {
            fault.message = source.message(&fault.message, fields());
        }
        if fault.code == Code::DuplicateKey
            && let Some((first, second)) = self.file.map().repeated_key(self.document, &fault.path.under(&self.base))
        {
            let mut diagnostic = Diagnostic::from_fault(fault, self.file.place(second));
            diagnostic.related.push((self.file.place(first), "first here".into()));
            return diagnostic;
        }
        let place = self.place(&fault.path, fault.aim);
        Diagnostic::from_fault(fault, place)
    }

    /// Converts a fault into a warning with its place.
    pub(crate) fn warning(&self, fault: Fault) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..self.diagnostic(fault) }
    }
}

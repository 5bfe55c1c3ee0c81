//! Where a value was written: file, document and path, from which lines and columns are made when somebody looks.

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

/// A manifest file as it was read.
#[derive(Debug)]
pub struct ManifestFile {
    /// Its name and text.
    pub source: Arc<SourceFile>,
    /// Its folder: value sources are relative to it.
    pub folder: PathBuf,
    /// The source tree that it is part of.
    pub root: PathBuf,
    map: OnceLock<SourceMap>,
}

impl ManifestFile {
    /// A file that was read as a part of the tree `root`.
    pub fn new(name: String, text: String, folder: PathBuf, root: PathBuf) -> Self {
        Self { source: Arc::new(SourceFile::new(name, text)), folder, root, map: OnceLock::new() }
    }

    /// The positions in the file; worked out when the first fault needs them.
    pub fn map(&self) -> &SourceMap {
        self.map.get_or_init(|| SourceMap::new(&self.source.text))
    }

    /// A range of bytes of the file.
    pub fn place(&self, span: std::ops::Range<usize>) -> Place {
        Place { file: Arc::clone(&self.source), span }
    }
}

/// Where a document, or a part of it, was written.
#[derive(Debug, Clone)]
pub struct Origin {
    file: Arc<ManifestFile>,
    document: usize,
    base: Path,
}

impl Origin {
    /// The document with a number, counted from 0.
    pub fn new(file: Arc<ManifestFile>, document: usize) -> Self {
        Self { file, document, base: Path::root() }
    }

    /// The part of this one that a path leads to.
    #[must_use]
    pub fn part(&self, path: &Path) -> Self {
        Self { base: path.under(&self.base), ..self.clone() }
    }

    /// The whole document.
    #[must_use]
    pub fn document(&self) -> Self {
        Self { base: Path::root(), ..self.clone() }
    }

    /// What tells documents apart, within one run.
    pub fn document_key(&self) -> (*const ManifestFile, usize) {
        (Arc::as_ptr(&self.file), self.document)
    }

    /// The file.
    pub fn file(&self) -> &ManifestFile {
        &self.file
    }

    /// The place of a path.
    pub fn place(&self, path: &Path, aim: Aim) -> Place {
        self.file.place(self.file.map().locate(self.document, &path.under(&self.base), aim))
    }

    /// A fault of this part as an error at its line.
    pub fn diagnostic(&self, mut fault: Fault) -> Diagnostic {
        // An alias of a secret is a key or value like any other for whoever made the message.
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

    /// The same as a warning.
    pub fn warning(&self, fault: Fault) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..self.diagnostic(fault) }
    }
}

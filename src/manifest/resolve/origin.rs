//! The origin of a value: file, document and path. Lines and columns are computed only when needed.

use crate::manifest::load::schema::fields;
use crate::manifest::load::source_map::SourceMap;
use crate::manifest::prelude::*;
use crate::model::{Path, Place, Severity, SourceFile};

/// The label of what is repeated elsewhere.
const FIRST_HERE: &str = "first here";

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
    /// Whether the file is a surrounding manifest, whose declarations the source uses but does not own (D107).
    pub(crate) is_surrounding: bool,
}

impl ManifestFile {
    /// Creates a file of the tree `root`.
    pub fn new(name: String, text: impl Into<Arc<String>>, folder: PathBuf, root: PathBuf) -> Self {
        let source = Arc::new(SourceFile::shared(name, text.into()));
        Self { source, folder, root, map: OnceLock::new(), is_surrounding: false }
    }

    /// Replaces the name and text by equal ones that others use too.
    pub(crate) fn with_source(&self, source: Arc<SourceFile>) -> Self {
        let (folder, root) = (self.folder.clone(), self.root.clone());
        Self { source, folder, root, map: OnceLock::new(), is_surrounding: self.is_surrounding }
    }

    /// Marks the file as a surrounding manifest.
    pub(crate) fn as_surrounding(&self) -> Self {
        Self { is_surrounding: true, ..self.with_source(Arc::clone(&self.source)) }
    }

    /// Whether another file has the same name, text and place.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.source, &other.source);
        if std::ptr::eq(self, other) {
            return true;
        }
        let is_alike = self.is_surrounding == other.is_surrounding && one.text == two.text;
        is_alike && one.name == two.name && self.folder == other.folder && self.root == other.root
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

/// A part of a document that declares something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocumentPart {
    /// The whole document.
    Document,
    /// The `spec` of the document.
    Spec,
    /// An entry of a list in its `spec`.
    Entry(&'static str, usize),
}

impl DocumentPart {
    /// The path from the document.
    pub(crate) fn path(self) -> Path {
        match self {
            DocumentPart::Document => Path::root(),
            DocumentPart::Spec => "spec".into(),
            DocumentPart::Entry(list, index) => Path(vec!["spec".into(), list.into(), index.into()]),
        }
    }
}

/// Identifies a document within one run.
pub(crate) type DocumentKey = (*const ManifestFile, usize);

/// The origin of a document or a part of it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub file: Arc<ManifestFile>,
    document: usize,
    pub part: DocumentPart,
}

impl Origin {
    /// The document at an index, from 0.
    pub(crate) fn new(file: Arc<ManifestFile>, document: usize) -> Self {
        Self { file, document, part: DocumentPart::Document }
    }

    /// The origin of a part of the document.
    #[must_use]
    pub(crate) fn part(&self, part: DocumentPart) -> Self {
        Self { part, ..self.clone() }
    }

    /// Whether this is an entry of a list in a document.
    pub(crate) fn is_entry(&self) -> bool {
        matches!(self.part, DocumentPart::Entry(..))
    }

    /// The whole document.
    #[must_use]
    pub(crate) fn document(&self) -> Self {
        self.part(DocumentPart::Document)
    }

    /// A key that identifies the document within one run.
    pub(crate) fn document_key(&self) -> DocumentKey {
        (Arc::as_ptr(&self.file), self.document)
    }

    /// The place of a path.
    pub(crate) fn place(&self, path: &Path, target: FaultTarget) -> Place {
        self.file.place(self.file.map().locate(self.document, &path.under(&self.part.path()), target))
    }

    /// A fault of this part as an error at its line.
    pub(crate) fn diagnostic(&self, mut fault: Fault) -> Diagnostic {
        // The code that made the message cannot know that a key or value is an alias of a secret.
        if fault.message.contains('`') {
            fault.message = self.file.source.redacted(fields()).message(&fault.message);
        }
        if fault.code == Code::DuplicateKey
            && let Some((first, second)) =
                self.file.map().repeated_key(self.document, &fault.path.under(&self.part.path()))
        {
            let diagnostic = Diagnostic::from_fault(fault, self.file.place(second));
            return Diagnostic { related: Box::new([(self.file.place(first), FIRST_HERE.to_owned())]), ..diagnostic };
        }
        let place = self.place(&fault.path, fault.target);
        Diagnostic::from_fault(fault, place)
    }

    /// A fault of what is a repetition, as an error with the place of the first one.
    pub(crate) fn repeated(&self, fault: Fault, first: Place) -> Diagnostic {
        let mut diagnostic = self.diagnostic(fault);
        diagnostic.relate([(first, FIRST_HERE.to_owned())]);
        diagnostic
    }

    /// Converts a fault into a warning with its place.
    pub(crate) fn warning(&self, fault: Fault) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..self.diagnostic(fault) }
    }
}

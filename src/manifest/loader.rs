//! The manifests of a source as they were loaded, and again after a change.

use foldhash::HashMap;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use super::load::declaration::DeclaredTest;
use super::load::declarations::Declarations;
use super::load::document::{self, Document};
use super::load::findings::FileFindings;
use super::load::reader::declare;
use super::load::values::{ExternalValue, Values};
use super::resolve::foreign_files::foreign_file_error;
use super::resolve::origin::ManifestFile;
use super::resolve::surrounding_declarations::SurroundingDeclarations;
use super::resolve::unknown_values::UnknownValues;
use super::tree::faults::changed_while_read;
use super::tree::file_stamp::NotedFile;
use super::tree::manifest_tree::Tree;
use super::tree::surrounding::surrounding_error;
use crate::manifest::prelude::*;
use crate::model::Cause;
use crate::model::diagnostics::diagnostic::sort;

/// The loaded manifests.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The declarations of all files, merged on first use.
    pub(super) declared: OnceLock<Declarations>,
    /// The declarations of the surrounding files.
    pub(super) surrounding: SurroundingDeclarations,
    /// Whether surrounding files or folders could not be read: they may declare any name.
    pub(super) lacks_surrounding: bool,
    /// The values that were assumed.
    pub(super) unknown_values: UnknownValues,
    /// Whether no name or ID is declared twice.
    pub(super) is_consistent: bool,
    /// The lints that documents of the source set to `warn` or `deny`: what they find is seen somewhere.
    pub(crate) raised_lints: BTreeSet<&'static str>,
    /// The route tests of the source, in the order of files and lines.
    pub(crate) tests: Vec<Arc<DeclaredTest>>,
    /// Whether a route test cannot be run, because its document has errors.
    pub(crate) has_faulty_tests: bool,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The files.
    pub files: Vec<Arc<ManifestFile>>,
    /// The parsed form of each file, to load a changed source again.
    pub(super) reads: Vec<Arc<FileRead>>,
}

/// The declarations of one file.
#[derive(Debug, Clone)]
pub(super) struct FileRead {
    pub(super) declared: Declarations,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The inputs outside the text of the file.
    external_values: Vec<ExternalValue>,
}

/// The most files that a core takes at once. The last piece of one core is all that the others wait for.
const FILES_AT_ONCE: usize = 4;
/// The fewest files that a core checks for changes at once.
const STAMPS_AT_ONCE: usize = 64;

/// How often manifests are read if a file changes meanwhile.
const TRIES: usize = 3;

/// Loads manifests. File order does not matter, because names are resolved at the end. If a file changes meanwhile,
/// everything is read again: files of two states, or a half-written one, must not become a plan.
pub fn load(tree: &dyn Tree) -> Loaded {
    let mut loaded = load_again(tree, &Loaded::default());
    for _ in 1..TRIES {
        if changed_file(tree).is_none() {
            return loaded;
        }
        loaded = load_again(tree, &Loaded::default());
    }
    if let Some(path) = changed_file(tree) {
        loaded.diagnostics.push(changed_while_read(&path));
        sort(&mut loaded.diagnostics);
    }
    loaded
}

/// A file that differs from what was read.
fn changed_file(tree: &dyn Tree) -> Option<PathBuf> {
    let changed = |read: NotedFile| (read.now() != Some(read.stamp)).then(|| PathBuf::from(&*read.path));
    tree.files_read().into_par_iter().with_min_len(STAMPS_AT_ONCE).find_map_first(changed)
}

/// Loads the manifests of a source again: only files whose text or values have changed since are parsed.
pub(crate) fn load_again(tree: &dyn Tree, earlier: &Loaded) -> Loaded {
    let known = earlier.files.iter().zip(&earlier.reads);
    let known: HashMap<&str, _> = known.map(|(file, read)| (file.source.name.as_str(), (file, read))).collect();
    let (files, diagnostics) = tree.manifests();
    let reread = |file: Arc<ManifestFile>| match known.get(file.source.name.as_str()).copied() {
        Some((same, read)) if same.is_same(&file) && read.external_values.iter().all(|it| it.is_same(tree, same)) => {
            (Arc::clone(same), Arc::clone(read))
        }
        _ => {
            let read = Arc::new(read(tree, &file));
            (file, read)
        }
    };
    let (files, reads): (Vec<_>, Vec<_>) = files.into_par_iter().with_max_len(FILES_AT_ONCE).map(reread).unzip();
    let lacks_surrounding = diagnostics.iter().any(|it| it.is_surrounding);
    let unknown_values = UnknownValues::new(tree.assumes_values());
    Loaded { files, diagnostics, lacks_surrounding, unknown_values, reads, ..Loaded::default() }.complete(earlier)
}

/// Reads one file.
fn read(tree: &dyn Tree, file: &Arc<ManifestFile>) -> FileRead {
    let mut declared = Declarations::default();
    let mut findings = FileFindings::default();
    let values = Values::new(tree, file);
    let documents = document::read(file, &mut findings);
    if findings.is_cut() {
        declared.note_unread(&file.source.text);
    }
    if let Some(foreign) = foreign_file_error(file, documents.iter().map(Document::node)) {
        return FileRead { declared, diagnostics: vec![foreign], external_values: Vec::new() };
    }
    for document in documents {
        yield_to_requests();
        declare(&document, &values, &mut declared, &mut findings);
    }
    let (diagnostics, external_values) = (findings.into_diagnostics(), values.external_values.into_inner());
    FileRead { declared, diagnostics, external_values }
}

impl Loaded {
    /// The error because of which no manifest of the source, or not every surrounding one, was read (D82, D88, D89).
    pub(crate) fn unread(&self) -> Option<&Diagnostic> {
        let is_nothing_read = self.files.iter().all(|file| file.is_surrounding);
        self.diagnostics.iter().find(|found| match found.cause {
            Some(Cause::NotFetched | Cause::RefusedCommit) => true,
            Some(Cause::NotRead) => is_nothing_read || found.is_surrounding,
            _ => false,
        })
    }

    /// Leaves assumed values unknown even if the store has them. Manifests that are compared with others would
    /// tell whether these have the values of the store.
    pub(crate) fn without_stored_values(mut self) -> Self {
        self.unknown_values.ignores_store = true;
        self
    }

    /// Adds what the files declare and what was found in them. If they declare the same names as in an earlier reading, in
    /// which no name or ID was declared twice, then this is still so.
    fn complete(mut self, earlier: &Self) -> Self {
        let mut surrounding = Vec::new();
        for (file, read) in self.files.iter().zip(&self.reads) {
            self.unknown_values.note(file, &read.external_values);
            let found = read.diagnostics.iter().cloned();
            if file.is_surrounding {
                surrounding.push(read.declared.clone());
                self.diagnostics.extend(found.filter_map(surrounding_error));
            } else {
                self.diagnostics.extend(found);
                self.raised_lints.extend(&read.declared.raised_lints);
                self.tests.extend(read.declared.tests.iter().cloned());
                self.has_faulty_tests |= read.declared.has_faulty_tests;
            }
        }
        self.surrounding = SurroundingDeclarations::from_files(surrounding);
        self.is_consistent = self.has_shape_of(earlier);
        if !self.is_consistent {
            let (mut all, found) = (self.merge(), self.diagnostics.len());
            all.report_duplicates(&mut self.diagnostics);
            self.is_consistent = self.diagnostics.len() == found;
            self.declared = OnceLock::from(all);
        }
        sort(&mut self.diagnostics);
        self
    }

    /// The declarations of all files.
    pub(super) fn declared(&self) -> &Declarations {
        self.declared.get_or_init(|| self.merge())
    }

    fn merge(&self) -> Declarations {
        let mut all = Declarations::default();
        let reads = self.files.iter().zip(&self.reads).filter(|(file, _)| !file.is_surrounding);
        reads.for_each(|(_, read)| all.append(read.declared.clone()));
        all
    }

    /// Whether an earlier reading of the source declares the same names, so that everything keeps its identity.
    pub(super) fn has_shape_of(&self, earlier: &Self) -> bool {
        earlier.is_consistent
            && self.names().eq(earlier.names())
            && self.changed_since(earlier).all(|(read, earlier)| read.declared.has_shape_of(&earlier.declared))
    }

    /// Returns the parsed files that differ from those at the same place in an earlier reading, and the earlier ones.
    pub(super) fn changed_since<'a>(
        &'a self,
        earlier: &'a Self,
    ) -> impl Iterator<Item = (&'a Arc<FileRead>, &'a Arc<FileRead>)> {
        self.reads.iter().zip(&earlier.reads).filter(|(read, earlier)| !Arc::ptr_eq(read, earlier))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.source.name.as_str())
    }
}

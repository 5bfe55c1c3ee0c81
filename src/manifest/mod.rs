//! Manifests: from YAML and JSON files to the desired state, with every error at its line (D26–D29).
//!
//! [`load`] reads and decodes the files; [`resolve::resolve`] resolves names to identifiers against a snapshot. Both
//! return partial results together with every [`Diagnostic`], so that one bad file does not hide the errors of others.

mod bounds;
mod cache;
mod declaration;
mod document;
pub(crate) mod export;
mod findings;
pub(crate) mod format;
mod identity;
mod kinds;
mod known_names;
mod locate;
mod origin;
mod reader;
pub(crate) mod resolve;
pub(crate) mod schema;
mod shared;
pub(crate) mod syntax;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod values;

pub(crate) use cache::ParsedFiles;
pub(crate) use declaration::Origins;
pub use origin::ManifestFile;
pub(crate) use origin::Origin;

use std::sync::Arc;

use foldhash::HashMap;
use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::model::diagnostic::{Diagnostic, sort};
use declaration::Declared;
use findings::FileFindings;
use reader::declare;
use tree::Tree;
use values::{Taken, Values};

/// The loaded manifests.
#[derive(Debug, Default)]
pub struct Loaded {
    declared: Declared,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The files.
    pub files: Vec<Arc<ManifestFile>>,
    /// What was read of each file, to load a changed source again.
    reads: Vec<Arc<FileRead>>,
}

/// What one file declares.
#[derive(Debug, Clone, Default)]
struct FileRead {
    declared: Declared,
    diagnostics: Vec<Diagnostic>,
    /// What it took from outside of the text of the file.
    taken: Vec<Taken>,
}

/// Loads manifests. File order does not matter, because names are resolved at the end.
pub fn load(tree: &dyn Tree) -> Loaded {
    load_with(tree, None)
}

/// Like [`load`], with a cache of parsed files.
pub(crate) fn load_with(tree: &dyn Tree, parsed: Option<&ParsedFiles>) -> Loaded {
    let (files, diagnostics) = tree.manifests();
    let reads = files.par_iter().map(|file| {
        Arc::new(match parsed {
            Some(parsed) => parsed.read(file, || read(tree, file)),
            None => read(tree, file),
        })
    });
    let reads = reads.collect();
    if let Some(parsed) = parsed {
        parsed.tidy();
    }
    Loaded { files, diagnostics, ..Loaded::default() }.with(reads)
}

/// Loads the manifests of a source again: only files whose text or values have changed since are parsed.
pub(crate) fn load_again(tree: &dyn Tree, earlier: &Loaded) -> Loaded {
    let known: HashMap<&str, (&Arc<ManifestFile>, &Arc<FileRead>)> = earlier
        .files
        .iter()
        .zip(&earlier.reads)
        .map(|(file, read)| (file.source.name.as_str(), (file, read)))
        .collect();
    let (files, diagnostics) = tree.manifests();
    let (files, reads): (Vec<_>, Vec<_>) = files
        .into_par_iter()
        .map(|file| match known.get(file.source.name.as_str()) {
            Some((same, read)) if same.is_same(&file) && read.holds(tree, same) => (Arc::clone(same), Arc::clone(read)),
            _ => {
                let read = Arc::new(read(tree, &file));
                (file, read)
            }
        })
        .unzip();
    Loaded { files, diagnostics, reads: reads.clone(), ..Loaded::default() }.with(reads)
}

/// Reads one file.
fn read(tree: &dyn Tree, file: &Arc<ManifestFile>) -> FileRead {
    let mut declared = Declared::default();
    let mut findings = FileFindings::default();
    let values = Values::new(tree, file);
    let documents = document::read(file, &mut findings);
    if findings.is_cut() {
        declared.note_unread(&file.source.text);
    }
    for document in documents {
        declare(&document, &values, &mut declared, &mut findings);
    }
    FileRead { declared, diagnostics: findings.into_diagnostics(), taken: values.into_taken() }
}

impl FileRead {
    /// Whether the file would take the same values again.
    fn holds(&self, tree: &dyn Tree, file: &ManifestFile) -> bool {
        self.taken.iter().all(|taken| taken.is_same(tree, file))
    }
}

impl Loaded {
    /// Keeps what was read of each file, to load the source again.
    pub(crate) fn load(tree: &dyn Tree) -> Self {
        load_again(tree, &Self::default())
    }

    fn with(mut self, reads: Vec<Arc<FileRead>>) -> Self {
        for read in reads {
            // What nobody keeps is moved.
            let FileRead { declared, diagnostics, .. } = Arc::unwrap_or_clone(read);
            self.declared.append(declared);
            self.diagnostics.extend(diagnostics);
        }
        self.declared.settle(&mut self.diagnostics);
        sort(&mut self.diagnostics);
        self
    }
}

//! Manifests: from YAML and JSON files to the desired state, with every error at its line (D26–D29).
//!
//! [`load`] reads and decodes the files; [`resolve::resolve`] resolves names to identifiers against a snapshot. Both
//! return partial results together with every [`Diagnostic`], so that one bad file does not hide the errors of others.

mod bounds;
mod declaration;
mod document;
pub(crate) mod export;
mod findings;
pub(crate) mod format;
mod identity;
mod kinds;
mod locate;
mod merge;
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

pub(crate) use declaration::Origins;
pub use origin::ManifestFile;
pub(crate) use origin::Origin;

use std::sync::Arc;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::model::diagnostic::{Diagnostic, sort};
use declaration::Declared;
use findings::FileFindings;
use reader::declare;
use tree::Tree;
use values::Values;

/// The loaded manifests.
#[derive(Debug, Default)]
pub struct Loaded {
    declared: Declared,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The files.
    pub files: Vec<Arc<ManifestFile>>,
}

/// Loads manifests. File order does not matter, because names are resolved at the end.
pub fn load(tree: &dyn Tree) -> Loaded {
    let (files, mut diagnostics) = tree.manifests();
    let read: Vec<(Declared, Vec<Diagnostic>)> = files
        .par_iter()
        .map(|file| {
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
            (declared, findings.into_diagnostics())
        })
        .collect();
    let mut declared = Declared::default();
    for (part, found) in read {
        declared.append(part);
        diagnostics.extend(found);
    }
    declared.settle(&mut diagnostics);
    sort(&mut diagnostics);
    Loaded { declared, diagnostics, files }
}

//! Manifests: from YAML and JSON files to the desired state, with every fault at its line (D26–D29).
//!
//! [`load`] reads and types what the files say and needs nothing but the files; [`resolve::resolve`] turns names into
//! identifiers against a Snapshot. Both return whatever they could make together with every [`Diagnostic`], so that one
//! bad file does not hide the faults of the others.

mod declaration;
mod document;
pub mod export;
pub mod format;
pub mod git;
mod locate;
mod merge;
mod origin;
mod reader;
pub mod resolve;
pub mod schema;
mod source;
mod values;

pub use declaration::{EXTRA_FIELDS, MODULE_SET};
pub use document::{API_VERSION, Envelope, Metadata};
pub use origin::Origin;
pub use source::find;

use std::path::PathBuf;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::model::diagnostic::{Diagnostic, sort};
use declaration::Declared;
use reader::declare;

/// How manifests are read.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Files, folders, or `-` for standard input.
    pub paths: Vec<PathBuf>,
    /// Whether values may come from files outside of the source tree (D28).
    pub allow_outside_files: bool,
}

/// What was read.
#[derive(Debug, Default)]
pub struct Loaded {
    declared: Declared,
    /// Everything that is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// How many files were read.
    pub files: usize,
}

/// Reads manifests. Their order never matters: files are taken by path, and names are resolved at the end.
pub fn load(options: &LoadOptions) -> Loaded {
    let (files, mut diagnostics) = source::read(&options.paths);
    let count = files.len();
    let read: Vec<(Declared, Vec<Diagnostic>)> = files
        .into_par_iter()
        .map(|file| {
            let mut declared = Declared::default();
            let mut diagnostics = Vec::new();
            let values = values::Files::new(&file, options.allow_outside_files);
            for document in document::read(&file, &mut diagnostics) {
                declare(&document, &values, &mut declared, &mut diagnostics);
            }
            (declared, diagnostics)
        })
        .collect();
    let mut declared = Declared::default();
    for (part, found) in read {
        declared.append(part);
        diagnostics.extend(found);
    }
    declared.settle(&mut diagnostics);
    sort(&mut diagnostics);
    Loaded { declared, diagnostics, files: count }
}

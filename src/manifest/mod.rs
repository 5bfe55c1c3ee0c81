//! Manifests: YAML and JSON files to the desired state of one source, with every error at its line.
//!
//! # The problem
//!
//! People edit files that refer to each other by name, in any order and across files, and take modules from sets and
//! values from elsewhere. The planner needs the opposite: one typed resource per key, with identifiers in place of
//! names. In between, each mistake has to be reported once, at its line, whatever else is broken.
//!
//! # The idea
//!
//! Three steps, each from one value to the next. Every step returns all that it could make and every [`Diagnostic`]:
//!
//! ```text
//! tree    (a folder, a Git commit, a request)  → files: name, text, values from files and variables
//! load    (each file by itself)                → declarations: kind, name, typed Spec with names, origin
//! resolve (all declarations against a store)   → desired resources: key, Spec with identifiers, claim
//! ```
//!
//! For example, `kind: HttpsEdgeRoute`, `spec: {edge: shop, modules_from: [base]}` is loaded as a declaration with the names
//! `shop` and `base`, whatever other files declare. It is resolved to a resource below the identifier of `shop`, with the
//! modules of `base`.
//!
//! Loading a file depends on that file and its values alone, so [`load_again`] takes over what an earlier reading made of
//! equal files. Two rooms are about texts: `format` tidies them, and `export` writes them from a store.
//!
//! # What it never does
//!
//! - It never treats a failed or partial read as "nothing is declared": that would delete everything.
//! - It does not read or change a store. Resolving gets a Snapshot.
//! - It never quotes a secret, or text that may be one (D28).

pub(crate) mod export;
pub(crate) mod format;
pub(crate) mod load;
pub(crate) mod resolve;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

pub(crate) use load::declaration::Origins;
pub(crate) use resolve::context::with_source;
pub use resolve::origin::ManifestFile;
pub(crate) use resolve::origin::Origin;

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use foldhash::HashMap;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};

use crate::{
    background::give_way,
    model::diagnostics::{Cause, Code, Diagnostic, Name, diagnostic::sort},
};
use load::{
    declaration::Declarations,
    document,
    findings::FileFindings,
    reader::declare,
    values::{ExternalValue, Values},
};
use resolve::{context::SourceContext, foreign_files::foreign_file_error, unknown_values::UnknownValues};
use tree::{NotedFile, Tree, changed_while_read, context_error};

/// The loaded manifests.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The declarations of all files, merged on first use.
    declared: OnceLock<Declarations>,
    /// The declarations of the surrounding files.
    context: SourceContext,
    /// Whether surrounding files or folders could not be read: they may declare any name.
    lacks_context: bool,
    /// The values that were assumed.
    unknown_values: UnknownValues,
    /// Whether no name or ID is declared twice.
    is_consistent: bool,
    /// The lints that documents of the source set to `warn` or `deny`: what they find is seen somewhere.
    pub(crate) raised_lints: BTreeSet<&'static str>,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The files.
    pub files: Vec<Arc<ManifestFile>>,
    /// The parsed form of each file, to load a changed source again.
    reads: Vec<Arc<FileRead>>,
}

/// The declarations of one file.
#[derive(Debug, Clone)]
struct FileRead {
    declared: Declarations,
    diagnostics: Vec<Diagnostic>,
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
    let lacks_context = diagnostics.iter().any(|it| it.cause == Some(Cause::Context));
    let unknown_values = UnknownValues::new(tree.assumes_values());
    Loaded { files, diagnostics, lacks_context, unknown_values, reads, ..Loaded::default() }.complete(earlier)
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
    if let Some(foreign) = foreign_file_error(file, &documents) {
        return FileRead { declared, diagnostics: vec![foreign], external_values: Vec::new() };
    }
    for document in documents {
        give_way();
        declare(&document, &values, &mut declared, &mut findings);
    }
    let (diagnostics, external_values) = (findings.into_diagnostics(), values.external_values.into_inner());
    FileRead { declared, diagnostics, external_values }
}

impl Loaded {
    /// The error because of which no manifest of the source, or not its whole context, was read (D82, D88, D89).
    pub(crate) fn unread(&self) -> Option<&Diagnostic> {
        let is_nothing_read = self.files.iter().all(|file| file.is_context);
        self.diagnostics.iter().find(|found| match found.code {
            Name::Code(Code::FetchFailed | Code::UnverifiedCommit | Code::Rewound) => true,
            Name::Code(Code::Unreadable) => is_nothing_read || found.cause == Some(Cause::Context),
            _ => false,
        })
    }

    /// Adds what the files declare and what was found in them. If they declare the same names as in an earlier reading, in
    /// which no name or ID was declared twice, then this is still so.
    fn complete(mut self, earlier: &Self) -> Self {
        let mut context = Vec::new();
        for (file, read) in self.files.iter().zip(&self.reads) {
            self.unknown_values.note(file, &read.external_values);
            let found = read.diagnostics.iter().cloned();
            if file.is_context {
                context.push(read.declared.clone());
                self.diagnostics.extend(found.filter_map(context_error));
            } else {
                self.diagnostics.extend(found);
                self.raised_lints.extend(&read.declared.raised_lints);
            }
        }
        self.context = SourceContext::from_files(context);
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
    fn declared(&self) -> &Declarations {
        self.declared.get_or_init(|| self.merge())
    }

    fn merge(&self) -> Declarations {
        let mut all = Declarations::default();
        let reads = self.files.iter().zip(&self.reads).filter(|(file, _)| !file.is_context);
        reads.for_each(|(_, read)| all.append(read.declared.clone()));
        all
    }

    /// Whether an earlier reading of the source declares the same names, so that everything keeps its identity.
    fn has_shape_of(&self, earlier: &Self) -> bool {
        earlier.is_consistent
            && self.names().eq(earlier.names())
            && self.changed_since(earlier).all(|(read, earlier)| read.declared.has_shape_of(&earlier.declared))
    }

    /// Returns the parsed files that differ from those at the same place in an earlier reading, and the earlier ones.
    fn changed_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (&'a Arc<FileRead>, &'a Arc<FileRead>)> {
        self.reads.iter().zip(&earlier.reads).filter(|(read, earlier)| !Arc::ptr_eq(read, earlier))
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.source.name.as_str())
    }
}

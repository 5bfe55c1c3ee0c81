//! Manifests: from YAML and JSON files to the desired state, with every error at its line (D26–D29).
//!
//! [`load`] reads and decodes the files; [`resolve::resolve`] resolves names to identifiers against a snapshot. Both
//! return partial results together with every [`Diagnostic`], so that one bad file does not hide the errors of others.

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
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use foldhash::HashMap;
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::{
    background::give_way,
    model::diagnostics::{
        code::Code,
        diagnostic::{Cause, Diagnostic, Name, sort},
    },
};
use load::{
    declaration::{Declared, ModuleSet},
    document,
    findings::FileFindings,
    reader::declare,
    values::{Taken, Values},
};
use resolve::{context::SourceContext, foreign_files::foreign_file, unknown_values::AssumedNames};
use tree::{NotedFile, Tree, changed_while_read, in_context};

/// The loaded manifests.
#[derive(Debug, Default)]
pub struct Loaded {
    /// What all files declare, merged when it is first needed.
    declared: OnceLock<Declared>,
    /// What the files of the context declare.
    context: SourceContext,
    /// Whether files or folders of the context could not be read: they may declare any name.
    lacks_context: bool,
    /// The values that were assumed.
    assumed: AssumedNames,
    /// Whether no name or ID is declared twice.
    is_consistent: bool,
    /// The lints that documents of the source set to another level than `allow`.
    raised_lints: BTreeSet<&'static str>,
    /// All errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// The files.
    pub files: Vec<Arc<ManifestFile>>,
    /// What was read of each file, to load a changed source again.
    reads: Vec<Arc<FileRead>>,
}

/// The name of a file and what was read of it.
type NamedRead<'a> = (&'a str, &'a Arc<FileRead>);

/// A file and what was read of it.
type KnownRead<'a> = (&'a Arc<ManifestFile>, &'a Arc<FileRead>);

/// What one file declares.
#[derive(Debug, Clone)]
struct FileRead {
    declared: Declared,
    diagnostics: Vec<Diagnostic>,
    /// What it took from outside of the text of the file.
    taken: Vec<Taken>,
}

/// The most files that a core takes at once. The last piece of one core is all that the others wait for.
const FILES_AT_ONCE: usize = 4;
/// The same for looks at whether a file has changed.
const LOOKS_AT_ONCE: usize = 64;

/// How often manifests are read if a file changes meanwhile.
const TRIES: usize = 3;

/// Loads manifests. File order does not matter, because names are resolved at the end. If a file changes meanwhile,
/// everything is read again: files of two states, or a half-written one, must not become a plan.
pub fn load(tree: &dyn Tree) -> Loaded {
    let mut loaded = load_once(tree);
    for _ in 1..TRIES {
        if changed_file(tree).is_none() {
            return loaded;
        }
        loaded = load_once(tree);
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
    tree.files_read().into_par_iter().with_min_len(LOOKS_AT_ONCE).find_map_first(changed)
}

fn load_once(tree: &dyn Tree) -> Loaded {
    let (files, diagnostics) = tree.manifests();
    let reads = files.par_iter().with_max_len(FILES_AT_ONCE).map(|file| Arc::new(read(tree, file))).collect();
    let assumed = AssumedNames::new(tree.assumes_values());
    let lacks_context = diagnostics.iter().any(|it| it.cause == Some(Cause::Context));
    Loaded { files, diagnostics, lacks_context, assumed, ..Loaded::default() }.with(reads)
}

/// Loads the manifests of a source again: only files whose text or values have changed since are parsed.
pub(crate) fn load_again(tree: &dyn Tree, earlier: &Loaded) -> Loaded {
    let by_name = OnceLock::new();
    // Most files are where they were. A map of all of them is only made for others.
    let known = |index: usize, name: &str| {
        let at_place = earlier.files.get(index).zip(earlier.reads.get(index));
        at_place.filter(|(file, _)| file.source.name == name).or_else(|| {
            let by_name: &HashMap<&str, KnownRead<'_>> = by_name.get_or_init(|| earlier.by_name());
            by_name.get(name).copied()
        })
    };
    let (files, diagnostics) = tree.manifests();
    let (files, reads): (Vec<_>, Vec<_>) = files
        .into_par_iter()
        .enumerate()
        .with_max_len(FILES_AT_ONCE)
        .map(|(index, file)| match known(index, &file.source.name) {
            Some((same, read)) if same.is_same(&file) && read.holds(tree, same) => (Arc::clone(same), Arc::clone(read)),
            _ => {
                let read = Arc::new(read(tree, &file));
                (file, read)
            }
        })
        .unzip();
    let assumed = AssumedNames::new(tree.assumes_values());
    let lacks_context = diagnostics.iter().any(|it| it.cause == Some(Cause::Context));
    let loaded = Loaded { files, diagnostics, lacks_context, assumed, reads: reads.clone(), ..Loaded::default() };
    if loaded.has_shape_of(earlier) { loaded.consistent() } else { loaded.with(reads) }
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
    if let Some(foreign) = foreign_file(file, &documents) {
        return FileRead { declared, diagnostics: vec![foreign], taken: Vec::new() };
    }
    for document in documents {
        give_way();
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
    /// The error because of which no manifest of the source, or not its whole context, was read (D82, D88, D89).
    pub(crate) fn unread(&self) -> Option<&Diagnostic> {
        let is_nothing_read = self.files.iter().all(|file| file.is_context());
        self.diagnostics.iter().find(|found| match found.code {
            Name::Code(Code::FetchFailed | Code::UnverifiedCommit | Code::Rewound) => true,
            Name::Code(Code::Unreadable) => is_nothing_read || found.cause == Some(Cause::Context),
            _ => false,
        })
    }

    /// The lints that documents of the source set to `warn` or `deny`: what they find is seen somewhere.
    pub(crate) fn raised_lints(&self) -> &BTreeSet<&'static str> {
        &self.raised_lints
    }

    fn with(mut self, reads: Vec<Arc<FileRead>>) -> Self {
        let (mut all, mut context) = (Declared::default(), Vec::new());
        all.reserve(reads.iter().map(|read| &read.declared));
        for (file, read) in self.files.iter().zip(reads) {
            // What nobody keeps is moved.
            let FileRead { declared, diagnostics, taken } = Arc::unwrap_or_clone(read);
            self.assumed.note(file, &taken);
            if file.is_context() {
                context.push(declared);
                self.diagnostics.extend(diagnostics.into_iter().filter_map(in_context));
            } else {
                all.append(declared);
                self.diagnostics.extend(diagnostics);
            }
        }
        let found = self.diagnostics.len();
        all.settle(&mut self.diagnostics);
        self.is_consistent = self.diagnostics.len() == found;
        self.raised_lints.clone_from(all.raised_lints());
        self.declared = OnceLock::from(all);
        self.context = SourceContext::of(context);
        sort(&mut self.diagnostics);
        self
    }

    /// Like `with`, if it is known that no name or ID is declared twice.
    fn consistent(mut self) -> Self {
        self.is_consistent = true;
        for (file, read) in self.files.iter().zip(&self.reads) {
            self.assumed.note(file, &read.taken);
            let found = read.diagnostics.iter().cloned();
            match file.is_context() {
                true => self.diagnostics.extend(found.filter_map(in_context)),
                false => {
                    self.diagnostics.extend(found);
                    self.raised_lints.extend(read.declared.raised_lints());
                }
            }
        }
        let context = self.files.iter().zip(&self.reads).filter(|(file, _)| file.is_context());
        self.context = SourceContext::of(context.map(|(_, read)| read.declared.clone()));
        sort(&mut self.diagnostics);
        self
    }

    /// What all files declare.
    fn declared(&self) -> &Declared {
        self.declared.get_or_init(|| {
            let mut all = Declared::default();
            let reads = self.files.iter().zip(&self.reads).filter(|(file, _)| !file.is_context());
            all.reserve(reads.clone().map(|(_, read)| &read.declared));
            reads.for_each(|(_, read)| all.append(read.declared.clone()));
            all
        })
    }

    /// The module sets of all files. Those of the source come first.
    fn sets(&self) -> BTreeMap<String, Arc<ModuleSet>> {
        let mut sets = BTreeMap::new();
        for context in [false, true] {
            let reads = self.files.iter().zip(&self.reads).filter(|(file, _)| file.is_context() == context);
            for (name, set) in reads.flat_map(|(_, read)| &read.declared.sets) {
                sets.entry(name.clone()).or_insert_with(|| Arc::clone(set));
            }
        }
        sets
    }

    /// Whether an earlier reading of the source declares the same names, so that everything keeps its identity.
    fn has_shape_of(&self, earlier: &Self) -> bool {
        earlier.is_consistent
            && self.reads.len() == earlier.reads.len()
            && self.changed_since(earlier).all(|((name, read), (earlier_name, earlier))| {
                name == earlier_name && read.declared.has_shape_of(&earlier.declared)
            })
    }

    /// What was read of each file, by its name.
    fn by_name(&self) -> HashMap<&str, KnownRead<'_>> {
        let files = self.files.iter().zip(&self.reads);
        files.map(|(file, read)| (file.source.name.as_str(), (file, read))).collect()
    }

    /// The files that differ from those at the same place in an earlier reading, and these.
    fn changed_since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = (NamedRead<'a>, NamedRead<'a>)> {
        let pairs = self.named_reads().zip(earlier.named_reads());
        pairs.filter(|((_, read), (_, earlier))| !Arc::ptr_eq(read, earlier))
    }

    fn named_reads(&self) -> impl Iterator<Item = NamedRead<'_>> {
        self.files.iter().map(|file| file.source.name.as_str()).zip(&self.reads)
    }
}

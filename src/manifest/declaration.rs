//! What the documents declare: resources that still name each other, and module sets.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use super::origin::Origin;
use crate::{
    lint::Level,
    model::{
        Kind,
        code::Code,
        diagnostic::Diagnostic,
        fault::{Aim, Fault, Path},
        module::{AnyModule, Slot},
        resource::AnyResource,
    },
    text::printable,
};

/// A resource as a manifest declares it.
#[derive(Debug)]
pub struct Declaration {
    pub kind: Kind,
    /// The name, unique per kind and parent.
    pub name: String,
    /// The edge or subscription that it is part of, by name or id, and where that is written.
    pub parent: Option<(String, Path)>,
    pub id: Option<String>,
    pub renamed_from: Option<String>,
    pub prevent_destroy: bool,
    pub spec: Arc<dyn AnyResource>,
    /// Module sets to take, by name.
    pub modules_from: Vec<String>,
    pub token_file: Option<PathBuf>,
    /// The Spec.
    pub origin: Origin,
    /// The envelope's metadata, for faults of the id or name.
    pub head: Origin,
    pub facts: Facts,
    /// Whether its document has errors: then this is not all that was meant.
    pub faulty: bool,
}

impl Declaration {
    /// Whether it stands in the document of its edge or subscription, and has no metadata of its own.
    pub fn is_inside_of_parent(&self) -> bool {
        let names_parent = Path::root().join("spec").join("edge");
        self.parent.as_ref().is_some_and(|(_, path)| *path != names_parent)
    }
}

/// A set of modules that routes can take.
#[derive(Debug)]
pub struct ModuleSet {
    pub modules: Vec<(&'static Slot, Arc<dyn AnyModule>)>,
    /// The set's `spec`.
    pub origin: Origin,
    pub facts: Facts,
    /// Whether its document has errors.
    pub faulty: bool,
}

/// What only lints want to know of a manifest.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The secrets that are written as plain text, inside the Spec.
    pub plain_secrets: Vec<Path>,
    /// The document's label keys.
    pub labels: Vec<String>,
    /// The levels that the document's annotations set (D27).
    pub levels: BTreeMap<String, Level>,
}

/// Everything that was declared.
#[derive(Debug, Default)]
pub struct Declared {
    pub resources: Vec<Declaration>,
    pub sets: BTreeMap<String, ModuleSet>,
    /// Every name that stands in a document, faulty or not, with the kind and parent it belongs to: a reference to a
    /// faulty document is no second fault.
    names: Vec<(&'static str, String, String, Origin, Path)>,
    known: HashSet<(&'static str, String)>,
}

impl Declared {
    /// Takes over what another file declares.
    pub fn append(&mut self, other: Declared) {
        self.resources.extend(other.resources);
        for (name, set) in other.sets {
            self.sets.entry(name).or_insert(set);
        }
        self.names.extend(other.names);
    }

    /// Marks what one document has declared as faulty: everything from the given number of resources on, and its set.
    pub fn mark_faulty(&mut self, from: usize, set: &str) {
        self.resources.iter_mut().skip(from).for_each(|declaration| declaration.faulty = true);
        if let Some(set) = self.sets.get_mut(set) {
            set.faulty = true;
        }
    }

    /// Notes a name that a document declares for a kind and parent.
    pub fn note(&mut self, kind: &'static str, parent: &str, name: String, origin: Origin, path: Path) {
        self.names.push((kind, parent.to_owned(), name, origin, path));
    }

    /// Whether some document declares a name, be it a faulty one.
    pub fn knows(&self, kind: &'static str, name: &str) -> bool {
        self.known.contains(&(kind, name.to_owned()))
    }

    /// How many names there are, of every kind.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// The names of a kind, for a suggestion.
    pub fn names_of(&self, kind: &'static str) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |(of, ..)| *of == kind).map(|(_, _, name, ..)| name.as_str())
    }

    /// Reports names that are declared twice, once all files are read, and drops the later ones.
    pub fn settle(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let mut first: HashMap<(&'static str, &str, &str), (&Origin, &Path)> = HashMap::new();
        // Nobody knows which of two declarations was meant, so neither may be applied (D44).
        let mut faulty = HashSet::new();
        for (kind, parent, name, origin, path) in &self.names {
            self.known.insert((*kind, name.clone()));
            match first.entry((*kind, parent.as_str(), name.as_str())) {
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert((origin, path));
                }
                std::collections::hash_map::Entry::Occupied(entry) => {
                    let fault =
                        Fault::new(Code::DuplicateName, format!("the {kind} `{}` is declared twice", printable(name)))
                            .at(path.clone())
                            .help("rename or remove one of the two");
                    let mut diagnostic = origin.diagnostic(fault);
                    faulty.insert(origin.document_key());
                    let (origin, path) = entry.get();
                    faulty.insert(origin.document_key());
                    diagnostic.related.push((origin.place(path, Aim::Value), "first here".into()));
                    diagnostics.push(diagnostic);
                }
            }
        }
        if !faulty.is_empty() {
            let marked = self.resources.iter_mut().filter(|it| faulty.contains(&it.head.document_key()));
            marked.for_each(|declaration| declaration.faulty = true);
            let marked = self.sets.values_mut().filter(|set| faulty.contains(&set.origin.document_key()));
            marked.for_each(|set| set.faulty = true);
        }
        let mut seen = HashSet::new();
        self.resources
            .retain(|it| seen.insert((it.kind, it.parent.as_ref().map(|(name, _)| name.clone()), it.name.clone())));
    }
}

//! The declarations of the documents: resources with unresolved references, and module sets.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    path::PathBuf,
    sync::Arc,
};

use super::origin::{DocumentKey, Origin};
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
pub(super) struct Declaration {
    pub kind: Kind,
    /// The name, unique per kind and parent.
    pub name: String,
    /// The edge or subscription that contains it, by name or id, and the path of that reference.
    pub parent: Option<(String, Path)>,
    pub id: Option<String>,
    pub renamed_from: Option<String>,
    pub prevent_destroy: bool,
    pub spec: Arc<dyn AnyResource>,
    /// Module sets to use, by name.
    pub modules_from: Vec<String>,
    pub token_file: Option<PathBuf>,
    /// The origin of the spec.
    pub origin: Origin,
    /// The origin of the document, for faults in the metadata.
    pub head: Origin,
    pub facts: Facts,
    /// Whether its document has errors, so that the declaration may be incomplete.
    pub faulty: bool,
}

impl Declaration {
    /// Whether it is declared inside its edge or subscription, without its own metadata.
    pub(super) fn is_inside_of_parent(&self) -> bool {
        let names_parent = Path::root().join("spec").join("edge");
        self.parent.as_ref().is_some_and(|(_, path)| *path != names_parent)
    }
}

/// A set of modules for routes.
#[derive(Debug)]
pub(super) struct ModuleSet {
    pub modules: Vec<(&'static Slot, Arc<dyn AnyModule>)>,
    /// The origin of the `spec`.
    pub origin: Origin,
    pub facts: Facts,
    /// Whether its document has errors.
    pub faulty: bool,
}

/// Facts about a manifest for the lints.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// The paths of plain-text secrets in the spec.
    pub plain_secrets: Vec<Path>,
    /// The document's label keys.
    pub labels: Vec<String>,
    /// The lint levels set by the document's annotations (D27).
    pub levels: BTreeMap<String, Level>,
}

/// The `metadata.id` of a document.
#[derive(Debug)]
struct StatedId {
    kind: &'static str,
    /// The edge that the document names, if any.
    parent: String,
    id: String,
    /// The document's name.
    name: String,
    /// The origin of the document.
    head: Origin,
}

/// All declarations.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub resources: Vec<Declaration>,
    pub sets: BTreeMap<String, ModuleSet>,
    /// Every declared name with its kind and parent, including those of faulty documents: a reference to a faulty
    /// document is not a second error.
    names: Vec<(&'static str, String, String, Origin, Path)>,
    /// The IDs that documents state, in the order of the documents.
    ids: Vec<StatedId>,
    known: HashSet<(&'static str, String)>,
    /// The names in files that could not be read to the end, which may declare them.
    unread: HashSet<String>,
}

impl Declared {
    /// Adds the declarations of another file.
    pub(super) fn append(&mut self, other: Declared) {
        self.resources.extend(other.resources);
        for (name, set) in other.sets {
            self.sets.entry(name).or_insert(set);
        }
        self.names.extend(other.names);
        self.ids.extend(other.ids);
        self.known.extend(other.known);
        self.unread.extend(other.unread);
    }

    /// Marks the declarations of one document as faulty: all resources from index `from` on, and its module set.
    pub(super) fn mark_faulty(&mut self, from: usize, set: &str) {
        self.resources.iter_mut().skip(from).for_each(|declaration| declaration.faulty = true);
        if let Some(set) = self.sets.get_mut(set) {
            set.faulty = true;
        }
    }

    /// Records a declared name.
    pub(super) fn note(&mut self, kind: &'static str, parent: &str, name: String, origin: Origin, path: Path) {
        self.names.push((kind, parent.to_owned(), name, origin, path));
    }

    /// Records the ID that a document states.
    pub(super) fn note_id(&mut self, kind: &'static str, parent: &str, id: &str, name: &str, head: Origin) {
        let (parent, id, name) = (parent.to_owned(), id.to_owned(), name.to_owned());
        self.ids.push(StatedId { kind, parent, id, name, head });
    }

    /// Records the invalid name of a document: a reference to it is not a second error.
    pub(super) fn note_invalid(&mut self, kind: &'static str, name: String) {
        self.known.insert((kind, name));
    }

    /// Records the names in a file that could not be read to the end: a reference to one of them may be correct.
    pub(super) fn note_unread(&mut self, text: &str) {
        self.unread.extend(written_names(text).map(str::to_owned));
    }

    /// Whether a document, even a faulty or unreadable one, declares a name.
    pub(super) fn knows(&self, kind: &'static str, name: &str) -> bool {
        self.known.contains(&(kind, name.to_owned())) || self.unread.contains(name)
    }

    /// The names of a kind, for suggestions.
    pub(super) fn names_of(&self, kind: &'static str) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |(of, ..)| *of == kind).map(|(_, _, name, ..)| name.as_str())
    }

    /// Reports duplicate names and IDs after all files are read, and drops the later declarations.
    pub(super) fn settle(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let mut first: HashMap<(&'static str, &str, &str), (&Origin, &Path)> = HashMap::new();
        // It is unknown which of two declarations is intended, so neither is applied (D44).
        let mut faulty = HashSet::new();
        let repeating = self.repeated_ids(&mut faulty, diagnostics);
        let name_of_document = Path::root().join("metadata").join("name");
        for (kind, parent, name, origin, path) in &self.names {
            self.known.insert((*kind, name.clone()));
            // What a document contains is repeated for the same reason as the document.
            if *path != name_of_document && repeating.contains(&origin.document_key()) {
                continue;
            }
            match first.entry((*kind, parent.as_str(), name.as_str())) {
                Entry::Vacant(entry) => {
                    entry.insert((origin, path));
                }
                Entry::Occupied(entry) => {
                    let fault = Fault::new(Code::DuplicateName, format!("duplicate {kind} `{}`", printable(name)))
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
        self.resources.retain(|it| {
            !repeating.contains(&it.head.document_key())
                && seen.insert((it.kind, it.parent.as_ref().map(|(name, _)| name.clone()), it.name.clone()))
        });
    }

    /// Reports IDs that two documents state, and returns the later documents. Documents with the same name, too, are
    /// reported for the name.
    fn repeated_ids(
        &self,
        faulty: &mut HashSet<DocumentKey>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> HashSet<DocumentKey> {
        let mut first: HashMap<(&'static str, &str, &str), &StatedId> = HashMap::new();
        let mut repeating = HashSet::new();
        let path = Path::root().join("metadata").join("id");
        for it in &self.ids {
            match first.entry((it.kind, it.parent.as_str(), it.id.as_str())) {
                Entry::Vacant(entry) => {
                    entry.insert(it);
                }
                Entry::Occupied(entry) => {
                    let earlier = entry.get();
                    faulty.extend([it.head.document_key(), earlier.head.document_key()]);
                    repeating.insert(it.head.document_key());
                    if it.name == earlier.name {
                        continue;
                    }
                    let fault =
                        Fault::new(Code::DuplicateName, format!("duplicate {} ID `{}`", it.kind, printable(&it.id)))
                            .at(path.clone())
                            .help("correct one of the two IDs, or remove one of the documents");
                    let mut diagnostic = it.head.diagnostic(fault);
                    diagnostic.related.push((earlier.head.place(&path, Aim::Value), "first here".into()));
                    diagnostics.push(diagnostic);
                }
            }
        }
        repeating
    }
}

/// Returns the values of `name` in a text that may be no valid document.
fn written_names(text: &str) -> impl Iterator<Item = &str> {
    text.split("name").skip(1).filter_map(|rest| {
        let rest = rest.trim_start_matches(['"', '\'']).trim_start_matches(' ').strip_prefix(':')?;
        let rest = rest.trim_start_matches([' ', '"', '\'']);
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        let end = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        rest.get(..end).filter(|name| !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_broken_documents() {
        let text =
            "metadata: {name: shop, x\nmetadata:\n  name: 'a-1.b'\n{\"name\" : \"c\", \"names\": 1} name: X name:";
        assert_eq!(written_names(text).collect::<Vec<_>>(), ["shop", "a-1.b", "c"]);
    }
}

//! The declarations of several files together, with the names and IDs that must not repeat.

use std::ptr;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use super::declaration::{Declaration, DeclaredTest, ModuleSet};
use super::kinds::ROUTE_TEST;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::{DocumentKey, Origin};
use crate::model::{Path, is_name};

/// A name of a document or of an entry in it.
#[derive(Debug, Clone)]
pub(super) struct DeclaredName {
    pub kind: &'static str,
    pub parent: Option<Arc<str>>,
    pub name: Arc<str>,
    pub origin: Origin,
}

impl DeclaredName {
    /// The kind, parent and name: no two declarations have the same ones.
    fn identity(&self) -> (&'static str, Option<&str>, &str) {
        (self.kind, self.parent.as_deref(), &self.name)
    }

    fn path(&self) -> Path {
        match self.origin.is_entry() {
            false => ["metadata", "name"].into(),
            true if self.kind == Kind::EventSource.info().name => "type".into(),
            // A route without a name has its match as its name, which has a blank.
            true => Path::from(if is_name(&self.name) { "name" } else { "match" }),
        }
    }
}

/// All declarations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declarations {
    pub resources: Vec<Arc<Declaration>>,
    pub sets: BTreeMap<String, Arc<ModuleSet>>,
    pub tests: Vec<Arc<DeclaredTest>>,
    /// Whether a document with a route test has errors, so that it cannot be run.
    pub has_faulty_tests: bool,
    /// Every declared name with its kind and parent, including those of faulty documents: a reference to a faulty
    /// document is not a second error.
    pub(super) names: Vec<DeclaredName>,
    /// The IDs that documents state, in the order of the documents, and the names of these.
    pub(super) ids: Vec<(String, DeclaredName)>,
    /// The names of `names`, made when the first is looked up: only a fault needs it.
    known: OnceLock<HashSet<(&'static str, Arc<str>)>>,
    /// The invalid names of documents: a reference to one is not a second error.
    pub(super) invalid: HashSet<(&'static str, String)>,
    /// The names in files that could not be read to the end, which may declare them.
    unread: HashSet<String>,
    /// The lints that documents set to another level than `allow`.
    pub(crate) raised_lints: BTreeSet<&'static str>,
}

impl Declarations {
    /// Adds the declarations of another file.
    pub(crate) fn append(&mut self, other: Declarations) {
        self.resources.extend(other.resources);
        for (name, set) in other.sets {
            self.sets.entry(name).or_insert(set);
        }
        self.tests.extend(other.tests);
        self.has_faulty_tests |= other.has_faulty_tests;
        self.names.extend(other.names);
        self.ids.extend(other.ids);
        self.invalid.extend(other.invalid);
        self.unread.extend(other.unread);
        self.raised_lints.extend(other.raised_lints);
    }

    /// Takes the resources of a kind away, with their names and IDs.
    pub(crate) fn take(&mut self, kind: Kind) -> Vec<Arc<Declaration>> {
        let name = kind.info().name;
        self.names.retain(|it| it.kind != name);
        self.ids.retain(|(_, it)| it.kind != name);
        let (taken, others) = std::mem::take(&mut self.resources).into_iter().partition(|it| it.kind == kind);
        self.resources = others;
        taken
    }

    /// Whether two readings of a file declare the same names in the same order, without faults, so that everything keeps
    /// its identity.
    pub(crate) fn has_shape_of(&self, other: &Self) -> bool {
        let is_empty = |it: &Self| it.invalid.is_empty() && it.unread.is_empty();
        is_empty(self)
            && is_empty(other)
            && self.resources.len() == other.resources.len()
            && self.resources.iter().zip(&other.resources).all(|(one, other)| one.has_shape_of(other))
            && self.sets.keys().eq(other.sets.keys())
            && self.sets.values().chain(other.sets.values()).all(|set| !set.faulty)
            && self.names.iter().map(DeclaredName::identity).eq(other.names.iter().map(DeclaredName::identity))
            && self
                .ids
                .iter()
                .map(|(id, it)| (id, it.identity()))
                .eq(other.ids.iter().map(|(id, it)| (id, it.identity())))
    }

    /// Marks the declarations of one document as faulty: all resources from index `from` on, and its module set.
    pub(super) fn mark_faulty(&mut self, from: usize, set: &str) {
        self.resources.iter_mut().skip(from).for_each(|it| Arc::make_mut(it).faulty = true);
        if let Some(set) = self.sets.get_mut(set) {
            Arc::make_mut(set).faulty = true;
        }
    }

    /// Records the names in a file that could not be read to the end: a reference to one of them may be correct.
    pub(crate) fn note_unread(&mut self, text: &str) {
        self.has_faulty_tests |= text.contains(ROUTE_TEST);
        self.unread.extend(written_names(text).map(str::to_owned));
    }

    /// Whether a document, even a faulty or unreadable one, declares a name.
    pub(crate) fn knows(&self, kind: &'static str, name: &str) -> bool {
        let known = || self.names.iter().map(|it| (it.kind, Arc::clone(&it.name))).collect();
        self.known.get_or_init(known).contains(&(kind, Arc::from(name))) || self.may_know(kind, name)
    }

    /// Whether an invalid or unreadable document may declare a name.
    pub(crate) fn may_know(&self, kind: &'static str, name: &str) -> bool {
        self.invalid.contains(&(kind, name.to_owned())) || self.unread.contains(name)
    }

    /// The kinds, parents and names of everything that is declared inside another document's resource, as the documents
    /// spell them.
    pub(crate) fn contained(&self) -> HashSet<(&'static str, &str, &str)> {
        self.names.iter().filter_map(|it| Some((it.kind, it.parent.as_deref()?, it.name.as_ref()))).collect()
    }

    /// The names of a kind, for suggestions.
    pub(crate) fn names_of(&self, kind: &'static str) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |it| it.kind == kind).map(|it| it.name.as_ref())
    }

    /// Reports duplicate names and IDs after all files are read, and drops the later declarations.
    pub(crate) fn report_duplicates(&mut self, diagnostics: &mut Vec<Diagnostic>) {
        let mut first: HashMap<(&'static str, Option<&str>, &str), &DeclaredName> = HashMap::new();
        // It is unknown which of two declarations is intended, so neither is applied (D44).
        let mut faulty = HashSet::new();
        let repeating = self.repeated_ids(&mut faulty, diagnostics);
        let mut copies = HashSet::new();
        for it in &self.names {
            // The contents of a document are repeated for the same reason as the document.
            let document = it.origin.document_key();
            if it.origin.is_entry() && (repeating.contains(&document) || copies.contains(&document)) {
                continue;
            }
            let first = *first.entry(it.identity()).or_insert(it);
            if ptr::eq(first, it) {
                continue;
            }
            if !it.origin.is_entry() {
                copies.insert(it.origin.document_key());
            }
            faulty.extend([it.origin.document_key(), first.origin.document_key()]);
            let fault = Fault::new(Code::DuplicateName, format!("duplicate {} `{}`", it.kind, printable(&it.name)));
            let fault = fault.at(it.path()).help("rename or remove one of the two");
            diagnostics.push(it.origin.repeated(fault, first.origin.place(&first.path(), FaultTarget::Value)));
        }
        if faulty.is_empty() {
            return;
        }
        let marked = self.resources.iter_mut().filter(|it| faulty.contains(&it.origin.document_key()));
        marked.for_each(|declaration| Arc::make_mut(declaration).faulty = true);
        let marked = self.sets.values_mut().filter(|set| faulty.contains(&set.origin.document_key()));
        marked.for_each(|set| Arc::make_mut(set).faulty = true);
        let mut seen = HashSet::new();
        self.resources.retain(|it| {
            !repeating.contains(&it.origin.document_key())
                && seen.insert((it.kind, it.parent.clone(), Arc::clone(&it.name)))
        });
    }

    /// Reports IDs that two documents state, and returns the later documents. Documents with the same name, too, are
    /// reported for the name.
    fn repeated_ids(&self, faulty: &mut HashSet<DocumentKey>, found: &mut Vec<Diagnostic>) -> HashSet<DocumentKey> {
        let mut first: HashMap<(&'static str, Option<&str>, &str), &DeclaredName> = HashMap::new();
        let mut repeating = HashSet::new();
        for (id, it) in &self.ids {
            let earlier = *first.entry((it.kind, it.parent.as_deref(), id.as_str())).or_insert(it);
            if ptr::eq(earlier, it) {
                continue;
            }
            faulty.extend([it.origin.document_key(), earlier.origin.document_key()]);
            repeating.insert(it.origin.document_key());
            if it.name == earlier.name {
                continue;
            }
            let path = Path::from(["metadata", "id"]);
            let earlier_place = earlier.origin.place(&path, FaultTarget::Value);
            let fault =
                Fault::new(Code::DuplicateName, format!("duplicate {} ID `{}`", it.kind, printable(id))).at(path);
            let fault = fault.help("correct one of the two IDs, or remove one of the documents");
            found.push(it.origin.repeated(fault, earlier_place));
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

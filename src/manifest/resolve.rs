//! From names to identifiers, and from declarations to the desired state.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

use super::{
    Loaded, Origin,
    declaration::{Declaration, Facts},
    identity::{Identity, Known, Wanted, choose, derived},
    kinds::MODULE_SET,
};
use crate::{
    lint::{Level, ManifestFacts, Subject},
    model::{
        Kind,
        code::Code,
        desired::Desired,
        diagnostic::Diagnostic,
        fault::{Aim, Fault, Path, nearest},
        id::Id,
        key::Key,
        kind::https_edge::HttpsEdge,
        operation::Claim,
        resource::AnyResource,
        rules,
        snapshot::{Entry, Snapshot},
    },
    text::printable,
};

/// How many names are compared with misspelt ones, in one run: each reference takes as many as there are names.
const MOST_COMPARISONS: usize = 1_000_000;

/// The desired state of one source.
#[derive(Debug, Default)]
pub struct Resolved {
    /// What the store should hold, in the order of keys.
    pub desired: BTreeMap<Key, Desired>,
    /// Where each resource is written.
    pub origins: HashMap<Key, Origin>,
    /// What only lints want to know.
    pub facts: ManifestFacts,
    /// Where each module set is written.
    pub set_origins: HashMap<String, Origin>,
    /// The levels of lints that manifests set for what they declare.
    pub levels: HashMap<Subject, BTreeMap<String, Level>>,
    /// What is wrong with names and references.
    pub diagnostics: Vec<Diagnostic>,
    /// What is not all that was meant: its document, a set that it takes, or a name in it is at fault.
    pub faulty: BTreeSet<Key>,
    /// Which resource takes over the name that another one gives up: it cannot be applied without the other.
    pub after: Vec<(Key, Key)>,
}

/// Like [`resolve`] with nothing but the files: an identifier cannot be looked up, so it is taken to be right.
pub fn resolve_offline(loaded: &Loaded, source: &str) -> Resolved {
    resolve_with(loaded, &Snapshot::default(), source, true, true)
}

/// Gives every declared resource its key and turns references by name into identifiers.
///
/// With `prune`, what the source owns and no longer declares is about to go: then its names stand for nothing.
pub fn resolve(loaded: &Loaded, snapshot: &Snapshot, source: &str, prune: bool) -> Resolved {
    resolve_with(loaded, snapshot, source, prune, false)
}

fn resolve_with(loaded: &Loaded, snapshot: &Snapshot, source: &str, prune: bool, offline: bool) -> Resolved {
    let mut resolver = Resolver {
        loaded,
        known: Known::new(snapshot, source, prune, &loaded.declared),
        ids: HashMap::new(),
        token_files: HashMap::new(),
        comparisons: Cell::new(MOST_COMPARISONS),
        offline,
        out: Resolved::default(),
    };
    let mut declarations: Vec<&Declaration> = loaded.declared.resources.iter().collect();
    // Parents come before children, and what is named comes before who names it.
    declarations.sort_by_key(|declaration| declaration.kind);
    for of_one_kind in declarations.chunk_by(|a, b| a.kind == b.kind) {
        resolver.resolve(of_one_kind);
    }
    resolver.check_pass_through();
    resolver.note_sets();
    resolver.out
}

impl Resolved {
    /// Takes out what is faulty and what depends on it, and tells what that was.
    pub fn set_aside(&mut self) -> Vec<Desired> {
        loop {
            let before = self.faulty.len();
            // Without the rename that frees its name, a resource would take the place of the one that is renamed.
            for (key, first) in &self.after {
                if self.faulty.contains(first) {
                    self.faulty.insert(key.clone());
                }
            }
            // Parents and what is named come before children and who names them, so one pass finds all dependents.
            for (key, desired) in &self.desired {
                let mut depends = key.parent_key().is_some_and(|parent| self.faulty.contains(&parent));
                desired.spec.references(&mut |reference| depends |= self.faulty.contains(&reference.target));
                if depends {
                    self.faulty.insert(key.clone());
                }
            }
            if self.faulty.len() == before {
                break;
            }
        }
        self.faulty.iter().filter_map(|key| self.desired.remove(key)).collect()
    }

    /// Where a subject of a lint is written.
    pub fn origin(&self, subject: &Subject) -> Option<&Origin> {
        match subject {
            Subject::Resource(key) => self.origins.get(key),
            Subject::ModuleSet(name) => self.set_origins.get(name),
        }
    }
}

struct Resolver<'a> {
    loaded: &'a Loaded,
    known: Known<'a>,
    /// The ids of declared resources that stand by themselves.
    ids: HashMap<(Kind, &'a str), Id>,
    /// Who writes a token where.
    token_files: HashMap<PathBuf, (&'a Declaration, Key)>,
    /// How many names may still be compared.
    comparisons: Cell<usize>,
    /// Whether there is no store to ask.
    offline: bool,
    out: Resolved,
}

impl<'a> Resolver<'a> {
    /// Resolves the declarations of one kind. Their ids are chosen together: one may take over the name of another.
    fn resolve(&mut self, declarations: &[&'a Declaration]) {
        let wanted: Vec<Wanted<'a>> = declarations.iter().copied().filter_map(|it| self.read(it)).collect();
        let identities = choose(&self.known, &wanted);
        let keys: Vec<Key> = wanted.iter().zip(&identities).map(|(it, identity)| it.key(identity.id.clone())).collect();
        for ((it, identity), key) in wanted.into_iter().zip(identities).zip(&keys) {
            if let Some(first) = identity.after.and_then(|first| keys.get(first)) {
                self.out.after.push((key.clone(), first.clone()));
            }
            self.settle(it, identity, key.clone());
        }
    }

    /// A declaration with its parent's id and everything that its Spec takes from elsewhere.
    fn read(&mut self, declaration: &'a Declaration) -> Option<Wanted<'a>> {
        let parent = match &declaration.parent {
            None => None,
            Some((name, path)) => Some(self.parent(declaration, name, path)?),
        };
        let found = self.out.diagnostics.len();
        let sets = &self.loaded.declared.sets;
        let mut faulty =
            declaration.faulty || declaration.modules_from.iter().any(|set| sets.get(set).is_none_or(|set| set.faulty));
        let spec = self.with_module_sets(declaration);
        let spec = self.with_ids(declaration, spec, &mut faulty);
        let faulty = faulty || self.out.diagnostics.len() > found;
        let wanted = Wanted::new(declaration, parent, spec, faulty);
        wanted.map_err(|error| self.out.diagnostics.push(error.into())).ok()
    }

    fn settle(&mut self, wanted: Wanted<'a>, identity: Identity, key: Key) {
        let Wanted { declaration, spec, faulty, .. } = wanted;
        let found = self.out.diagnostics.len();
        self.out.diagnostics.extend(identity.fault);
        self.check_owner(declaration, &key);
        if declaration.parent.is_none() {
            self.ids.insert((declaration.kind, &declaration.name), key.id.clone());
        }
        let claim = Claim {
            source: self.known.source.to_owned(),
            name: declaration.name.clone(),
            prevent_destroy: declaration.prevent_destroy,
            renamed_from: identity.renamed_from,
        };
        if let Some(file) = &declaration.token_file
            && let Some((other, other_key)) = self.token_files.insert(file.clone(), (declaration, key.clone()))
        {
            let path = Path::root().join("token_file");
            let fault =
                Fault::new(Code::DuplicateName, "two API keys have the same `token_file`, and one token would be lost");
            let mut diagnostic = declaration.origin.diagnostic(fault.at(path.clone()).help("name another file"));
            diagnostic.related.push((other.origin.place(&path, Aim::Value), "first here".into()));
            self.out.diagnostics.push(diagnostic);
            self.out.faulty.insert(other_key);
        }
        let desired = Desired { key: key.clone(), spec, claim, token_file: declaration.token_file.clone() };
        self.note_facts(Subject::Resource(key.clone()), &declaration.facts);
        if let Some(first) = self.out.origins.insert(key.clone(), declaration.origin.clone()) {
            let fault = Fault::new(Code::DuplicateName, format!("{key} is declared twice"));
            let mut diagnostic = declaration.origin.diagnostic(fault.help("rename or remove one of the two"));
            diagnostic.related.push((first.place(&Path::root(), Aim::Value), "first here".into()));
            self.out.diagnostics.push(diagnostic);
        }
        if faulty || self.out.diagnostics.len() > found {
            self.out.faulty.insert(key.clone());
        }
        self.out.desired.insert(key, desired);
    }

    /// The id of the edge or subscription that a declaration is part of.
    fn parent(&mut self, declaration: &Declaration, name: &str, path: &Path) -> Option<Id> {
        let kind = declaration.kind.info().parent?;
        if kind == Kind::EventSubscription {
            // Subscriptions are owned elsewhere: without an id of theirs, one is derived from the name.
            return Some(if name.contains('_') { Id::new(name) } else { derived(kind, None, name, &[], 0) });
        }
        let found = self.find(kind, name);
        if found.is_none() && !self.loaded.declared.knows(kind.info().name, name) {
            let fault = self.unknown(kind, name).at(path.clone());
            // The path of a parent is relative to the document.
            self.out.diagnostics.push(declaration.head.diagnostic(fault));
        }
        found
    }

    /// The id behind a name or id of a kind: declared here, or owned by another source.
    fn find(&self, kind: Kind, name: &str) -> Option<Id> {
        if name.contains('_') {
            let key = Key::new(kind, Id::new(name));
            let known = self.offline || self.known.snapshot.get(&key).is_some() || self.out.desired.contains_key(&key);
            return known.then_some(key.id);
        }
        self.ids.get(&(kind, name)).cloned().or_else(|| self.in_store(kind, name))
    }

    /// What a source calls by a name in the store. What this one owns and no longer declares may be about to go, and what
    /// it declares under another name has given this one up.
    fn in_store(&self, kind: Kind, name: &str) -> Option<Id> {
        let entry: &Entry = self.known.named(kind, None, name).first()?;
        let goes = self.known.prune && entry.is_owned_by(self.known.source);
        (!goes && !self.out.desired.contains_key(&entry.key)).then(|| entry.key.id.clone())
    }

    fn unknown(&self, kind: Kind, name: &str) -> Fault {
        let info = kind.info();
        let fault = Fault::new(Code::UnknownReference, format!("there is no {} `{}`", info.name, printable(name)));
        match self.near(name, info.name) {
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None => fault.help(format!("declare it, or name an existing one by its id (`{}…`)", info.prefix)),
        }
    }

    /// The declared name that is most like a misspelt one.
    fn near(&self, name: &str, kind: &'static str) -> Option<&'a str> {
        let left = self.comparisons.get().checked_sub(self.loaded.declared.names())?;
        self.comparisons.set(left);
        nearest(name, self.loaded.declared.names_of(kind))
    }

    /// The Spec with the modules of its sets: later sets win over earlier ones, the route's own over all.
    fn with_module_sets(&mut self, declaration: &Declaration) -> Arc<dyn AnyResource> {
        let mut spec = Arc::clone(&declaration.spec);
        for (index, name) in declaration.modules_from.iter().enumerate().rev() {
            let Some(set) = self.loaded.declared.sets.get(name) else {
                if !self.loaded.declared.knows(MODULE_SET, name) {
                    let fault =
                        Fault::new(Code::UnknownReference, format!("there is no {MODULE_SET} `{}`", printable(name)));
                    let fault = match self.near(name, MODULE_SET) {
                        Some(near) => fault.help(format!("did you mean `{near}`?")),
                        None => fault.help("declare it in a manifest of this source"),
                    };
                    let path = Path::root().join("modules_from").join(index);
                    self.out.diagnostics.push(declaration.origin.diagnostic(fault.at(path)));
                }
                continue;
            };
            for (slot, module) in &set.modules {
                if spec.module(slot).is_none() {
                    spec = spec.with_module(slot, Some(module.as_ref()));
                }
            }
        }
        spec
    }

    /// The Spec with identifiers where the manifest wrote names.
    fn with_ids(
        &mut self,
        declaration: &Declaration,
        spec: Arc<dyn AnyResource>,
        faulty: &mut bool,
    ) -> Arc<dyn AnyResource> {
        let mut resolved = Arc::clone(&spec);
        for slot in declaration.kind.info().slots {
            let Some(module) = spec.module(slot) else { continue };
            let mut references = Vec::new();
            module.references(&mut |reference| references.push(reference));
            if references.is_empty() {
                continue;
            }
            let targets: Vec<Id> = references
                .into_iter()
                .map(|reference| {
                    let (kind, name) = (reference.target.kind, reference.target.id.as_str());
                    self.find(kind, name).unwrap_or_else(|| {
                        *faulty = true;
                        if !self.loaded.declared.knows(kind.info().name, name) {
                            let path = reference.path.under(&Path::root().join(slot.name));
                            self.out.diagnostics.push(declaration.origin.diagnostic(self.unknown(kind, name).at(path)));
                        }
                        reference.target.id.clone()
                    })
                })
                .collect();
            resolved = resolved.with_module(slot, Some(module.with_references(&targets).as_ref()));
        }
        resolved
    }

    fn note_facts(&mut self, subject: Subject, facts: &Facts) {
        let of = |path: &Path| (subject.clone(), path.clone());
        self.out.facts.plain_secrets.extend(facts.plain_secrets.iter().map(of));
        self.out.facts.labels.extend(facts.labels.iter().map(|label| (subject.clone(), label.clone())));
        if !facts.levels.is_empty() {
            self.out.levels.insert(subject, facts.levels.clone());
        }
    }

    fn note_sets(&mut self) {
        let taken: HashSet<&String> = self.loaded.declared.resources.iter().flat_map(|it| &it.modules_from).collect();
        for (name, set) in &self.loaded.declared.sets {
            self.out.set_origins.insert(name.clone(), set.origin.clone());
            self.note_facts(Subject::ModuleSet(name.clone()), &set.facts);
            if !taken.contains(name) {
                self.out.facts.unused_module_sets.push(name.clone());
            }
        }
    }

    /// Two sources must not own one resource.
    fn check_owner(&mut self, declaration: &Declaration, key: &Key) {
        let owner = self.known.snapshot.get(key).and_then(|entry| entry.claim.as_ref());
        if let Some(claim) = owner.filter(|claim| claim.source != self.known.source) {
            let fault = Fault::new(
                Code::OwnerConflict,
                format!(
                    "{key} is owned by the source `{}`, where it is called `{}`",
                    printable(&claim.source),
                    printable(&claim.name)
                ),
            );
            let fault = fault.help(format!(
                "let one source own it: remove it from one of the two, or run with `--source {}` if these are its manifests",
                claim.source
            ));
            let path = Path::root().join("metadata").join(if declaration.id.is_some() { "id" } else { "name" });
            let diagnostic = match declaration.is_inside_of_parent() {
                true => declaration.origin.diagnostic(fault),
                false => declaration.head.diagnostic(fault.at(path)),
            };
            self.out.diagnostics.push(diagnostic);
        }
    }

    /// Edges that pass TLS through, with all of their routes: the rule spans documents (D15).
    fn check_pass_through(&mut self) {
        for (key, desired) in &self.out.desired {
            let Some(origin) = self.out.origins.get(key) else { continue };
            let mut report = |fault: Fault| {
                let place = origin.place(&fault.path, fault.aim);
                self.out.faulty.insert(key.clone());
                self.out.diagnostics.push(Diagnostic::from_fault(fault, place));
            };
            if let Some(edge) = desired.spec.as_any().downcast_ref::<HttpsEdge>() {
                rules::unreadable_edge_modules(edge).into_iter().map(|(_, fault)| fault).for_each(&mut report);
            }
            let Some(parent) = key.parent_key() else { continue };
            let parent = match self.out.desired.get(&parent) {
                Some(parent) => Some(&parent.spec),
                None => self.known.snapshot.get(&parent).map(|entry| &entry.spec),
            };
            if let Some(edge) = parent.and_then(|spec| spec.as_any().downcast_ref::<HttpsEdge>()) {
                rules::unreadable_modules(edge, desired.spec.as_ref()).into_iter().for_each(&mut report);
            }
        }
    }
}

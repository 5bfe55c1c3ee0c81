//! Resolves the declarations of a source from scratch, kind by kind.

use foldhash::{HashMap, HashMapExt as _, HashSet};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::identity::{DeclaredResource, IdentityChange, StoreNames, choose};
use super::options::ResolveOptions;
use super::origin::DocumentKey;
use super::resolution::Resolution;
use super::scope::{MissingTarget, NameScope};
use super::transfer::{self, TransferState};
use super::unknown_values;
use crate::manifest::load::declaration::Declaration;
use crate::manifest::load::kinds::MODULE_SET;
use crate::manifest::loader::Loaded;
use crate::manifest::prelude::*;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::required_secrets::required_secrets;
use crate::model::{Cause, Entry, Path, Suggestions};
use crate::tenancy::delegation::has_routes_elsewhere;

/// The most places that the diagnostic of an unknown name lists in addition to the first.
const MOST_PLACES: usize = 10;

/// Like [`resolve`], but without a store: identifiers cannot be looked up, and those with the prefix of their kind are
/// assumed to exist. `surrounding` has the resources of the surrounding manifests.
pub(crate) fn resolve_offline(loaded: &Loaded, surrounding: &Snapshot, source: &str) -> Resolution {
    let mut known = StoreNames::new(surrounding, ResolveOptions { source, prune: true, recreate_ids: true }, loaded);
    known.offline = true;
    resolve_known(known)
}

/// Like [`resolve_offline`], for the manifests that surround those of `source`.
pub(super) fn resolve_beside(surrounding: &Loaded, others: &Snapshot, source: &str) -> Resolution {
    let options = ResolveOptions { source: SURROUNDING_OWNER, prune: true, recreate_ids: true };
    let mut known = StoreNames::new(others, options, surrounding);
    (known.offline, known.beside) = (true, Some(source));
    resolve_known(known)
}

/// Assigns every declared resource its key and resolves references by name to identifiers.
pub(crate) fn resolve(loaded: &Loaded, snapshot: &Snapshot, options: ResolveOptions<'_>) -> Resolution {
    resolve_known(StoreNames::new(snapshot, options, loaded))
}

fn resolve_known(known: StoreNames<'_>) -> Resolution {
    let (loaded, snapshot, source) = (known.loaded, known.snapshot, known.source);
    let mut resolver = Resolver {
        known,
        ids: HashMap::new(),
        token_files: HashMap::new(),
        suggestions: Suggestions::default(),
        unknown_names: HashMap::new(),
        required: HashMap::new(),
        left: HashMap::new(),
        warned: HashSet::default(),
        out: Resolution::default(),
    };
    for declarations in by_kind(&loaded.declared().resources).values() {
        resolver.resolve(declarations);
    }
    resolver.note_sets();
    unknown_values::fill_from_store(&loaded.unknown_values, snapshot, &mut resolver.out);
    resolver.check_edges();
    resolver.count_unknown();
    resolver.warn_about_kept();
    let mut resolved = resolver.out;
    resolved.others = Arc::new(others(snapshot, source, &resolved.desired));
    resolved.is_self_contained = is_self_contained(&resolved);
    resolved
}

/// Declarations by kind: parents come before children, and referenced kinds before the kinds that reference them. Those of
/// one kind are in the order of files and lines.
fn by_kind(declarations: &[Arc<Declaration>]) -> BTreeMap<Kind, Vec<&Arc<Declaration>>> {
    let mut by_kind: BTreeMap<Kind, Vec<&Arc<Declaration>>> = BTreeMap::new();
    for declaration in declarations {
        by_kind.entry(declaration.kind).or_default().push(declaration);
    }
    let in_order = |one: &&Arc<Declaration>, other: &&Arc<Declaration>| {
        one.origin.file.source.name.cmp(&other.origin.file.source.name)
    };
    by_kind.values_mut().for_each(|of_kind| of_kind.sort_by(in_order));
    by_kind
}

/// The resources of other sources, and the routes without a source on edges that one owns or will own.
fn others(snapshot: &Snapshot, source: &str, desired: &BTreeMap<Key, Desired>) -> Vec<Arc<Entry>> {
    let is_owned =
        |edge: &Key| snapshot.get(edge).is_some_and(|edge| edge.claim.is_some()) || desired.contains_key(edge);
    let is_other = |entry: &&Arc<Entry>| {
        let counts = match entry.claim.as_deref() {
            Some(claim) => claim.source != source,
            None => entry.key.kind == Kind::HttpsEdgeRoute && entry.key.parent_key().as_ref().is_some_and(is_owned),
        };
        counts && !desired.contains_key(&entry.key)
    };
    snapshot.iter().filter(is_other).cloned().collect()
}

fn is_self_contained(resolved: &Resolution) -> bool {
    let mut edges = resolved.desired.values().filter_map(|it| it.spec_as::<HttpsEdge>());
    !edges.any(|edge| edge.required_modules.is_some()) && !has_routes_elsewhere(&resolved.desired)
}

/// The state of resolving the declarations of a source.
pub(super) struct Resolver<'a> {
    pub known: StoreNames<'a>,
    /// The ids of declared resources without a parent.
    pub ids: HashMap<(Kind, &'a str), Id>,
    /// The API key of each token file.
    token_files: HashMap<PathBuf, (&'a Declaration, Key)>,
    /// For unknown names: each is compared with every name.
    suggestions: Suggestions,
    /// The diagnostic of each unknown name, by its index, and the number of references.
    unknown_names: HashMap<(&'static str, String), (usize, usize)>,
    /// The modules that declared edges require of their routes.
    required: HashMap<Id, Arc<HttpsEdgeRoute>>,
    /// The resources that are left to other sources.
    pub left: HashMap<Key, TransferState<'a>>,
    /// The documents with a warning about a transfer.
    pub warned: HashSet<DocumentKey>,
    pub out: Resolution,
}

impl<'a> Resolver<'a> {
    /// Resolves the declarations of one kind. Their ids are chosen together, because one may take over another's name.
    fn resolve(&mut self, declarations: &[&'a Arc<Declaration>]) {
        let mut wanted = self.read(declarations);
        let mut specials = choose(&self.known, &mut wanted);
        let snapshot = self.known.snapshot;
        let key = |index: usize| wanted.get(index).map(|it| it.key.clone());
        let mut position = 0;
        for (index, it) in wanted.iter().enumerate() {
            yield_to_requests();
            let special = specials.remove(&index).unwrap_or_default();
            // A resource that is to be replaced decides whose turn it is.
            let held = special.replaces.as_ref();
            let entry = held.and_then(|key| snapshot.get(key)).or(it.entry);
            let state = self.transfer_state(it.declaration, &it.key, entry);
            if let TransferState::Waiting(_) | TransferState::HandedOver(_) | TransferState::Returned(_) = state {
                self.leave(it.declaration, held.unwrap_or(&it.key), state, special.fault);
                continue;
            }
            if let Some(first) = special.after.and_then(key) {
                self.out.after.push((it.key.clone(), first));
            }
            self.out.faulty.extend(special.rival.and_then(key));
            self.add_resource(it, special, entry.and_then(|entry| entry.claim.as_deref()), position);
            position += 1;
        }
    }

    /// Reads the declarations of one kind on all cores, and reports what they lack.
    fn read(&mut self, declarations: &[&'a Arc<Declaration>]) -> Vec<DeclaredResource<'a>> {
        let desired = &self.out.desired;
        let is_desired = |key: &Key| desired.contains_key(key);
        let names = NameScope {
            sets: self.known.loaded.usable_sets(),
            known: &self.known,
            ids: &self.ids,
            is_desired: &is_desired,
            required: &self.required,
        };
        let read = declarations.par_iter().with_min_len(256).map(|it| {
            yield_to_requests();
            names.read(it)
        });
        let read: Vec<_> = read.collect();
        let wanted = read.into_iter().filter_map(|(wanted, missing, error)| {
            missing.iter().for_each(|missing| self.unknown(missing));
            self.out.diagnostics.extend(error.map(Diagnostic::from));
            wanted
        });
        wanted.collect()
    }

    /// Adds a declared resource that is applied. `claim` is the one on the resource in the store, or on the one that it
    /// replaces.
    fn add_resource(
        &mut self,
        wanted: &DeclaredResource<'a>,
        special: IdentityChange,
        claim: Option<&'a Claim>,
        position: u32,
    ) {
        let (declaration, key, source) = (wanted.declaration, &wanted.key, self.known.source);
        let IdentityChange { renamed_from, fault, replaces, .. } = special;
        let found = self.out.diagnostics.len();
        self.out.diagnostics.extend(fault);
        self.check_owner(declaration, replaces.as_ref().unwrap_or(key), claim);
        if declaration.parent.is_none() {
            self.ids.insert((declaration.kind, &declaration.name), key.id.clone());
        }
        self.check_token_file(declaration, key);
        declaration.note_facts(key, &mut self.out.facts);
        self.out.has_renames |= declaration.renamed_from.is_some();
        if let Some(first) = self.out.origins.insert(key.clone(), Arc::clone(declaration)) {
            let fault = Fault::new(Code::DuplicateName, format!("duplicate declaration of {key}"));
            let first = first.origin.place(&Path::root(), FaultTarget::Value);
            let fault = fault.help("rename or remove one of the two");
            self.out.diagnostics.push(declaration.origin.repeated(fault, first));
        }
        if wanted.faulty || self.out.diagnostics.len() > found {
            self.out.faulty.insert(key.clone());
        }
        let edge = wanted.spec.as_any().downcast_ref::<HttpsEdge>();
        if let Some(required) = edge.and_then(|edge| edge.required_modules.as_ref()) {
            self.required.insert(key.id.clone(), Arc::clone(required));
        }
        let is_moved = |claim: &Claim| claim.source != source || claim.is_promised();
        let replaces = replaces.filter(|_| claim.is_some_and(is_moved));
        let required_secrets = self.required_secrets(wanted);
        let claim = Claim { required_secrets, ..transfer::claim(declaration, source, claim, renamed_from) };
        let claim = Arc::new(claim);
        let (spec, token_file) = (Arc::clone(&wanted.spec), declaration.token_file.clone());
        let desired = Desired { key: key.clone(), spec, claim, position, token_file, replaces };
        self.out.desired.insert(key.clone(), desired);
    }

    /// The record of the secrets of a route on an edge that another source has.
    fn required_secrets(&self, wanted: &DeclaredResource<'_>) -> Option<Arc<BTreeMap<String, String>>> {
        let edge = wanted.key.parent_key().filter(|edge| !self.out.desired.contains_key(edge))?;
        let edge = self.known.snapshot.get(&edge).filter(|edge| !edge.is_owned_by(self.known.source))?;
        required_secrets(edge, wanted.spec.as_ref())
    }

    /// Reports an API key whose token would go to the file of another one.
    fn check_token_file(&mut self, declaration: &'a Declaration, key: &Key) {
        if let Some(file) = &declaration.token_file
            && let Some((other, other_key)) = self.token_files.insert(file.clone(), (declaration, key.clone()))
        {
            let message = "duplicate `token_file`: two API keys would write to the same file";
            let fault = Fault::new(Code::DuplicateName, message).at("token_file").help("use another file");
            let first = other.origin.place(&"token_file".into(), FaultTarget::Value);
            self.out.diagnostics.push(declaration.origin.repeated(fault, first));
            self.out.faulty.insert(other_key);
        }
    }

    /// Reports a reference to an unknown name, unless a faulty document declares it. Each name is reported once, with
    /// further references as related places: they have one cause.
    fn unknown(&mut self, missing: &MissingTarget) {
        let MissingTarget { kind, prefix, name, origin, path, fault } = missing;
        if let Some(fault) = fault {
            self.out.diagnostics.push(origin.diagnostic(fault.clone().at(path.clone())));
            return;
        }
        let (own, surrounding) = (self.known.loaded.declared(), self.known.loaded.surrounding());
        if own.knows(kind, name) {
            return;
        }
        let is_surrounding = surrounding.knows(kind, name);
        // A file that could not be read may declare the name.
        if (is_surrounding || self.known.loaded.lacks_surrounding) && (self.known.offline || *kind == MODULE_SET) {
            return;
        }
        let index = self.out.diagnostics.len();
        let (first, count) = self.unknown_names.entry((*kind, name.clone())).or_insert((index, 0));
        *count += 1;
        let (first, count) = (*first, *count);
        if count > 1 {
            let related = self.out.diagnostics.get_mut(first).filter(|_| count - 1 <= MOST_PLACES);
            if let Some(diagnostic) = related {
                diagnostic.relate([(origin.place(path, FaultTarget::Value), "also here".to_owned())]);
            }
            return;
        }
        let fault = Fault::new(Code::UnknownReference, format!("unknown {kind} `{}`", printable(name)));
        let names = own.names_of(kind).chain(surrounding.names_of(kind));
        let fault = match self.suggestions.nearest(name, names) {
            _ if is_surrounding => fault.help("apply the surrounding manifests first: the store does not have it yet"),
            _ if self.owns(kind, name) => fault.help(format!(
                "source `{}` already has it: plan all of its manifests together, or declare it again",
                printable(self.known.source)
            )),
            Some(near) => fault.help(format!("did you mean `{near}`?")),
            None if prefix.is_empty() => {
                fault.help("declare it in a manifest of this source, or add its folder with --with")
            }
            None if self.known.offline => fault.help(format!(
                "declare it, use its ID (`{prefix}…`), or add --server or --with FOLDER if another source declares it"
            )),
            None => fault.help(format!("declare it, or use the ID of an existing one (`{prefix}…`)")),
        };
        let cause = (*kind == MODULE_SET).then_some(Cause::UnknownModuleSet);
        self.out.diagnostics.push(Diagnostic { cause, ..origin.diagnostic(fault.at(path.clone())) });
    }

    /// Whether the store has a resource of the source with a name, without a parent.
    fn owns(&self, kind: &str, name: &str) -> bool {
        let kind = Kind::all().find(|info| info.name == kind).map(|info| info.kind);
        let named = kind.and_then(|kind| self.known.named(kind, None, name).first());
        named.is_some_and(|entry| entry.is_owned_by(self.known.source))
    }

    /// Adds the number of references to the diagnostics of unknown names.
    fn count_unknown(&mut self) {
        for (index, count) in self.unknown_names.values().filter(|(_, count)| *count > 1) {
            if let Some(diagnostic) = self.out.diagnostics.get_mut(*index) {
                diagnostic.message += &format!(" (in {count} places)");
            }
        }
    }

    fn note_sets(&mut self) {
        for (name, set) in &self.known.loaded.declared().sets {
            set.facts.note(|| Subject::ModuleSet(name.clone()), &mut self.out.facts);
        }
        self.out.facts.unused_module_sets = self.known.loaded.unused_sets();
        self.out.sets = self.known.loaded.usable_sets().clone();
        for name in self.known.loaded.ambiguous_sets() {
            let message = format!("in the surrounding manifests: duplicate {MODULE_SET} `{}`", printable(name));
            let fault = Fault::new(Code::DuplicateName, message).at(["metadata", "name"]);
            let fault = fault.help("pass only one of the two to --with");
            self.out.diagnostics.extend(self.out.sets.get(name).map(|set| set.origin.document().diagnostic(fault)));
        }
    }
}

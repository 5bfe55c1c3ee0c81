//! Resolves a source again after a change that keeps all names: only what the change concerns is resolved, and everything
//! else is as it was (D74). Any other change is resolved from scratch.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use super::{
    Loaded,
    declaration::{Declaration, ModuleSet, Origins},
    identity::{Known, fixed_content},
    known_names::KnownNames,
    resolve::{ResolveOptions, Resolved},
};
use crate::{
    lint::{ManifestFacts, Subject},
    model::{
        Kind,
        desired::Desired,
        diagnostic::Severity,
        id::Id,
        key::Key,
        kind::https_edge::HttpsEdge,
        module::Slot,
        operation::Claim,
        reference::Reference,
        resource::AnyResource,
        rules,
        snapshot::{Entry, Snapshot},
    },
    tenancy,
};

/// A source as it was last resolved without a fault.
#[derive(Debug)]
pub(crate) struct LastResolved {
    /// The manifests.
    pub loaded: Arc<Loaded>,
    /// The state on which it was resolved.
    pub snapshot: Snapshot,
    /// The desired resources.
    pub desired: Arc<BTreeMap<Key, Desired>>,
    /// The declaration of each resource.
    pub origins: Arc<Origins>,
    /// Facts for the lints.
    pub facts: ManifestFacts,
    /// The resources that may differ from those in `snapshot`: all others are as desired.
    pub pending: BTreeSet<Key>,
    /// The number of the lint findings about it.
    pub findings: u64,
    /// What stays the same as long as all names do.
    pub lasting: Lasting,
}

/// What is known about a source as long as it keeps all names, and other sources change nothing. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Lasting {
    /// The resources of other sources.
    pub others: Arc<Vec<Arc<Entry>>>,
    /// The resources of each file, in the order of their declarations.
    keys: Arc<OnceLock<Vec<Box<[Key]>>>>,
    /// Whether the source has routes on edges of others, or edges that require modules.
    has_ties: Arc<OnceLock<bool>>,
}

impl Lasting {
    /// Of a source that was resolved from scratch.
    pub(crate) fn new(others: Arc<Vec<Arc<Entry>>>) -> Self {
        Self { others, keys: Arc::default(), has_ties: Arc::default() }
    }
}

/// What a change concerns.
pub(crate) struct Concerned {
    /// The resources to replace, and their declarations.
    resources: Vec<(Desired, Arc<Declaration>)>,
    sets: BTreeMap<String, Arc<ModuleSet>>,
    /// The module sets in changed files.
    read_again: Vec<String>,
    /// Whether a resource takes other module sets than before.
    uses_change: bool,
    /// The resources that may differ from those in the store.
    pub may_differ: BTreeSet<Key>,
    /// The resources about which lints may find something else than before.
    judged_again: BTreeSet<Key>,
}

impl Concerned {
    /// The resources about which lints may find something else than before. None if that may be any: they can all use the
    /// module sets that were read again.
    pub(crate) fn judged_again(&self) -> Option<BTreeSet<Key>> {
        self.read_again.is_empty().then(|| self.judged_again.clone())
    }
}

impl LastResolved {
    /// Returns what a change of manifests or of the store concerns. None if names may have changed, or if there is a
    /// fault to report.
    pub(crate) fn concerned(
        &self,
        loaded: &Loaded,
        snapshot: &Snapshot,
        source: &str,
        prune: bool,
    ) -> Option<Concerned> {
        // What a context lacks is told only by a run from scratch.
        if !loaded.has_shape_of(&self.loaded) || loaded.files.iter().any(|file| file.is_context()) {
            return None;
        }
        // Routes on edges of others depend on these edges, too. All routes of an edge that requires modules would have to
        // be resolved again.
        if self.has_ties() {
            return None;
        }
        let mut may_differ = self.touched(snapshot, source)?;
        may_differ.extend(self.pending.iter().cloned());
        let mut declared_again: HashMap<&Key, &Arc<Declaration>> = HashMap::new();
        let (mut changed_sets, mut read_again) = (HashSet::new(), Vec::new());
        let files = loaded.files.iter().zip(self.keys());
        let reads = loaded.reads.iter().zip(&self.loaded.reads).zip(files);
        for ((read, earlier), (file, keys)) in reads.filter(|((read, earlier), _)| !Arc::ptr_eq(read, earlier)) {
            if read.diagnostics.iter().any(|it| it.severity == Severity::Error) {
                return None;
            }
            // A file of the context has resources of others.
            if keys.len() != read.declared.resources.len() && !file.is_context() {
                return None;
            }
            declared_again.extend(keys.iter().zip(&read.declared.resources));
            for (name, set) in &read.declared.sets {
                read_again.push(name.clone());
                if !earlier.declared.sets.get(name).is_some_and(|earlier| earlier.has_same_modules(set)) {
                    changed_sets.insert(name.as_str());
                }
            }
        }
        let mut concerned: Vec<(&Key, &Arc<Declaration>)> = Vec::with_capacity(declared_again.len());
        if !changed_sets.is_empty() {
            let takes = |it: &Declaration| it.modules_from.iter().any(|set| changed_sets.contains(set.as_str()));
            let taking = self.origins.iter().filter(|(key, it)| takes(it) && !declared_again.contains_key(key));
            concerned.extend(taking);
        }
        concerned.extend(declared_again);
        let sets = loaded.sets();
        let options = ResolveOptions { source, prune, recreate_ids: true };
        let (known, ids) = (Known::new(snapshot, options, loaded), self.ids(&concerned, &sets));
        let (required, desired) = (HashMap::default(), &*self.desired);
        let is_desired = |key: &Key| desired.contains_key(key);
        let names = KnownNames {
            sets: &sets,
            known: &known,
            ids: &ids,
            is_desired: &is_desired,
            required: &required,
            has_turns: false,
        };
        let (mut resources, mut judged_again, mut uses_change) = (Vec::new(), BTreeSet::new(), false);
        for (key, declaration) in concerned {
            if requires_modules(declaration) {
                return None;
            }
            let earlier = self.origins.declaration(key)?;
            let has_same_sets = declaration.modules_from == earlier.modules_from;
            uses_change |= !has_same_sets;
            let mut missing = Vec::new();
            let spec = names.spec(declaration, None, &mut missing);
            if !missing.is_empty() {
                return None;
            }
            let before = self.desired.get(key)?;
            // Most resources in a changed file are the same. Lints also look at a repetition of module sets. A module that moves
            // between a resource and its set leaves the Spec as it is, but the levels of its findings are those of the set.
            let is_same = has_same_sets && before.spec.same(spec.as_ref());
            if !is_same || declaration.facts.levels != earlier.facts.levels || !has_same_slots(declaration, earlier) {
                judged_again.insert(key.clone());
            }
            let spec = if is_same { Arc::clone(&before.spec) } else { spec };
            let desired = again(before, declaration, spec)?;
            may_differ.insert(key.clone());
            resources.push((desired, Arc::clone(declaration)));
        }
        let is_free = self.pass_tls_well(&resources, snapshot)
            && self.concerns_nobody_else(&resources, &may_differ, snapshot, source);
        is_free.then_some(Concerned { resources, sets, read_again, uses_change, may_differ, judged_again })
    }

    /// Makes what the next change needs and what is as large as the source, so that the change does not wait for it.
    pub(crate) fn prepare(&self) {
        if !self.has_ties() {
            self.keys();
        }
    }

    /// Whether resources depend on edges of others, or on what their edge requires (D103).
    fn has_ties(&self) -> bool {
        let requires_any = || self.origins.iter().any(|(_, declaration)| requires_modules(declaration));
        *self
            .lasting
            .has_ties
            .get_or_init(|| tenancy::delegation::has_routes_elsewhere(&self.desired) || requires_any())
    }

    /// The resources of each file, in the order of their declarations. None are known of a declaration that is not that of
    /// a resource.
    fn keys(&self) -> &[Box<[Key]>] {
        self.lasting.keys.get_or_init(|| {
            let of: HashMap<*const Declaration, &Key> =
                self.origins.iter().map(|(key, declaration)| (Arc::as_ptr(declaration), key)).collect();
            let key = |declaration: &Arc<Declaration>| of.get(&Arc::as_ptr(declaration)).map(|key| (*key).clone());
            let reads = self.loaded.reads.iter();
            reads.map(|read| read.declared.resources.iter().map_while(key).collect()).collect()
        })
    }

    /// The source with a change, and the manifests before it. Freeing these takes a while.
    pub(crate) fn resolved(self, concerned: Concerned) -> (Resolved, Arc<Loaded>) {
        let Concerned { resources, sets, read_again, uses_change, .. } = concerned;
        let (mut desired, mut origins) = (Arc::unwrap_or_clone(self.desired), Arc::unwrap_or_clone(self.origins));
        let mut facts = self.facts;
        let of_resources = resources.iter().map(|(desired, _)| Subject::Resource(desired.key.clone()));
        facts.forget(&of_resources.chain(read_again.iter().cloned().map(Subject::ModuleSet)).collect());
        for name in read_again {
            if let Some(set) = sets.get(&name).filter(|set| !set.is_context()) {
                set.facts.note(|| Subject::ModuleSet(name.clone()), &mut facts);
            }
        }
        for (wanted, declaration) in resources {
            declaration.note_facts(&wanted.key, &mut facts);
            origins.insert(wanted.key.clone(), declaration);
            desired.insert(wanted.key.clone(), wanted);
        }
        if uses_change {
            let taken: HashSet<&String> = origins.iter().flat_map(|(_, it)| &it.modules_from).collect();
            let has_routes = origins.iter().any(|(key, _)| key.kind == Kind::HttpsEdgeRoute);
            let unused = sets.iter().filter(|(name, set)| has_routes && !taken.contains(name) && !set.is_context());
            facts.unused_module_sets = unused.map(|(name, _)| name.clone()).collect();
        }
        (Resolved { desired, origins, sets, facts, ..Resolved::default() }, self.loaded)
    }

    /// The resources that the store has changed since, if that cannot change the identity of any resource.
    fn touched(&self, snapshot: &Snapshot, source: &str) -> Option<BTreeSet<Key>> {
        let is_expected = |key: &Key| match (self.desired.get(key), snapshot.get(key)) {
            (Some(wanted), Some(entry)) => entry.claim.as_deref() == Some(&wanted.claim),
            // It was pruned.
            (None, None) => self.snapshot.get(key).is_some_and(|entry| entry.is_owned_by(source)),
            _ => false,
        };
        snapshot.changed_since(&self.snapshot).map(|key| is_expected(key).then(|| key.clone())).collect()
    }

    /// The ids of declared resources, of the kinds that the modules of some declarations and of module sets reference.
    fn ids(
        &self,
        concerned: &[(&Key, &Arc<Declaration>)],
        sets: &BTreeMap<String, Arc<ModuleSet>>,
    ) -> HashMap<(Kind, &str), Id> {
        let mut kinds: BTreeSet<Kind> = BTreeSet::new();
        let mut note = |reference: Reference| {
            kinds.insert(reference.target.kind);
        };
        for (_, declaration) in concerned {
            declaration.spec.references(&mut note);
        }
        for set in sets.values() {
            set.modules.iter().for_each(|(_, module)| module.references(&mut note));
        }
        let standing = kinds.into_iter().filter(|kind| kind.info().parent.is_none()).flat_map(|kind| {
            let first = Key::new(kind, Id::new(""));
            self.desired.range(first..).take_while(move |(key, _)| key.kind == kind)
        });
        standing.map(|(key, wanted)| ((key.kind, wanted.claim.name.as_str()), key.id.clone())).collect()
    }

    /// Whether edges consent to the same routes of others as before, and have no hostport that others had first (D103).
    fn concerns_nobody_else(
        &self,
        resources: &[(Desired, Arc<Declaration>)],
        may_differ: &BTreeSet<Key>,
        snapshot: &Snapshot,
        source: &str,
    ) -> bool {
        let consents_alike = |wanted: &Desired| {
            let earlier = self.desired.get(&wanted.key).and_then(edge_of);
            edge_of(wanted).map(|edge| &edge.delegates_to) == earlier.map(|edge| &edge.delegates_to)
        };
        // Who had a hostport first also depends on what the store has.
        let touched = may_differ.iter().filter_map(|key| self.desired.get(key));
        let edges = resources.iter().map(|(wanted, _)| wanted).chain(touched);
        resources.iter().all(|(wanted, _)| consents_alike(wanted))
            && (!tenancy::add_hostports(edges.clone(), snapshot)
                || tenancy::hostport_faults(edges, snapshot, source, &|key| self.desired.contains_key(key)).is_empty())
    }

    /// Whether no edge that passes TLS through has a module that it cannot apply (D15), itself or in a route.
    fn pass_tls_well(&self, resources: &[(Desired, Arc<Declaration>)], snapshot: &Snapshot) -> bool {
        let now: HashMap<&Key, &Arc<dyn AnyResource>> =
            resources.iter().map(|(wanted, _)| (&wanted.key, &wanted.spec)).collect();
        let spec = |key: &Key| {
            let earlier = || self.desired.get(key).map(|wanted| &wanted.spec);
            now.get(key).copied().or_else(earlier).or_else(|| snapshot.get(key).map(|entry| entry.spec()))
        };
        let fits = |edge: &HttpsEdge, route: &Key| {
            spec(route).is_none_or(|route| rules::unreadable_modules(edge, route.as_ref()).is_empty())
        };
        resources.iter().all(|(wanted, _)| {
            if let Some(edge) = wanted.spec.as_any().downcast_ref::<HttpsEdge>() {
                let first = Key { kind: Kind::HttpsEdgeRoute, parent: Some(wanted.key.id.clone()), id: Id::new("") };
                let mut routes = self
                    .desired
                    .range(&first..)
                    .take_while(|(key, _)| key.parent == first.parent && key.kind == first.kind);
                return rules::unreadable_edge_modules(edge).is_empty() && routes.all(|(key, _)| fits(edge, key));
            }
            let edge = wanted.key.parent_key().and_then(|parent| spec(&parent));
            edge.and_then(|edge| edge.as_any().downcast_ref::<HttpsEdge>()).is_none_or(|edge| fits(edge, &wanted.key))
        })
    }
}

/// Whether an edge requires modules of its routes (D103).
fn requires_modules(declaration: &Declaration) -> bool {
    declaration.kind == Kind::HttpsEdge && !declaration.modules_from.is_empty()
}

/// Whether two declarations of a resource with the same module sets have modules of their own in the same slots, so that
/// each other module comes from the same set as before.
fn has_same_slots(one: &Declaration, other: &Declaration) -> bool {
    let has_own = |it: &Declaration, slot: &Slot| it.spec.module(slot).is_some();
    one.kind.info().slots.iter().all(|slot| has_own(one, slot) == has_own(other, slot))
}

fn edge_of(wanted: &Desired) -> Option<&HttpsEdge> {
    wanted.spec.as_any().downcast_ref()
}

/// A resource as it is declared now. None if it becomes another one, because immutable content differs.
fn again(earlier: &Desired, declaration: &Declaration, spec: Arc<dyn AnyResource>) -> Option<Desired> {
    if !earlier.key.kind.info().fixed.is_empty()
        && fixed_content(earlier.spec.as_ref()).ok()? != fixed_content(spec.as_ref()).ok()?
    {
        return None;
    }
    let claim = Claim { prevent_destroy: declaration.prevent_destroy, ..Claim::clone(&earlier.claim) };
    Some(Desired { spec, claim: Arc::new(claim), ..earlier.clone() })
}

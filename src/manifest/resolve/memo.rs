//! What the last run of a followed source resolved (D74).
//!
//! # The problem
//!
//! Whoever saves one file of an estate with a hundred thousand routes waits for the change, and not for the routes.
//!
//! # The idea
//!
//! Resolving has two steps. The first one gives each declaration its key. It compares the names of all declarations with
//! those of all resources in the store, so no part of a source has it by itself. The second one makes the desired resource
//! of a declaration from these inputs alone: the declaration, its key, the module sets that it names, and the keys of what
//! it references.
//!
//! While all manifests declare the same names, and the store means the same by them, the first step gives what it gave in
//! the last run. Then the second one is done for the declarations with another input, and everything else is as it was. So
//! `description: Shop` in one file resolves the resources of that file; a module set also those that take it; and a new
//! route all of the source.
//!
//! # What it never does
//!
//! It reports nothing. With an error, a warning, a rename or another identity, it resolves nothing, and the source is
//! resolved from scratch: only that knows what to say.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::{
    ResolveOptions, Resolved,
    identity::{Known, fixed_content},
    resolve,
    scope::KnownNames,
};
use crate::{
    lint::{ManifestFacts, Subject},
    manifest::{
        Loaded,
        load::declaration::{Declaration, ModuleSet, Origins},
    },
    model::{
        Kind,
        desired::Desired,
        diagnostics::diagnostic::Severity,
        id::Id,
        key::Key,
        kind::https_edge::HttpsEdge,
        operation::Claim,
        reference::Reference,
        resource::AnyResource,
        rules,
        snapshot::{Entry, Snapshot},
    },
    tenancy,
};

/// The last run, if it found nothing to report.
#[derive(Debug, Default)]
pub(crate) struct ResolveMemo(Mutex<Option<LastResolved>>);

/// A source as a run has resolved it.
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
    /// The resources of other sources.
    pub others: Arc<Vec<Arc<Entry>>>,
    /// Whether nothing depends on edges of other sources, or on what its edge requires.
    pub is_self_contained: bool,
    /// The resources that differ from those in `snapshot`: all others are as desired.
    pub unsettled: BTreeSet<Key>,
}

/// What has other inputs than in the last run.
struct Renewal {
    /// The resources, with their declarations.
    resources: Vec<(Desired, Arc<Declaration>)>,
    /// The module sets by name.
    sets: BTreeMap<String, Arc<ModuleSet>>,
    /// The names of those in changed files.
    reread_sets: Vec<String>,
    /// Whether a resource takes other module sets than before.
    has_other_uses: bool,
    /// The resources that may differ from those in the store.
    may_differ: BTreeSet<Key>,
}

impl ResolveMemo {
    fn last(&self) -> MutexGuard<'_, Option<LastResolved>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves a source as [`resolve`] does. What is no longer needed is given to `free`, because freeing it takes a while.
    pub(crate) fn resolve(
        &self,
        loaded: &Loaded,
        snapshot: &Snapshot,
        options: ResolveOptions<'_>,
        free: impl FnOnce(LastResolved),
    ) -> Resolved {
        let mut kept = self.last();
        let renewal = kept.as_ref().and_then(|last| last.renewal(loaded, snapshot, options));
        if let Some(renewal) = renewal
            && let Some(mut last) = kept.take()
        {
            let resolved = last.renewed(renewal);
            free(last);
            return resolved;
        }
        // A run after this one may have the names of the last one again.
        resolve(loaded, snapshot, options)
    }

    /// Keeps a run for the next one.
    pub(crate) fn keep(&self, run: LastResolved) {
        *self.last() = Some(run);
    }

    /// Whether all names are as in the last run.
    #[cfg(test)]
    pub(crate) fn holds(&self, loaded: &Loaded, snapshot: &Snapshot, options: ResolveOptions<'_>) -> bool {
        self.last().as_ref().is_some_and(|last| last.renewal(loaded, snapshot, options).is_some())
    }
}

impl LastResolved {
    /// Finds what has other inputs now. None if names may mean something else, or if there is anything to report.
    fn renewal(&self, loaded: &Loaded, snapshot: &Snapshot, options: ResolveOptions<'_>) -> Option<Renewal> {
        // Only a run from scratch tells what a context lacks.
        if !self.is_self_contained
            || !loaded.has_shape_of(&self.loaded)
            || loaded.files.iter().any(|file| file.is_context())
        {
            return None;
        }
        let mut may_differ = self.touched(snapshot, options.source)?;
        may_differ.extend(self.unsettled.iter().cloned());
        let (mut former, mut changed_sets, mut reread_sets) = (HashMap::new(), HashSet::default(), Vec::new());
        for ((_, read), (_, earlier)) in loaded.changed_since(&self.loaded) {
            if read.diagnostics.iter().any(|it| it.severity == Severity::Error) {
                return None;
            }
            former.extend(earlier.declared.resources.iter().map(Arc::as_ptr).zip(&read.declared.resources));
            for (name, set) in &read.declared.sets {
                reread_sets.push(name.clone());
                if !earlier.declared.sets.get(name).is_some_and(|earlier| earlier.has_same_modules(set)) {
                    changed_sets.insert(name.as_str());
                }
            }
        }
        let concerned = self.concerned(&former, &changed_sets);
        // A declaration that is not that of a resource has no key.
        if former.len() > concerned.iter().filter(|(.., is_former)| *is_former).count() {
            return None;
        }
        let concerned: Vec<(&Key, &Arc<Declaration>)> = concerned.into_iter().map(|(key, it, _)| (key, it)).collect();
        let sets = loaded.sets();
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
        let (mut resources, mut has_other_uses) = (Vec::new(), false);
        for (key, declaration) in concerned {
            if requires_modules(declaration) {
                return None;
            }
            has_other_uses |= declaration.modules_from != self.origins.declaration(key)?.modules_from;
            let mut missing = Vec::new();
            let spec = names.spec(declaration, None, &mut missing);
            if !missing.is_empty() {
                return None;
            }
            resources.push((again(self.desired.get(key)?, declaration, spec)?, Arc::clone(declaration)));
            may_differ.insert(key.clone());
        }
        let is_free = self.pass_tls_well(&resources, snapshot)
            && self.concerns_nobody_else(&resources, &may_differ, snapshot, options.source);
        is_free.then_some(Renewal { resources, sets, reread_sets, has_other_uses, may_differ })
    }

    /// The resources whose declarations were read again, and those that take a changed module set. `former` has the
    /// declarations by those that they replace.
    fn concerned<'l>(
        &'l self,
        former: &HashMap<*const Declaration, &'l Arc<Declaration>>,
        changed_sets: &HashSet<&str>,
    ) -> Vec<(&'l Key, &'l Arc<Declaration>, bool)> {
        let takes = |it: &Declaration| it.modules_from.iter().any(|set| changed_sets.contains(set.as_str()));
        let found = self.origins.iter().filter_map(|(key, declaration)| match former.get(&Arc::as_ptr(declaration)) {
            Some(now) => Some((key, *now, true)),
            None => (!changed_sets.is_empty() && takes(declaration)).then_some((key, declaration, false)),
        });
        found.collect()
    }

    /// The source with what has other inputs, made of what the last run left.
    fn renewed(&mut self, renewal: Renewal) -> Resolved {
        let Renewal { resources, sets, reread_sets, has_other_uses, may_differ } = renewal;
        let mut desired = Arc::unwrap_or_clone(std::mem::take(&mut self.desired));
        let mut origins = Arc::unwrap_or_clone(std::mem::take(&mut self.origins));
        let mut facts = std::mem::take(&mut self.facts);
        let of_resources = resources.iter().map(|(desired, _)| Subject::Resource(desired.key.clone()));
        facts.forget(&of_resources.chain(reread_sets.iter().cloned().map(Subject::ModuleSet)).collect());
        for name in reread_sets {
            if let Some(set) = sets.get(&name).filter(|set| !set.is_context()) {
                set.facts.note(|| Subject::ModuleSet(name.clone()), &mut facts);
            }
        }
        for (wanted, declaration) in resources {
            declaration.note_facts(&wanted.key, &mut facts);
            origins.insert(wanted.key.clone(), declaration);
            desired.insert(wanted.key.clone(), wanted);
        }
        if has_other_uses {
            let taken: HashSet<&String> = origins.iter().flat_map(|(_, it)| &it.modules_from).collect();
            let has_routes = origins.iter().any(|(key, _)| key.kind == Kind::HttpsEdgeRoute);
            let unused = sets.iter().filter(|(name, set)| has_routes && !taken.contains(name) && !set.is_context());
            facts.unused_module_sets = unused.map(|(name, _)| name.clone()).collect();
        }
        let (others, may_differ) = (Arc::clone(&self.others), Some(may_differ));
        Resolved { desired, origins, sets, facts, others, is_self_contained: true, may_differ, ..Resolved::default() }
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

    /// Whether edges consent to the same routes and certificates of others as before, and have no other hosts that these
    /// concern: hostports that they had first (D103), or hosts that only their certificates cover (D112).
    fn concerns_nobody_else(
        &self,
        resources: &[(Desired, Arc<Declaration>)],
        may_differ: &BTreeSet<Key>,
        snapshot: &Snapshot,
        source: &str,
    ) -> bool {
        let meets_alike = |wanted: &Desired| {
            let met = |edge: &HttpsEdge| {
                (edge.delegates_to.clone(), edge.certificates_from.clone(), rules::passes_through(edge))
            };
            edge_of(wanted).map(met) == self.desired.get(&wanted.key).and_then(edge_of).map(met)
        };
        let has_others_certificates = || {
            let mut certificates = snapshot.newest_first(Kind::TlsCertificate, None, u64::MAX);
            certificates.any(|entry| !entry.is_owned_by(source))
        };
        // Who had a hostport first also depends on what the store has.
        let touched = may_differ.iter().filter_map(|key| self.desired.get(key));
        let edges = resources.iter().map(|(wanted, _)| wanted).chain(touched);
        resources.iter().all(|(wanted, _)| meets_alike(wanted))
            && (!tenancy::add_hostports(edges.clone(), snapshot)
                || (!has_others_certificates()
                    && tenancy::hostport_faults(edges, snapshot, source, &|key| self.desired.contains_key(key))
                        .is_empty()))
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

fn edge_of(wanted: &Desired) -> Option<&HttpsEdge> {
    wanted.spec.as_any().downcast_ref()
}

/// A resource as it is declared now, with the Spec that it had if this is equal. None if it becomes another resource, because
/// immutable content differs.
fn again(earlier: &Desired, declaration: &Declaration, spec: Arc<dyn AnyResource>) -> Option<Desired> {
    let spec = if earlier.spec.same(spec.as_ref()) { Arc::clone(&earlier.spec) } else { spec };
    if !earlier.key.kind.info().fixed.is_empty()
        && fixed_content(earlier.spec.as_ref()).ok()? != fixed_content(spec.as_ref()).ok()?
    {
        return None;
    }
    let claim = Claim { prevent_destroy: declaration.prevent_destroy, ..Claim::clone(&earlier.claim) };
    Some(Desired { spec, claim: Arc::new(claim), ..earlier.clone() })
}

//! A source as a run has resolved it, which the next run takes over if all names mean the same (`reconcile::run::memo`,
//! D74).
//!
//! Names mean the same if all of this is so:
//!
//! - The files declare the same names in the same order, without an error, and nothing is renamed or transferred.
//! - In the store, only resources of this source have changed, and their claims are as desired.
//! - What changed is judged by itself: no edge changes what it allows, requires or passes through, and none adds a hostport.
//!   Other sources have a say in these, so they are judged with everything else until they are in the store.
//!
//! Otherwise the source is resolved from scratch. Even then, a Spec that equals that of the last run is the same allocation, so
//! that the lints need not judge it again.

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::identity::{StoreNames, immutable_content};
use super::options::ResolveOptions;
use super::resolution::Resolution;
use super::resolver::resolve;
use super::scope::NameScope;
use crate::manifest::load::declaration::{Declaration, ModuleSet, Origins};
use crate::manifest::loader::Loaded;
use crate::manifest::prelude::*;
use crate::model::{Entry, rules};
use crate::tenancy;

/// A source as a run has resolved it.
#[derive(Debug)]
pub(crate) struct LastResolution {
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
    /// The resources of other sources, and the routes without a source.
    pub others: Arc<Vec<Arc<Entry>>>,
    /// Whether nothing depends on edges of other sources, or on what its edge requires.
    pub is_self_contained: bool,
    /// The resources that differ from those in `snapshot`: all others are as desired. None if the run found anything to
    /// report about names: then the next one resolves the whole source.
    pub differing: Option<BTreeSet<Key>>,
}

/// The resources whose inputs differ from the last run.
struct ChangedInputs {
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

/// Resolves a source as [`resolve`] does, on what the last run left. What is no longer needed is given to `free`, because
/// freeing it takes a while.
pub(crate) fn resolve_again(
    memo: &mut Option<LastResolution>,
    loaded: &Loaded,
    snapshot: &Snapshot,
    options: ResolveOptions<'_>,
    free: impl FnOnce(LastResolution),
) -> Resolution {
    let changed = memo.as_ref().and_then(|last| last.changed_inputs(loaded, snapshot, options));
    if let Some(changed) = changed
        && let Some(mut last) = memo.take()
    {
        let resolved = last.update(changed);
        free(last);
        return resolved;
    }
    let mut resolved = resolve(loaded, snapshot, options);
    if let Some(last) = memo {
        share_equal_specs(&last.desired, &mut resolved.desired);
    }
    resolved
}

/// A resource and its declaration now.
type KeyedDeclaration<'l> = (&'l Key, &'l Arc<Declaration>);

impl LastResolution {
    /// Whether all names mean the same now.
    #[cfg(test)]
    pub(crate) fn holds(&self, loaded: &Loaded, snapshot: &Snapshot, options: ResolveOptions<'_>) -> bool {
        self.changed_inputs(loaded, snapshot, options).is_some()
    }

    /// Finds what has other inputs now. None if names may mean something else, or if there is anything to report.
    fn changed_inputs(
        &self,
        loaded: &Loaded,
        snapshot: &Snapshot,
        options: ResolveOptions<'_>,
    ) -> Option<ChangedInputs> {
        let differing = self.differing.as_ref()?;
        // Only a run from scratch tells what the surrounding manifests lack.
        if !self.is_self_contained
            || !loaded.has_shape_of(&self.loaded)
            || loaded.files.iter().any(|file| file.is_surrounding)
        {
            return None;
        }
        // A resource that was not created yet has another ID if another source has had the one that was chosen.
        if differing.iter().any(|key| snapshot.was_of_another(key, options.source)) {
            return None;
        }
        let in_store = self.changed_in_store(snapshot, options.source)?;
        let (affected, reread_sets) = self.affected(loaded)?;
        let sets = loaded.reads.iter().flat_map(|read| &read.declared.sets);
        let sets: BTreeMap<String, Arc<ModuleSet>> = sets.map(|(name, set)| (name.clone(), Arc::clone(set))).collect();
        let (known, ids) = (StoreNames::new(snapshot, options, loaded), self.ids());
        let (required, desired) = (HashMap::default(), &*self.desired);
        let is_desired = |key: &Key| desired.contains_key(key);
        let names = NameScope { sets: &sets, known: &known, ids: &ids, is_desired: &is_desired, required: &required };
        let mut may_differ = &in_store | differing;
        let (mut resources, mut has_other_uses) = (Vec::new(), false);
        for (key, declaration) in affected {
            has_other_uses |= declaration.modules_from != self.origins.get(key)?.modules_from;
            let mut missing = Vec::new();
            let spec = names.spec(declaration, None, &mut missing);
            if !missing.is_empty() {
                return None;
            }
            resources.push((redeclare(desired.get(key)?, declaration, spec)?, Arc::clone(declaration)));
            may_differ.insert(key.clone());
        }
        let affect_no_others = self.affect_no_others(&resources, &may_differ, snapshot);
        affect_no_others.then_some(ChangedInputs { resources, sets, reread_sets, has_other_uses, may_differ })
    }

    /// The resources whose declarations were read again or name a changed module set, with their declarations now, and the
    /// names of the module sets that were read again.
    fn affected<'l>(&'l self, loaded: &'l Loaded) -> Option<(Vec<KeyedDeclaration<'l>>, Vec<String>)> {
        let (mut former, mut changed_sets, mut reread_sets) = (HashMap::new(), HashSet::default(), Vec::new());
        for (read, earlier) in loaded.changed_since(&self.loaded) {
            if read.diagnostics.iter().any(Diagnostic::is_error) {
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
        let takes_changed_set =
            |it: &Declaration| it.modules_from.iter().any(|set| changed_sets.contains(set.as_str()));
        let (mut affected, mut reread) = (Vec::new(), 0);
        for (key, declaration) in &*self.origins {
            if let Some(now) = former.get(&Arc::as_ptr(declaration)) {
                affected.push((key, *now));
                reread += 1;
            } else if takes_changed_set(declaration) {
                affected.push((key, declaration));
            }
        }
        // A declaration that is not that of a resource has no key.
        (former.len() <= reread).then_some((affected, reread_sets))
    }

    /// The source with what has other inputs, made of what the last run left.
    fn update(&mut self, changed: ChangedInputs) -> Resolution {
        let ChangedInputs { resources, sets, reread_sets, has_other_uses, may_differ } = changed;
        let mut desired = Arc::unwrap_or_clone(std::mem::take(&mut self.desired));
        let mut origins = Arc::unwrap_or_clone(std::mem::take(&mut self.origins));
        let mut facts = std::mem::take(&mut self.facts);
        let of_resources = resources.iter().map(|(desired, _)| Subject::Resource(desired.key.clone()));
        facts.forget(&of_resources.chain(reread_sets.iter().cloned().map(Subject::ModuleSet)).collect());
        for name in reread_sets {
            if let Some(set) = sets.get(&name) {
                set.facts.note(|| Subject::ModuleSet(name.clone()), &mut facts);
            }
        }
        for (wanted, declaration) in resources {
            declaration.note_facts(&wanted.key, &mut facts);
            origins.insert(wanted.key.clone(), declaration);
            desired.insert(wanted.key.clone(), wanted);
        }
        if has_other_uses {
            let taken: HashSet<&String> = origins.values().flat_map(|it| &it.modules_from).collect();
            let has_routes = origins.iter().any(|(key, _)| key.kind == Kind::HttpsEdgeRoute);
            let unused = sets.keys().filter(|name| has_routes && !taken.contains(name));
            facts.unused_module_sets = unused.cloned().collect();
        }
        let (others, may_differ) = (Arc::clone(&self.others), Some(may_differ));
        Resolution {
            desired,
            origins,
            sets,
            facts,
            others,
            is_self_contained: true,
            may_differ,
            ..Resolution::default()
        }
    }

    /// The resources that the store has changed since, if that cannot change the identity of any resource.
    fn changed_in_store(&self, snapshot: &Snapshot, source: &str) -> Option<BTreeSet<Key>> {
        let is_expected = |key: &Key| match (self.desired.get(key), snapshot.get(key)) {
            (Some(wanted), Some(entry)) => entry.claim.as_deref() == Some(&wanted.claim),
            // The entry was pruned.
            (None, None) => self.snapshot.get(key).is_some_and(|entry| entry.is_owned_by(source)),
            _ => false,
        };
        snapshot.changed_since(&self.snapshot).map(|key| is_expected(key).then(|| key.clone())).collect()
    }

    /// The ids of declared resources without a parent.
    fn ids(&self) -> HashMap<(Kind, &str), Id> {
        let roots = self.desired.iter().filter(|(key, _)| key.parent.is_none());
        roots.map(|(key, wanted)| ((key.kind, wanted.claim.name.as_str()), key.id.clone())).collect()
    }

    /// Whether the resources with another Spec are judged by themselves: edges that pass TLS through limit the modules of
    /// their routes (D15), what edges allow and require concerns routes (D103) and certificates of other sources (D112),
    /// and an added hostport may be that of another edge. What was not applied yet is added again.
    fn affect_no_others(
        &self,
        resources: &[(Desired, Arc<Declaration>)],
        may_differ: &BTreeSet<Key>,
        snapshot: &Snapshot,
    ) -> bool {
        let before = |key: &Key| self.desired.get(key);
        let has_changed = |it: &&Desired| before(&it.key).is_none_or(|was| !Arc::ptr_eq(&was.spec, &it.spec));
        let changed: Vec<&Desired> = resources.iter().map(|(wanted, _)| wanted).filter(has_changed).collect();
        let affects_no_others = |wanted: &&Desired| {
            // The resource itself, or the edge of a route.
            let edge = wanted.key.parent_key().unwrap_or_else(|| wanted.key.clone());
            let was = before(&edge).and_then(Desired::spec_as::<HttpsEdge>);
            was.is_none_or(|was| !rules::passes_through(was))
                && wanted
                    .spec_as::<HttpsEdge>()
                    .is_none_or(|now| !rules::passes_through(now) && now.required_modules.is_none())
        };
        // Also what the last run found to differ: it may not have been applied.
        let beside = may_differ.iter().filter_map(before);
        changed.iter().all(affects_no_others)
            && !tenancy::concern_others(changed.iter().copied().chain(beside), snapshot)
    }
}

/// A resource as it is declared now, with the Spec that it had if this is equal. None if it becomes another resource, because
/// immutable content differs.
fn redeclare(earlier: &Desired, declaration: &Declaration, spec: Arc<dyn AnyResource>) -> Option<Desired> {
    let spec = if earlier.spec.same(spec.as_ref()) { Arc::clone(&earlier.spec) } else { spec };
    if !earlier.key.kind.info().fixed.is_empty()
        && immutable_content(earlier.spec.as_ref()).ok()? != immutable_content(spec.as_ref()).ok()?
    {
        return None;
    }
    let claim = Claim { prevent_destroy: declaration.prevent_destroy, ..Claim::clone(&earlier.claim) };
    Some(Desired { spec, claim: Arc::new(claim), ..earlier.clone() })
}

/// Replaces Specs by those of an earlier run that are equal. Both maps are in the order of keys, so no key is looked up.
fn share_equal_specs(earlier: &BTreeMap<Key, Desired>, desired: &mut BTreeMap<Key, Desired>) {
    let mut earlier = earlier.values().peekable();
    for (key, wanted) in desired {
        while earlier.next_if(|it| it.key < *key).is_some() {}
        let is_equal = |it: &Desired| !Arc::ptr_eq(&it.spec, &wanted.spec) && it.spec.same(wanted.spec.as_ref());
        if let Some(same) = earlier.peek().filter(|it| it.key == *key && is_equal(it)) {
            wanted.spec = Arc::clone(&same.spec);
        }
    }
}

//! Resolves a source again after a change that keeps all names: only what the change concerns is resolved, and everything
//! else is as it was (D74). Any other change is resolved from scratch.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use foldhash::{HashMap, HashSet, HashSetExt as _};

use super::{
    Loaded, consent,
    declaration::{Declaration, ModuleSet, Origins},
    identity::{Known, fixed_content},
    known_names::KnownNames,
    resolve::Resolved,
};
use crate::{
    lint::{ManifestFacts, Subject},
    model::{
        Kind, desired::Desired, diagnostic::Severity, id::Id, key::Key, kind::https_edge::HttpsEdge, operation::Claim,
        resource::AnyResource, rules, snapshot::Snapshot,
    },
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
        if !loaded.has_shape_of(&self.loaded) {
            return None;
        }
        // Routes on edges of others depend on these edges, too.
        if consent::has_routes_elsewhere(&self.desired) {
            return None;
        }
        let mut may_differ = self.touched(snapshot, source)?;
        may_differ.extend(self.pending.iter().cloned());
        let mut declared_again: HashMap<*const Declaration, &Arc<Declaration>> = HashMap::default();
        let (mut changed_sets, mut read_again) = (HashSet::new(), Vec::new());
        for ((_, read), (_, earlier)) in loaded.changed_since(&self.loaded) {
            if read.diagnostics.iter().any(|it| it.severity == Severity::Error) {
                return None;
            }
            let pairs = earlier.declared.resources.iter().zip(&read.declared.resources);
            declared_again.extend(pairs.map(|(earlier, now)| (Arc::as_ptr(earlier), now)));
            for (name, set) in &read.declared.sets {
                read_again.push(name.clone());
                if !earlier.declared.sets.get(name).is_some_and(|earlier| earlier.has_same_modules(set)) {
                    changed_sets.insert(name.as_str());
                }
            }
        }
        let sets = loaded.sets();
        let (known, ids, required) = (Known::new(snapshot, source, prune, loaded), self.ids(), HashMap::default());
        let (desired, offline) = (&*self.desired, false);
        let names = KnownNames { sets: &sets, known: &known, ids: &ids, desired, required: &required, offline };
        let (mut resources, mut uses_change) = (Vec::new(), false);
        for (key, earlier) in self.origins.iter() {
            // All routes of such an edge would have to be resolved again.
            if requires_modules(earlier) {
                return None;
            }
            let takes = |set: &String| changed_sets.contains(set.as_str());
            let declaration = match declared_again.get(&Arc::as_ptr(earlier)) {
                Some(now) => *now,
                None if earlier.modules_from.iter().any(takes) => earlier,
                None => continue,
            };
            if requires_modules(declaration) {
                return None;
            }
            uses_change |= declaration.modules_from != earlier.modules_from;
            let mut missing = Vec::new();
            let spec = names.spec(declaration, None, &mut missing);
            if !missing.is_empty() {
                return None;
            }
            let desired = again(self.desired.get(key)?, declaration, spec)?;
            may_differ.insert(key.clone());
            resources.push((desired, Arc::clone(declaration)));
        }
        let is_free = self.pass_tls_well(&resources, snapshot)
            && self.concerns_nobody_else(&resources, &may_differ, snapshot, source);
        is_free.then_some(Concerned { resources, sets, read_again, uses_change, may_differ })
    }

    /// The source with a change.
    pub(crate) fn resolved(self, concerned: Concerned) -> Resolved {
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
        Resolved { desired, origins, sets, facts, ..Resolved::default() }
    }

    /// The resources that the store has changed since, if that cannot change the identity of any resource.
    fn touched(&self, snapshot: &Snapshot, source: &str) -> Option<BTreeSet<Key>> {
        let is_expected = |key: &Key| match (self.desired.get(key), snapshot.get(key)) {
            (Some(wanted), Some(entry)) => entry.claim.as_ref() == Some(&wanted.claim),
            // It was pruned.
            (None, None) => self.snapshot.get(key).is_some_and(|entry| entry.is_owned_by(source)),
            _ => false,
        };
        snapshot.changed_since(&self.snapshot).map(|key| is_expected(key).then(|| key.clone())).collect()
    }

    /// The ids of declared resources without a parent.
    fn ids(&self) -> HashMap<(Kind, &str), Id> {
        let standing = Kind::all().filter(|info| info.parent.is_none()).flat_map(|info| {
            let first = Key::new(info.kind, Id::new(""));
            self.desired.range(first..).take_while(move |(key, _)| key.kind == info.kind)
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
            && consent::hostport_faults(edges, snapshot, source).is_empty()
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

/// A resource as it is declared now. None if it becomes another one, because immutable content differs.
fn again(earlier: &Desired, declaration: &Declaration, spec: Arc<dyn AnyResource>) -> Option<Desired> {
    if !earlier.key.kind.info().fixed.is_empty()
        && fixed_content(earlier.spec.as_ref()).ok()? != fixed_content(spec.as_ref()).ok()?
    {
        return None;
    }
    let claim = Claim { prevent_destroy: declaration.prevent_destroy, ..earlier.claim.clone() };
    Some(Desired { spec, claim, ..earlier.clone() })
}

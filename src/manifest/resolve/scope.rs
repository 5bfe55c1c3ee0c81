//! The names that are known before the declarations of a kind are resolved, and the resolution of one declaration by
//! them. It changes nothing, so that all declarations of a kind are resolved at once.

use foldhash::HashMap;

use super::identity::{DeclaredResource, StoreNames};
use super::origin::Origin;
use crate::manifest::load::declaration::{Declaration, ModuleSet};
use crate::manifest::load::kinds::{MODULE_SET, REQUIRED_MODULES};
use crate::manifest::prelude::*;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::key::derived_id;
use crate::model::reference::Reference;
use crate::model::required_secrets::with_required_secrets;
use crate::model::{Entry, Path, SharedModule, Slot};

/// How many sources can have a subscription of one name.
const MOST_SUBSCRIPTIONS: u32 = 64;

/// A reference that leads nowhere, or to several resources.
pub(super) struct MissingTarget {
    pub kind: &'static str,
    pub prefix: &'static str,
    pub name: String,
    pub origin: Origin,
    pub path: Path,
    /// The error, unless the name is unknown.
    pub fault: Option<Fault>,
}

/// The names that are known before the declarations of a kind are resolved.
#[derive(Clone, Copy)]
pub(super) struct NameScope<'n, 'a> {
    pub sets: &'a BTreeMap<String, Arc<ModuleSet>>,
    pub known: &'n StoreNames<'a>,
    pub ids: &'n HashMap<(Kind, &'a str), Id>,
    /// Whether a resource with a key is desired.
    pub is_desired: &'n (dyn Fn(&Key) -> bool + Sync),
    /// The modules that edges of this source require of their routes.
    pub required: &'n HashMap<Id, Arc<HttpsEdgeRoute>>,
}

impl<'a> NameScope<'_, 'a> {
    /// A declaration with its parent's id, module sets and references resolved, if there is a parent, with what is missing, and
    /// the error of one that cannot be compared with the store.
    pub(super) fn read(
        self,
        declaration: &'a Arc<Declaration>,
    ) -> (Option<DeclaredResource<'a>>, Vec<MissingTarget>, Option<JsonError>) {
        let mut missing = Vec::new();
        let parent = match &declaration.parent {
            None => None,
            Some(name) => match self.parent(declaration, name, &mut missing) {
                Some(parent) => Some(parent),
                None => {
                    // The other references are checked as well.
                    let _ = self.spec(declaration, None, &mut missing);
                    return (None, missing, None);
                }
            },
        };
        let faulty_set = |set: Option<&Arc<ModuleSet>>| set.is_none_or(|set| set.faulty);
        let faulty = declaration.faulty || declaration.sets(self.sets).any(|(.., set)| faulty_set(set));
        let spec = self.spec(declaration, parent.as_ref(), &mut missing);
        match DeclaredResource::new(declaration, parent, spec, faulty || !missing.is_empty()) {
            Ok(wanted) => (Some(wanted), missing, None),
            Err(error) => (None, missing, Some(error)),
        }
    }

    /// The spec of a declaration with module sets, the modules that its edge requires, and references resolved, and what
    /// is missing.
    pub(super) fn spec(
        self,
        declaration: &Declaration,
        parent: Option<&Id>,
        missing: &mut Vec<MissingTarget>,
    ) -> Arc<dyn AnyResource> {
        let spec = self.with_module_sets(declaration, missing);
        let Some(required) = self.required_of(declaration, parent) else {
            return self.with_ids(declaration, &spec, missing);
        };
        let spec = self.with_ids(declaration, &add_required_modules(spec, &*required), missing);
        with_required_secrets(spec, &*required)
    }

    /// The modules that the edge of a route requires (D103): the declared one if it is applied, and otherwise the one in the
    /// store. An edge that waits for its transfer is declared here, and still belongs to the other source.
    fn required_of(self, declaration: &Declaration, parent: Option<&Id>) -> Option<Arc<HttpsEdgeRoute>> {
        let parent = parent.filter(|_| declaration.kind == Kind::HttpsEdgeRoute)?;
        if let Some(required) = self.required.get(parent) {
            return Some(Arc::clone(required));
        }
        let key = Key::new(Kind::HttpsEdge, parent.clone());
        if (self.is_desired)(&key) {
            return None;
        }
        self.known.snapshot.get(&key)?.spec_as::<HttpsEdge>()?.required_modules.clone()
    }

    /// The id of a declaration's edge or subscription.
    fn parent(self, declaration: &Declaration, name: &str, missing: &mut Vec<MissingTarget>) -> Option<Id> {
        let kind = declaration.kind.info().parent?;
        if kind == Kind::EventSubscription {
            // Subscriptions belong to another system: without an id, one is derived from the name.
            return Some(match declaration.states_subscription() {
                true => Id::new(name),
                false => self.subscription(declaration, name),
            });
        }
        match self.find(kind, name, FormerTargets::EdgeOf(declaration)) {
            Ok(found) => Some(found),
            Err(fault) => {
                let origin = declaration.origin.document();
                // The field with the name of the parent, or the place inside of it.
                let path = match declaration.origin.is_entry() {
                    true => declaration.origin.part.path(),
                    false => ["spec", "edge"].into(),
                };
                let (kind, prefix) = (kind.info().name, kind.info().prefix);
                missing.push(MissingTarget { kind, prefix, name: name.to_owned(), origin, path, fault });
                None
            }
        }
    }

    /// The ID of a subscription of this source by its name: the first one with event sources of this source, or of the
    /// one that it takes them over from, or otherwise the first one without those of others, so that each source has its own subscription of a name (D112).
    fn subscription(self, declaration: &Declaration, name: &str) -> Id {
        let ids = || (0..MOST_SUBSCRIPTIONS).map(|number| derived_id(Kind::EventSubscription, None, name, &[], number));
        let has = |id: &Id, is_meant: &dyn Fn(&Claim) -> bool| {
            let key = Key::new(Kind::EventSubscription, id.clone());
            let mut sources = self.known.snapshot.children(&key);
            sources.any(|entry| entry.claim.as_deref().is_some_and(is_meant))
        };
        let (own, from) = (self.known.source, declaration.transfer.from.as_deref());
        let found = ids().find(|id| has(id, &|claim| claim.source == own));
        let found = found.or_else(|| ids().find(|id| has(id, &|claim| Some(claim.source.as_str()) == from)));
        let found = found.or_else(|| ids().find(|id| !has(id, &|claim| claim.source != own)));
        found.unwrap_or_else(|| derived_id(Kind::EventSubscription, None, name, &[], 0))
    }

    /// The id of a resource given by name, by source and name, or by id: declared in this source, or in the store. The error
    /// has no fault if nothing has the name.
    fn find(self, kind: Kind, name: &str, former: FormerTargets<'_>) -> Result<Id, Option<Fault>> {
        if let Some((source, name)) = name.rsplit_once('/') {
            return self.find_in(kind, source, name).ok_or(None);
        }
        if name.contains('_') {
            let key = Key::new(kind, Id::new(name));
            let known = match self.known.offline {
                true => name.starts_with(kind.info().prefix),
                false => self.known.snapshot.get(&key).is_some() || (self.is_desired)(&key),
            };
            return known.then_some(key.id).ok_or(None);
        }
        match self.ids.get(&(kind, name)) {
            Some(id) => Ok(id.clone()),
            None => self.in_store(kind, name, former),
        }
    }

    /// The id of a resource of a source, by its name there. Surrounding manifests do not tell of which source they are, but not of
    /// the one that they surround. Whatever is proven with one of theirs depends on that (`SurroundingState::unseen`).
    fn find_in(self, kind: Kind, source: &str, name: &str) -> Option<Id> {
        let declared = || self.ids.get(&(kind, name)).cloned();
        let stored = |owner: &str| {
            let mut owned = self.remaining_in_store(kind, name);
            owned.retain(|entry| entry.is_owned_by(owner));
            latest(&owned).first().map(|entry| entry.key.id.clone())
        };
        let own = self.known.source;
        let found = if source == own { declared().or_else(|| stored(own)) } else { stored(source) };
        let may_surround = source != own && self.known.beside != Some(source);
        let surrounding = || if own == SURROUNDING_OWNER { declared() } else { stored(SURROUNDING_OWNER) };
        found.or_else(|| may_surround.then(surrounding).flatten())
    }

    /// The resources in the store with a name. One of this source does not count if it will be pruned or was declared under
    /// another name.
    fn remaining_in_store(self, kind: Kind, name: &str) -> Vec<&'a Arc<Entry>> {
        let known = self.known;
        let stays = |entry: &&Arc<Entry>| {
            let is_promised = entry.claim.as_deref().is_some_and(Claim::is_promised);
            let goes = known.prune && entry.is_owned_by(known.source) && !is_promised;
            !goes && !(self.is_desired)(&entry.key)
        };
        known.named(kind, None, name).iter().copied().filter(stays).collect()
    }

    /// Looks up a name in the store. A name that several sources have is ambiguous, unless it is that of an edge that the source
    /// uses, and a reference never switches to another resource by itself: whoever takes a name must not become the authority or
    /// the edge of others (D112).
    fn in_store(self, kind: Kind, name: &str, targets: FormerTargets<'_>) -> Result<Id, Option<Fault>> {
        let found = self.remaining_in_store(kind, name);
        if let Some(own) = found.first().filter(|entry| entry.is_owned_by(self.known.source)) {
            return Ok(own.key.id.clone());
        }
        let former = if found.is_empty() { Vec::new() } else { targets.targets(self.known, kind) };
        if let Some(same) = found.iter().find(|entry| former.contains(&&entry.key.id)) {
            return Ok(same.key.id.clone());
        }
        let found = latest(&found);
        let is_other = |id: &&Id| {
            let entry = self.known.snapshot.get(&Key::new(kind, Id::clone(id)));
            entry.filter(|entry| !entry.is_owned_by(self.known.source) && !(self.is_desired)(&entry.key))
        };
        // A target that another reference of the module still names was never that of this one.
        let is_replaced = |entry: &&Arc<Entry>| !targets.names(entry);
        match (found.as_slice(), former.iter().filter_map(is_other).find(is_replaced)) {
            ([], _) => Err(None),
            ([one], None) => Ok(one.key.id.clone()),
            (several, Some(former)) => Err(Some(self.switched(name, several, former))),
            (several, None) => match targets.usual_edge(self.known, several) {
                Some(usual) => Ok(usual.key.id.clone()),
                None => Err(Some(self.ambiguous(kind, name, several))),
            },
        }
    }

    fn ambiguous(self, kind: Kind, name: &str, found: &[&Arc<Entry>]) -> Fault {
        let all: Vec<String> = found.iter().map(|entry| self.known.snapshot.name_of(&entry.key)).collect();
        let qualified: Vec<String> = found.iter().filter_map(|entry| qualified(entry)).collect();
        let message = format!("{kind} `{}` is ambiguous: {}", printable(name), all.join(" and "));
        Fault::new(Code::AmbiguousReference, message).help(format!("write {}", qualified.join(" or ")))
    }

    fn switched(self, name: &str, found: &[&Arc<Entry>], former: &Entry) -> Fault {
        let named = |entry: &Entry| self.known.snapshot.name_of(&entry.key);
        let now: Vec<String> = found.iter().map(|entry| named(entry)).collect();
        let (name, now, before) = (printable(name), now.join(" or "), named(former));
        let message = format!("`{name}` now refers to {now}; this reference previously meant {before}");
        let before = qualified(former).unwrap_or_else(|| format!("`{}`", former.key.id));
        let either: Vec<String> = std::iter::once(before).chain(found.iter().filter_map(|it| qualified(it))).collect();
        Fault::new(Code::AmbiguousReference, message).help(format!("write {}", either.join(" or ")))
    }

    /// The spec with the modules of its sets: later sets override earlier ones, and the route's own modules override
    /// all.
    fn with_module_sets(self, declaration: &Declaration, missing: &mut Vec<MissingTarget>) -> Arc<dyn AnyResource> {
        let field = if declaration.kind == Kind::HttpsEdge { REQUIRED_MODULES } else { "modules_from" };
        let mut taken: Vec<(&'static Slot, Option<SharedModule>)> = Vec::new();
        for (index, name, set) in declaration.sets(self.sets) {
            let Some(set) = set else {
                missing.push(MissingTarget {
                    kind: MODULE_SET,
                    prefix: "",
                    name: name.clone(),
                    origin: declaration.origin.clone(),
                    path: (field, index).into(),
                    fault: None,
                });
                continue;
            };
            for (slot, module) in &set.modules {
                if declaration.spec.module(slot).is_none() && taken.iter().all(|(other, _)| other != slot) {
                    taken.push((slot, Some(Arc::clone(module))));
                }
            }
        }
        if taken.is_empty() {
            return Arc::clone(&declaration.spec);
        }
        match declaration.spec.as_any().downcast_ref::<HttpsEdge>() {
            Some(edge) => with_required_modules(edge, &taken),
            None => declaration.spec.with_modules(&taken),
        }
    }

    /// The spec with names replaced by identifiers.
    fn with_ids(
        self,
        declaration: &Declaration,
        spec: &Arc<dyn AnyResource>,
        missing: &mut Vec<MissingTarget>,
    ) -> Arc<dyn AnyResource> {
        with_references(spec, |slot, Reference { target, path }| {
            let (kind, name) = (target.kind, target.id.as_str());
            let found = self.find(kind, name, FormerTargets::ModuleOf(declaration, slot, &**spec));
            found.unwrap_or_else(|fault| {
                let (kind, prefix, name) = (kind.info().name, kind.info().prefix, name.to_owned());
                let (origin, path) = (declaration.origin.clone(), path.under(&slot.name.into()));
                missing.push(MissingTarget { kind, prefix, name, origin, path, fault });
                target.id.clone()
            })
        })
    }
}

/// A declaration with references to other resources, of which the store may have an earlier version.
#[derive(Clone, Copy)]
enum FormerTargets<'d> {
    /// A route that names its edge.
    EdgeOf(&'d Declaration),
    /// A resource with a module that names others.
    ModuleOf(&'d Declaration, &'static Slot, &'d dyn AnyResource),
}

impl FormerTargets<'_> {
    /// Whether the manifest refers to a resource by its name, its source and name, or its ID.
    fn names(self, entry: &Entry) -> bool {
        let FormerTargets::ModuleOf(_, slot, spec) = self else { return false };
        let Some(module) = spec.module(slot) else { return false };
        let mut is_named = false;
        module.references(&mut |reference| {
            let text = reference.target.id.as_str();
            is_named |= match (&entry.claim, text.rsplit_once('/')) {
                _ if text == entry.key.id.as_str() => true,
                (Some(claim), Some((source, name))) => claim.source == source && claim.name == name,
                (Some(claim), None) => claim.name == text,
                (None, _) => false,
            };
        });
        is_named
    }

    /// The edge that a route means by a name that edges of several sources have: the only one that has routes of this source,
    /// or if none has, the only one that delegates to it. Whoever takes the name does not stop those who use the edge (D112).
    fn usual_edge<'a>(self, known: &StoreNames<'a>, found: &[&'a Arc<Entry>]) -> Option<&'a Arc<Entry>> {
        let FormerTargets::EdgeOf(_) = self else { return None };
        let delegates = |edge: &HttpsEdge| edge.delegates_to.iter().any(|it| it.source == known.source);
        let mut meant: Vec<&'a Arc<Entry>> =
            found.iter().copied().filter(|entry| known.has_route_on(&entry.key.id)).collect();
        if meant.is_empty() {
            meant.extend(found.iter().filter(|entry| entry.spec_as::<HttpsEdge>().is_some_and(delegates)));
        }
        meant.pop().filter(|_| meant.is_empty())
    }

    /// The references of the version in the store, as far as this source owns it.
    fn targets<'a>(self, known: &StoreNames<'a>, kind: Kind) -> Vec<&'a Id> {
        match self {
            FormerTargets::EdgeOf(declaration) => {
                former_names(declaration).flat_map(|name| known.edges_of_routes(name)).collect()
            }
            FormerTargets::ModuleOf(declaration, slot, _) => {
                let own = |name: &str| {
                    let named = known.named(declaration.kind, None, name);
                    named.iter().copied().find(|entry| entry.is_owned_by(known.source))
                };
                let entry = former_names(declaration).find_map(own);
                let mut found = Vec::new();
                let Some(module) = entry.and_then(|entry| entry.spec().module(slot)) else { return found };
                module.references(&mut |reference| {
                    let target = known.snapshot.get(&reference.target).filter(|target| target.key.kind == kind);
                    found.extend(target.map(|target| &target.key.id));
                });
                found
            }
        }
    }
}

/// The names that a declared resource can have in the store: its own, and the one that it had before.
fn former_names(declaration: &Declaration) -> impl Iterator<Item = &str> {
    std::iter::once(&*declaration.name).chain(declaration.renamed_from.as_deref())
}

/// Returns the newest resource of each source among those with one name. Its predecessor is kept as long as other sources use
/// it (D35), and only they mean it.
fn latest<'a>(found: &[&'a Arc<Entry>]) -> Vec<&'a Arc<Entry>> {
    let source = |entry: &Entry| entry.claim.as_deref().map(|claim| claim.source.clone());
    let has_successor =
        |entry: &Entry| found.iter().any(|other| other.order > entry.order && source(other) == source(entry));
    found.iter().copied().filter(|entry| !has_successor(entry)).collect()
}

/// How a manifest names a resource of another source without ambiguity.
fn qualified(entry: &Entry) -> Option<String> {
    let claim = entry.claim.as_deref()?;
    Some(format!("`{}/{}`", printable(&claim.source), printable(&claim.name)))
}

/// An edge that requires modules of its routes.
fn with_required_modules(edge: &HttpsEdge, modules: &[(&'static Slot, Option<SharedModule>)]) -> Arc<dyn AnyResource> {
    let host = AnyResource::with_modules(&HttpsEdgeRoute::default(), modules);
    let required_modules = host.as_any().downcast_ref::<HttpsEdgeRoute>().cloned().map(Arc::new);
    Arc::new(HttpsEdge { required_modules, ..edge.clone() })
}

/// A route with the required modules that it does not have.
fn add_required_modules(spec: Arc<dyn AnyResource>, required: &dyn AnyResource) -> Arc<dyn AnyResource> {
    let slots = required.slots().iter().filter(|slot| spec.module(slot).is_none());
    let added: Vec<(&'static Slot, Option<SharedModule>)> =
        slots.filter_map(|slot| Some((slot, Some(required.shared_module(slot)?)))).collect();
    if added.is_empty() { spec } else { spec.with_modules(&added) }
}

/// A spec whose modules refer to other targets.
pub(in crate::manifest) fn with_references(
    spec: &Arc<dyn AnyResource>,
    mut target: impl FnMut(&'static Slot, Reference) -> Id,
) -> Arc<dyn AnyResource> {
    let mut changed: Vec<(&'static Slot, Option<SharedModule>)> = Vec::new();
    for (slot, module) in spec.modules() {
        let mut targets = Vec::new();
        module.references(&mut |reference| targets.push(target(slot, reference)));
        if !targets.is_empty() {
            changed.push((slot, Some(module.with_references(&targets))));
        }
    }
    if changed.is_empty() { Arc::clone(spec) } else { spec.with_modules(&changed) }
}

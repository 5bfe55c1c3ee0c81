//! The names that are known before the declarations of a kind are resolved, and the resolution of one declaration by
//! them. It changes nothing, so that all declarations of a kind are resolved at once.

use std::{collections::BTreeMap, sync::Arc};

use foldhash::HashMap;

use super::{
    Origin,
    consent::with_required_secrets,
    declaration::{Declaration, ModuleSet},
    identity::{Known, Wanted, derived},
    kinds::{MODULE_SET, REQUIRED_MODULES},
};
use crate::model::{
    Kind,
    fault::Path,
    id::Id,
    json::JsonError,
    key::Key,
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute},
    module::{SharedModule, Slot},
    operation::Claim,
    resource::AnyResource,
    snapshot::Entry,
};

/// A reference that leads nowhere.
pub(super) struct Missing {
    pub kind: &'static str,
    pub prefix: &'static str,
    pub name: String,
    pub origin: Origin,
    pub path: Path,
}

/// What keeps a declaration from being resolved.
pub(super) struct ReadFaults {
    pub missing: Vec<Missing>,
    pub error: Option<JsonError>,
}

/// The names that are known before the declarations of a kind are resolved.
#[derive(Clone, Copy)]
pub(super) struct KnownNames<'n, 'a> {
    pub sets: &'a BTreeMap<String, Arc<ModuleSet>>,
    pub known: &'n Known<'a>,
    pub ids: &'n HashMap<(Kind, &'a str), Id>,
    /// Whether a resource with a key is desired.
    pub is_desired: &'n (dyn Fn(&Key) -> bool + Sync),
    /// The modules that edges of this source require of their routes.
    pub required: &'n HashMap<Id, Arc<HttpsEdgeRoute>>,
    /// Whether there is no store to look up identifiers in.
    pub offline: bool,
    /// Whether it is the turn of this source with everything inside of what is known.
    pub has_turns: bool,
}

impl<'a> KnownNames<'_, 'a> {
    /// A declaration with its parent's id, module sets and references resolved, if there is a parent, and what is
    /// missing. There are many of the first, and hardly any of the second.
    pub(super) fn read(self, declaration: &'a Arc<Declaration>) -> (Option<Wanted<'a>>, Option<Box<ReadFaults>>) {
        let mut missing = Vec::new();
        let parent = match &declaration.parent {
            None => None,
            Some(name) => match self.parent(declaration, name, &mut missing) {
                Some(parent) => Some(parent),
                None => {
                    // Its other references are checked as well.
                    let _ = self.spec(declaration, None, &mut missing);
                    return (None, Some(Box::new(ReadFaults { missing, error: None })));
                }
            },
        };
        let faulty_set = |set: Option<&Arc<ModuleSet>>| set.is_none_or(|set| set.faulty);
        let faulty = declaration.faulty || declaration.sets(self.sets).any(|(.., set)| faulty_set(set));
        let spec = self.spec(declaration, parent.as_ref(), &mut missing);
        let wanted = Wanted::new(self.known, declaration, parent, spec, faulty || !missing.is_empty());
        let (wanted, error) = match wanted {
            Ok(mut wanted) => {
                wanted.is_plain = self.is_plain(&wanted);
                (Some(wanted), None)
            }
            Err(error) => (None, Some(error)),
        };
        let is_faultless = missing.is_empty() && error.is_none();
        (wanted, (!is_faultless).then(|| Box::new(ReadFaults { missing, error })))
    }

    /// Whether a resource is as nearly all are: inside of another one, without a fault, and of this source or new, so that
    /// nothing has to be noted about it in the order of the declarations.
    fn is_plain(self, wanted: &Wanted<'a>) -> bool {
        let declaration = wanted.declaration;
        let is_own = |claim: &Claim| claim.source == self.known.source;
        self.has_turns
            && wanted.is_alone()
            && !wanted.faulty
            && declaration.is_plain()
            && wanted.claim().flatten().is_none_or(is_own)
    }

    /// The spec of a declaration with module sets, the modules that its edge requires, and references resolved, and what
    /// is missing.
    pub(super) fn spec(
        self,
        declaration: &Declaration,
        parent: Option<&Id>,
        missing: &mut Vec<Missing>,
    ) -> Arc<dyn AnyResource> {
        let spec = self.with_module_sets(declaration, missing);
        let Some(required) = self.required_of(declaration, parent) else {
            return self.with_ids(declaration, spec, missing);
        };
        let spec = self.with_ids(declaration, with_required(spec, &*required), missing);
        with_required_secrets(spec, &*required)
    }

    /// The modules that the edge of a route requires (D103).
    fn required_of(self, declaration: &Declaration, parent: Option<&Id>) -> Option<Arc<HttpsEdgeRoute>> {
        let parent = parent.filter(|_| declaration.kind == Kind::HttpsEdgeRoute)?;
        if let Some(required) = self.required.get(parent) {
            return Some(Arc::clone(required));
        }
        // The edges of this source are not looked up in the store: most routes are on one of them.
        let name = declaration.parent.as_deref()?;
        let key = Key::new(Kind::HttpsEdge, parent.clone());
        if self.ids.contains_key(&(Kind::HttpsEdge, name)) || (self.is_desired)(&key) {
            return None;
        }
        self.known.snapshot.get(&key)?.spec_as::<HttpsEdge>()?.required_modules.clone()
    }

    /// The id of a declaration's edge or subscription.
    fn parent(self, declaration: &Declaration, name: &str, missing: &mut Vec<Missing>) -> Option<Id> {
        let kind = declaration.kind.info().parent?;
        if kind == Kind::EventSubscription {
            // Subscriptions belong to another system: without an id, one is derived from the name.
            return Some(if name.contains('_') { Id::new(name) } else { derived(kind, None, name, &[], 0) });
        }
        let found = self.find(kind, name);
        if found.is_none() {
            let (origin, path) = (declaration.head(), declaration.parent_path());
            missing.push(Missing {
                kind: kind.info().name,
                prefix: kind.info().prefix,
                name: name.to_owned(),
                origin,
                path,
            });
        }
        found
    }

    /// The id of a resource given by name or id: declared in this source, or in the store.
    fn find(self, kind: Kind, name: &str) -> Option<Id> {
        if name.contains('_') {
            let key = Key::new(kind, Id::new(name));
            let known = match self.offline {
                true => name.starts_with(kind.info().prefix),
                false => self.known.snapshot.get(&key).is_some() || (self.is_desired)(&key),
            };
            return known.then_some(key.id);
        }
        self.ids.get(&(kind, name)).cloned().or_else(|| self.in_store(kind, name))
    }

    /// Looks up a name in the store. A name of this source does not count if its resource will be pruned or was
    /// declared under another name.
    fn in_store(self, kind: Kind, name: &str) -> Option<Id> {
        let entry: &Entry = self.known.named(kind, None, name).next()?;
        let is_promised = entry.claim.as_deref().is_some_and(Claim::is_promised);
        let goes = self.known.prune && entry.is_owned_by(self.known.source) && !is_promised;
        (!goes && !(self.is_desired)(&entry.key)).then(|| entry.key.id.clone())
    }

    /// The spec with the modules of its sets: later sets override earlier ones, and the route's own modules override
    /// all.
    fn with_module_sets(self, declaration: &Declaration, missing: &mut Vec<Missing>) -> Arc<dyn AnyResource> {
        let field = if declaration.kind == Kind::HttpsEdge { REQUIRED_MODULES } else { "modules_from" };
        // It is kept with the declaration.
        let mut used = Vec::with_capacity(declaration.modules_from.len());
        let mut taken: Vec<(&'static Slot, Option<SharedModule>)> = Vec::new();
        for (index, name, set) in declaration.sets(self.sets) {
            let Some(set) = set else {
                missing.push(Missing {
                    kind: MODULE_SET,
                    prefix: "",
                    name: name.clone(),
                    origin: declaration.origin.clone(),
                    path: Path::root().join(field).join(index),
                });
                continue;
            };
            used.push(Arc::clone(set));
            for (slot, module) in &set.modules {
                if declaration.spec.module(slot).is_none() && taken.iter().all(|(other, _)| other != slot) {
                    taken.push((slot, Some(Arc::clone(module))));
                }
            }
        }
        match taken.is_empty() {
            true => Arc::clone(&declaration.spec),
            false => {
                declaration.merged.with_sets(used, || match declaration.spec.as_any().downcast_ref::<HttpsEdge>() {
                    Some(edge) => requiring(edge, &taken),
                    None => declaration.spec.with_modules(&taken),
                })
            }
        }
    }

    /// The spec with names replaced by identifiers.
    fn with_ids(
        self,
        declaration: &Declaration,
        spec: Arc<dyn AnyResource>,
        missing: &mut Vec<Missing>,
    ) -> Arc<dyn AnyResource> {
        let mut targets = Vec::new();
        for slot in declaration.kind.info().slots {
            let Some(module) = spec.module(slot) else { continue };
            module.references(&mut |reference| {
                let (kind, name) = (reference.target.kind, reference.target.id.as_str());
                let found = self.find(kind, name);
                if found.is_none() {
                    missing.push(Missing {
                        kind: kind.info().name,
                        prefix: kind.info().prefix,
                        name: name.to_owned(),
                        origin: declaration.origin.clone(),
                        path: reference.path.under(&Path::root().join(slot.name)),
                    });
                }
                targets.push(found.unwrap_or(reference.target.id));
            });
        }
        match targets.is_empty() {
            true => spec,
            false => declaration.merged.with_ids(spec, targets, referencing),
        }
    }
}

/// An edge that requires modules of its routes.
fn requiring(edge: &HttpsEdge, modules: &[(&'static Slot, Option<SharedModule>)]) -> Arc<dyn AnyResource> {
    let host = AnyResource::with_modules(&HttpsEdgeRoute::default(), modules);
    let required_modules = host.as_any().downcast_ref::<HttpsEdgeRoute>().cloned().map(Arc::new);
    Arc::new(HttpsEdge { required_modules, ..edge.clone() })
}

/// A route with the required modules that it does not have.
fn with_required(spec: Arc<dyn AnyResource>, required: &dyn AnyResource) -> Arc<dyn AnyResource> {
    let slots = required.slots().iter().filter(|slot| spec.module(slot).is_none());
    let added: Vec<(&'static Slot, Option<SharedModule>)> =
        slots.filter_map(|slot| Some((slot, Some(required.shared_module(slot)?)))).collect();
    if added.is_empty() { spec } else { spec.with_modules(&added) }
}

/// A spec with these identifiers as the targets of its references, in their order.
fn referencing(spec: &dyn AnyResource, targets: &[Id]) -> Arc<dyn AnyResource> {
    let mut targets = targets;
    let mut resolved: Vec<(&'static Slot, Option<SharedModule>)> = Vec::new();
    for slot in spec.kind().info().slots {
        let Some(module) = spec.module(slot) else { continue };
        let mut count = 0;
        module.references(&mut |_| count += 1);
        if let Some((own, others)) = targets.split_at_checked(count).filter(|_| count > 0) {
            resolved.push((slot, Some(module.with_references(own))));
            targets = others;
        }
    }
    spec.with_modules(&resolved)
}

//! Modules that routes take from module sets, and the places of their fields: in the set's file, not in the route's.

use super::{origin::Origin, resolution::Resolution};
use crate::manifest::load::declaration::{Declaration, ModuleSet};
use crate::manifest::prelude::*;
use crate::model::{Path, Place, Segment};

/// The label of a field in a module set, related to a place in a route.
const FROM_SET: &str = "from this module set";

/// A module that a route takes from a module set.
#[derive(Debug, Clone)]
pub(crate) struct SetModule {
    /// The set's name.
    pub set: String,
    /// The index of the set in the route's `modules_from`.
    index: usize,
}

impl Declaration {
    /// The module sets that it uses, with their indices. Later sets override earlier ones, so they come first.
    pub(super) fn sets<'s>(
        &'s self,
        sets: &'s BTreeMap<String, Arc<ModuleSet>>,
    ) -> impl Iterator<Item = (usize, &'s String, Option<&'s Arc<ModuleSet>>)> {
        self.modules_from.iter().enumerate().rev().map(|(index, name)| (index, name, sets.get(name)))
    }

    /// The set that a module of the resource comes from: the first that has it, unless the resource has its own.
    fn set_module(&self, sets: &BTreeMap<String, Arc<ModuleSet>>, field: &str) -> Option<SetModule> {
        let slot = self.kind.info().slot(field).filter(|slot| self.spec.module(slot).is_none())?;
        let has = |set: &ModuleSet| set.modules.iter().any(|(other, _)| *other == slot);
        let (index, set, _) = self.sets(sets).find(|(.., set)| set.is_some_and(|set| has(set)))?;
        Some(SetModule { set: set.clone(), index })
    }
}

impl Resolution {
    /// The origin of a lint's subject.
    pub(crate) fn origin(&self, subject: &Subject) -> Option<&Origin> {
        match subject {
            Subject::Resource(key) => Some(&self.origins.get(key)?.origin),
            Subject::ModuleSet(name) => Some(&self.sets.get(name)?.origin),
        }
    }

    /// The lint levels that a manifest sets for a subject.
    pub(crate) fn levels(&self, subject: &Subject) -> Option<&BTreeMap<String, Level>> {
        match subject {
            Subject::Resource(key) => Some(&self.origins.get(key)?.facts.levels),
            Subject::ModuleSet(name) => Some(&self.sets.get(name)?.facts.levels),
        }
    }

    /// The module from a set that contains a path of a resource.
    pub(crate) fn set_module(&self, subject: &Subject, path: &Path) -> Option<SetModule> {
        let (Subject::Resource(key), Some(Segment::Key(field))) = (subject, path.0.first()) else { return None };
        self.origins.get(key)?.set_module(&self.sets, field)
    }

    /// Whether a module set is in a surrounding manifest, whose findings are for its owner.
    pub(crate) fn is_surrounding(&self, set: &str) -> bool {
        self.sets.get(set).is_some_and(|set| set.origin.file.is_surrounding)
    }

    /// The place of a field: in the module set that it comes from, or in the resource.
    pub(crate) fn place(&self, subject: &Subject, path: &Path, aim: FaultTarget) -> Option<Place> {
        let module = self.set_module(subject, path);
        let set = module.and_then(|module| Some(&self.sets.get(&module.set)?.origin));
        Some(set.or_else(|| self.origin(subject))?.place(path, aim))
    }

    /// The place where a route takes a module from a set.
    pub(crate) fn place_of_use(&self, subject: &Subject, module: &SetModule) -> Option<Place> {
        Some(self.origin(subject)?.place(&("modules_from", module.index).into(), FaultTarget::Value))
    }

    /// The place in the resource itself that causes a field: its own, or where it takes the module from a set, with the
    /// field in the set as a related place.
    pub(crate) fn place_inside(
        &self,
        subject: &Subject,
        path: &Path,
        aim: FaultTarget,
    ) -> Option<(Place, Option<(Place, String)>)> {
        match self.set_module(subject, path) {
            Some(module) => {
                let field = self.place(subject, path, aim)?;
                Some((self.place_of_use(subject, &module)?, Some((field, FROM_SET.to_owned()))))
            }
            None => Some((self.origin(subject)?.place(path, aim), None)),
        }
    }

    /// A fault of a resource as an error at its line.
    pub(crate) fn diagnostic(&self, subject: &Subject, fault: Fault) -> Option<Diagnostic> {
        let Some(module) = self.set_module(subject, &fault.path) else {
            return Some(self.origin(subject)?.diagnostic(fault));
        };
        let mut diagnostic = self.sets.get(&module.set)?.origin.diagnostic(fault);
        let field = std::mem::replace(&mut diagnostic.place, self.place_of_use(subject, &module));
        diagnostic.relate(field.map(|field| (field, FROM_SET.to_owned())));
        Some(diagnostic)
    }
}

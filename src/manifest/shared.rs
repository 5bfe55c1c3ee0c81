//! Modules that routes take from module sets, and the places of their fields: in the set's file, not in the route's.

use std::collections::BTreeMap;

use super::{
    Origin,
    declaration::{Declaration, ModuleSet},
    resolve::Resolved,
};
use crate::{
    lint::Subject,
    model::{
        diagnostic::{Diagnostic, Place},
        fault::{Aim, Fault, Path, Segment},
    },
};

/// The label of a field in a module set, related to a place in a route.
const FROM_SET: &str = "from this module set";

/// A module that a route takes from a module set.
#[derive(Debug, Clone)]
pub(crate) struct SetModule {
    /// The module's field.
    field: &'static str,
    /// The set's name.
    pub set: String,
    /// The index of the set in the route's `modules_from`.
    index: usize,
}

/// Returns the modules that a declaration takes from sets: later sets override earlier ones, and its own modules override
/// all.
pub(super) fn set_modules(declaration: &Declaration, sets: &BTreeMap<String, ModuleSet>) -> Vec<SetModule> {
    let mut taken: Vec<SetModule> = Vec::new();
    for (index, name) in declaration.modules_from.iter().enumerate().rev() {
        let Some(set) = sets.get(name) else { continue };
        for (slot, _) in &set.modules {
            if declaration.spec.module(slot).is_none() && taken.iter().all(|it| it.field != slot.name) {
                taken.push(SetModule { field: slot.name, set: name.clone(), index });
            }
        }
    }
    taken
}

impl Resolved {
    /// The origin of a lint's subject.
    pub(crate) fn origin(&self, subject: &Subject) -> Option<&Origin> {
        match subject {
            Subject::Resource(key) => self.origins.get(key),
            Subject::ModuleSet(name) => self.set_origins.get(name),
        }
    }

    /// The module from a set that contains a path of a resource.
    pub(crate) fn set_module(&self, subject: &Subject, path: &Path) -> Option<&SetModule> {
        let (Subject::Resource(key), Some(Segment::Key(field))) = (subject, path.0.first()) else { return None };
        self.set_modules.get(key)?.iter().find(|it| it.field == field.as_str())
    }

    /// The place of a field: in the module set that it comes from, or in the resource.
    pub(crate) fn place(&self, subject: &Subject, path: &Path, aim: Aim) -> Option<Place> {
        let set = self.set_module(subject, path).and_then(|module| self.set_origins.get(&module.set));
        Some(set.or_else(|| self.origin(subject))?.place(path, aim))
    }

    /// The place where a route takes a module from a set.
    pub(crate) fn place_of_use(&self, subject: &Subject, module: &SetModule) -> Option<Place> {
        let path = Path::root().join("modules_from").join(module.index);
        Some(self.origin(subject)?.place(&path, Aim::Value))
    }

    /// The place in the resource itself that causes a field: its own, or where it takes the module from a set, with the
    /// field in the set as a related place.
    pub(crate) fn place_inside(
        &self,
        subject: &Subject,
        path: &Path,
        aim: Aim,
    ) -> Option<(Place, Option<(Place, String)>)> {
        match self.set_module(subject, path) {
            Some(module) => {
                let field = self.place(subject, path, aim)?;
                Some((self.place_of_use(subject, module)?, Some((field, FROM_SET.to_owned()))))
            }
            None => Some((self.origin(subject)?.place(path, aim), None)),
        }
    }

    /// A fault of a resource as an error at its line.
    pub(crate) fn diagnostic(&self, subject: &Subject, fault: Fault) -> Option<Diagnostic> {
        let Some(module) = self.set_module(subject, &fault.path) else {
            return Some(self.origin(subject)?.diagnostic(fault));
        };
        let mut diagnostic = self.set_origins.get(&module.set)?.diagnostic(fault);
        let field = std::mem::replace(&mut diagnostic.place, self.place_of_use(subject, module));
        diagnostic.related.extend(field.map(|field| (field, FROM_SET.to_owned())));
        Some(diagnostic)
    }
}

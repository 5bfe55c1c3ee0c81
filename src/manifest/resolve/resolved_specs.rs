//! What a Spec becomes with module sets and identifiers, kept from run to run of a followed source: a Spec that is still
//! the same is not judged again (D74).

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    manifest::load::declaration::ModuleSet,
    model::{id::Id, resource::AnyResource},
};

/// The resolved forms of a spec, each kept while what it is made of is the same.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// With the modules of sets.
    with_sets: KeptSpec<Vec<Arc<ModuleSet>>>,
    /// This form, or the spec itself, with identifiers in place of names.
    with_ids: KeptSpec<(Arc<dyn AnyResource>, Vec<Id>)>,
}

/// A spec, and what it was made of.
#[derive(Debug)]
struct KeptSpec<F>(Mutex<Option<(F, Arc<dyn AnyResource>)>>);

impl<F> Default for KeptSpec<F> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<F> KeptSpec<F> {
    fn of(
        &self,
        from: F,
        is_same: impl FnOnce(&F, &F) -> bool,
        make: impl FnOnce(&F) -> Arc<dyn AnyResource>,
    ) -> Arc<dyn AnyResource> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((earlier, spec)) = kept.as_ref()
            && is_same(earlier, &from)
        {
            return Arc::clone(spec);
        }
        let spec = make(&from);
        *kept = Some((from, Arc::clone(&spec)));
        spec
    }
}

/// A copy is made to differ, so it starts anew.
impl Clone for Merged {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Merged {
    /// The spec with these sets, made only if they differ from the last ones.
    pub(super) fn with_sets(
        &self,
        sets: Vec<Arc<ModuleSet>>,
        make: impl FnOnce() -> Arc<dyn AnyResource>,
    ) -> Arc<dyn AnyResource> {
        let are_same = |one: &Vec<_>, other: &Vec<_>| one.iter().map(Arc::as_ptr).eq(other.iter().map(Arc::as_ptr));
        self.with_sets.of(sets, are_same, |_| make())
    }

    /// A spec with these identifiers as the targets of its references, made only if the spec or a target differs from
    /// the last ones.
    pub(super) fn with_ids(
        &self,
        spec: Arc<dyn AnyResource>,
        targets: Vec<Id>,
        make: impl FnOnce(&dyn AnyResource, &[Id]) -> Arc<dyn AnyResource>,
    ) -> Arc<dyn AnyResource> {
        let is_same =
            |one: &(Arc<_>, Vec<Id>), other: &(Arc<_>, Vec<Id>)| Arc::ptr_eq(&one.0, &other.0) && one.1 == other.1;
        self.with_ids.of((spec, targets), is_same, |(spec, targets)| make(spec.as_ref(), targets))
    }
}

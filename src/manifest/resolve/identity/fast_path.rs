//! The ids that are chosen without a look at other declarations, on all cores: nearly all of them.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use super::{Known, Wanted, choose_together, derived};
use crate::{
    manifest::load::declaration::Declaration,
    model::{Kind, diagnostics::diagnostic::Diagnostic, id::Id, key::Key, snapshot::Entry},
};

/// What is special about the identity of a declared resource.
#[derive(Default)]
pub(in crate::manifest) struct Special {
    /// The former name, if declared resources swap names.
    pub renamed_from: Option<String>,
    /// The index of the declared resource that gives up this one's name.
    pub after: Option<usize>,
    pub fault: Option<Diagnostic>,
    /// Position of a declared resource that claims the same former name: neither can be meant.
    pub rival: Option<usize>,
    /// The resource of the name that has other immutable content.
    pub replaces: Option<Key>,
}

impl Special {
    pub(super) fn is_empty(&self) -> bool {
        let Self { renamed_from, after, fault, rival, replaces } = self;
        renamed_from.is_none() && after.is_none() && fault.is_none() && rival.is_none() && replaces.is_none()
    }
}

/// Chooses the ids of all declared resources of one kind, and returns what is special about some of them, by their
/// positions. Nearly always, each was judged alone.
pub(in crate::manifest) fn choose<'a>(known: &Known<'a>, wanted: &mut [Wanted<'a>]) -> HashMap<usize, Special> {
    if wanted.iter().all(|it| it.is_alone) {
        return HashMap::new();
    }
    let (ids, specials) = choose_together(known, wanted);
    let snapshot = known.snapshot;
    wanted.par_iter_mut().zip(ids).with_min_len(256).for_each(|(it, id)| {
        it.key.id = id;
        it.entry = snapshot.get(&it.key);
        it.is_plain = false;
        it.settle();
    });
    specials
}

/// The id of a declared resource, and the resource in the store that has it, if no other declaration of the kind can claim
/// them: it has a name of its own, which its source has used before or which is new. This holds only as long as it does for
/// all declarations of the kind. `fixed` is the immutable content.
pub(super) fn alone<'a>(
    known: &Known<'a>,
    declaration: &Declaration,
    parent: Option<&Id>,
    fixed: &[String],
) -> Option<(Id, Option<&'a Arc<Entry>>)> {
    let (kind, name) = (declaration.kind, &*declaration.name);
    let is_renamed = declaration.renamed_from.as_deref().is_some_and(|former| former != name);
    if kind == Kind::EventSource || declaration.id.is_some() || is_renamed || !fixed.is_empty() {
        return None;
    }
    let own = known.named(kind, parent, name).find(|entry| entry.is_owned_by(known.source));
    if let Some(entry) = own {
        return Some((entry.key.id.clone(), Some(entry)));
    }
    let mut others = known.named(kind, parent, name).chain(known.handed_over(kind, parent, name));
    let concern = |claim| declaration.transfer.concern(claim, known.source);
    if others.any(|entry| entry.claim.as_deref().is_some_and(concern)) {
        return None;
    }
    let id = derived(kind, parent, name, fixed, 0);
    let key = Key { kind, parent: parent.cloned(), id };
    // It may have had another name before.
    known.snapshot.get(&key).is_none().then_some((key.id, None))
}

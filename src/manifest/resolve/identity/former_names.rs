//! The resources of other sources that a declaration is about, and those that it replaces (D104).

use std::sync::Arc;

use foldhash::HashMap;

use super::{Chooser, Known, Wanted};
use crate::model::{Kind, id::Id, snapshot::Entry};

/// Resources that a source has handed over and that have another name since, by kind, parent and the name they had.
pub(super) type FormerNames<'a> = HashMap<(Kind, Option<&'a Id>, &'a str), Vec<&'a Arc<Entry>>>;

impl<'a> Known<'a> {
    pub(super) fn handed_over<'k>(
        &'k self,
        kind: Kind,
        parent: Option<&'k Id>,
        name: &'k str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + use<'k, 'a> {
        let index = self.handed_over.get_or_init(|| {
            let mut index = FormerNames::default();
            let (snapshot, source) = (self.snapshot, self.source);
            for entry in snapshot.iter() {
                let claim = entry.claim.as_deref().filter(|claim| claim.transferred_from.as_deref() == Some(source));
                if let Some(name) = claim.and_then(|claim| claim.transferred_as.as_deref()) {
                    index.entry((entry.key.kind, entry.key.parent.as_ref(), name)).or_default().push(entry);
                }
            }
            index
        });
        index.get(&(kind, parent, name)).into_iter().flatten().copied()
    }
}

impl<'k, 'a> Chooser<'k, 'a> {
    /// The resource of another source that a declaration is about.
    pub(super) fn of_other_source(&self, it: &Wanted<'_>) -> Option<&'k Entry> {
        self.concerned(it, |entry| it.fits(entry))
    }

    /// The resource that a declaration is about and that it cannot update, because immutable content differs.
    pub(super) fn predecessor(&self, it: &Wanted<'_>) -> Option<&'k Entry> {
        if it.fixed.is_empty() {
            return None;
        }
        let known: &'k Known<'a> = self.known;
        let own = [Some(it.name()), it.former()].into_iter().flatten().find_map(|name| {
            let mut named = known.named(it.declaration.kind, it.parent(), name);
            let old = named
                .find(|entry| entry.is_owned_by(known.source) && !self.is_taken(it, &entry.key) && !it.fits(entry));
            old.map(|entry| entry.as_ref())
        });
        own.or_else(|| self.concerned(it, |entry| !it.fits(entry)))
    }

    /// The resource of another source that has or had the name of a declaration, or its former one, if it is meant.
    fn concerned(&self, it: &Wanted<'_>, is_meant: impl Fn(&Entry) -> bool) -> Option<&'k Entry> {
        let known: &'k Known<'a> = self.known;
        let (kind, parent) = (it.declaration.kind, it.parent());
        [Some(it.name()), it.former()].into_iter().flatten().find_map(|name| {
            let mut named = known.named(kind, parent, name).chain(known.handed_over(kind, parent, name));
            let moved = named.find(|entry| {
                let claim = entry.claim.as_deref();
                claim.is_some_and(|claim| it.declaration.transfer.concern(claim, known.source))
                    && !self.is_taken(it, &entry.key)
                    && is_meant(entry)
            });
            moved.map(|entry| entry.as_ref())
        })
    }
}

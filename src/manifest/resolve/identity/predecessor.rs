//! The resources of other sources that a declaration is about, and those that it replaces (D104).

use super::{DeclaredResource, IdChooser, StoreNames};
use crate::model::snapshot::Entry;

impl<'k, 'a> IdChooser<'k, 'a> {
    /// The resource of another source that a declaration is about.
    pub(super) fn find_transferred(&self, it: &DeclaredResource<'_>) -> Option<&'k Entry> {
        self.find_concerned(it, |entry| it.fits(entry))
    }

    /// The resource that a declaration is about and that it cannot update, because immutable content differs.
    pub(super) fn find_predecessor(&self, it: &DeclaredResource<'_>) -> Option<&'k Entry> {
        if it.fixed.is_empty() {
            return None;
        }
        let known: &'k StoreNames<'a> = self.known;
        let own = [Some(it.name()), it.former()].into_iter().flatten().find_map(|name| {
            let mut named = known.named(it.declaration.kind, it.parent(), name);
            let old = named
                .find(|entry| entry.is_owned_by(known.source) && !self.is_taken(it, &entry.key) && !it.fits(entry));
            old.map(|entry| entry.as_ref())
        });
        own.or_else(|| self.find_concerned(it, |entry| !it.fits(entry)))
    }

    /// The resource of another source that has or had the name of a declaration, or its former one, if it is meant.
    fn find_concerned(&self, it: &DeclaredResource<'_>, is_meant: impl Fn(&Entry) -> bool) -> Option<&'k Entry> {
        let known: &'k StoreNames<'a> = self.known;
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

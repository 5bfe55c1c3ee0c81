//! Which secrets a caller sees (D101).

use crate::model::required_secrets::{has_secrets, lacks_record, required_modules};
use crate::model::{AnyResource, Entry, KeyScope, Slot};
use crate::server::auth::caller::Caller;
use crate::server::prelude::*;

/// The resources whose secrets a caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretVisibility {
    /// None.
    Nothing,
    /// The resources of the sources that a scope may apply.
    OfSources(Arc<KeyScope>),
    /// All.
    Everything,
}

impl SecretVisibility {
    /// The visibility of secrets for a caller.
    pub(in crate::server) fn from_caller(caller: &Caller) -> Self {
        match &caller.scope {
            _ if !caller.role.sees_secrets() => Self::Nothing,
            None => Self::Everything,
            Some(scope) if scope.secrets => Self::Everything,
            Some(scope) if scope.apply.is_empty() => Self::Nothing,
            Some(scope) => Self::OfSources(Arc::clone(scope)),
        }
    }

    /// The caller's visibility of earlier states. A source may have had another owner's resources, or the reverse, so
    /// that a caller who does not see everything sees nothing.
    pub(in crate::server) fn for_earlier_state(self) -> Self {
        if self == Self::Everything { self } else { Self::Nothing }
    }

    /// The caller's visibility of the state of a revision, if the store is at another one.
    pub(in crate::server) fn for_revision(self, revision: u64, current: u64) -> Self {
        if revision == current { self } else { self.for_earlier_state() }
    }

    /// Whether the caller sees the secrets of a resource itself.
    pub(in crate::server) fn sees(&self, entry: &Entry) -> bool {
        *self == Self::Everything || entry.claim.as_deref().is_some_and(|claim| self.sees_source(&claim.source))
    }

    /// Whether the caller sees the secrets of all resources of a source.
    pub(in crate::server) fn sees_source(&self, source: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::Everything => true,
            Self::OfSources(scope) => scope.may_apply(source),
        }
    }

    /// Whether a plan of a source that the caller may apply compares the secrets of a resource, as the plan that is applied does.
    /// The caller need not see those that an edge requires: the edge has set both of them, and neither is a guess (D103). One of
    /// unknown origin could be compared with a guess.
    pub(in crate::server) fn compares(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        self.sees(entry) && self.knows_origin(snapshot, entry, None)
    }

    /// Whether a resource is shown with its secrets. Its View has its children, which others may own, and a route has the
    /// modules that its edge requires.
    pub(in crate::server) fn shows(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        self.sees(entry)
            && match (self, entry.key.kind.facts().children) {
                (SecretVisibility::OfSources(_), Some(_)) => {
                    snapshot.children(&entry.key).all(|child| self.sees(child) && self.sees_copied(child, None))
                }
                (SecretVisibility::OfSources(_), None) => self.sees_required(snapshot, entry, None),
                _ => true,
            }
    }

    /// How the secrets of a module of a resource are written.
    pub(in crate::server) fn secrets(&self, snapshot: &Snapshot, entry: &Entry, slot: &Slot) -> Secrets<'static> {
        let shown = self.sees(entry) && self.sees_required(snapshot, entry, Some(slot));
        if shown { Secrets::Revealed } else { Secrets::Masked }
    }

    /// Whether the caller sees the secrets that the edge of a route requires of it, has required, or may have required, in one
    /// slot or in all: they are those of the edge's source (D103).
    fn sees_required(&self, snapshot: &Snapshot, entry: &Entry, slot: Option<&Slot>) -> bool {
        if !self.sees_recorded(snapshot, entry, slot) {
            return false;
        }
        let Some(edge) = entry.key.parent_key().and_then(|parent| snapshot.get(&parent)) else { return true };
        if self.sees(edge) {
            return true;
        }
        required_modules(edge).is_none_or(|required| !has_secrets_in(required, slot))
    }

    /// Like [`sees_required`](Self::sees_required), for the secrets that a route has from its edge already. Without a record,
    /// these may be any.
    pub(in crate::server) fn sees_recorded(&self, snapshot: &Snapshot, entry: &Entry, slot: Option<&Slot>) -> bool {
        self.sees_copied(entry, slot) && self.knows_origin(snapshot, entry, slot)
    }

    /// Whether the secrets of a resource, in one slot or in all, have a known origin, or one that the caller sees in any case.
    fn knows_origin(&self, snapshot: &Snapshot, entry: &Entry, slot: Option<&Slot>) -> bool {
        let edge = || entry.key.parent_key().and_then(|parent| snapshot.get(&parent));
        !lacks_record(snapshot, entry)
            || edge().is_some_and(|edge| self.sees(edge))
            || !has_secrets_in(entry.spec().as_ref(), slot)
    }

    /// Whether the caller sees the secrets that were copied from an edge into a route, in one slot or in all.
    fn sees_copied(&self, entry: &Entry, slot: Option<&Slot>) -> bool {
        let copied = entry.claim.iter().filter_map(|claim| claim.required_secrets.as_deref()).flatten();
        let mut copied = copied.filter(|(name, _)| slot.is_none_or(|slot| slot.name == name.as_str()));
        copied.all(|(_, source)| self.sees_source(source))
    }
}

/// Whether a resource has secrets in a slot, or in any.
fn has_secrets_in(resource: &dyn AnyResource, slot: Option<&Slot>) -> bool {
    resource.modules().any(|(it, module)| slot.is_none_or(|slot| slot == it) && has_secrets(module))
}

//! The rights of an actor over resources that are not its own: those of other sources, and those of no source (D101,
//! D112).
//!
//! An API key and a followed repository are actors of the same kind. What either may do is a [`KeyScope`]: the sources
//! that it may apply, the kinds of resources without a source that it may change, and whether it may change what acts
//! on all. [`Rights::check`] judges the operations of a change whatever they come from: a request, a plan, a rollback
//! or a transfer.
//!
//! For example, a plan of `docs` deletes a certificate that no source owns. The key has `apply: [docs]` and `kinds:
//! [TlsCertificate]`, and is refused for lack of `global`: edges of other sources may present that certificate.
//!
//! An ID does not show whether a manifest states it, and so claims what may be somebody else's, or whether it derives from
//! a name. Planning says which ones are stated (`Plan::stated`).

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};

use super::delegation::{consents_to_present, delegates};
use super::host_allowlist::{unlisted_host, unowned_edge};
use crate::model::key_scope::WriteAction;
use crate::model::required_secrets::has_secrets;
use crate::model::{Claim, Entry, HttpsEdge, Key, KeyScope, Kind, Operation, Slot, Snapshot};
use crate::syntax::text::printable;

/// The kind of change whose operations are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeOrigin {
    /// A request for a single resource.
    Request,
    /// A plan, a rollback or a transfer of an API key.
    Plan,
    /// The plan of a followed source. It changes resources of other sources only with their consent, so planning has judged
    /// those.
    Followed,
}

/// The rights of an actor.
pub(crate) struct Rights<'a> {
    /// The scope of the actor.
    pub scope: &'a KeyScope,
    /// The origin of its operations.
    pub origin: ChangeOrigin,
    /// The resources whose manifests state their ID, or that of their subscription. The ID itself does not tell: one that is
    /// derived from a name looks the same.
    pub stated: &'a BTreeSet<Key>,
}

/// An operation that the rights of an actor do not include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denied {
    /// To do something to a source: the verb and the source.
    Source(String, String),
    /// To do something to resources of a kind that no source owns: the verb and the kind.
    Unowned(&'static str, Kind),
    /// To do something to resources of a kind that act on every source: the verb and the kind.
    Global(&'static str, Kind),
    /// To change a certificate that no source owns.
    Certificate,
    /// To adopt a resource with secrets.
    Secrets(Key),
    /// To replace a module that has a secret in a resource that no source owns.
    Secret(Key, &'static str),
    /// To declare a new resource by its ID, which no source is known to have had.
    Stated(Key),
    /// To create a resource with an ID that another source was the last to have: the resource and that source.
    Former(Key, String),
    /// To make such a change to single resources.
    Action(&'static str),
    /// To take a host for an edge.
    Host(String),
}

/// Says what the actor may not do.
impl Display for Denied {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(verb, source) => write!(f, "{verb} source `{}`", printable(source)),
            Self::Unowned(verb, kind) => write!(f, "{verb} resources of kind {kind} that no source owns"),
            Self::Global(verb, kind) => write!(f, "{verb} resources of kind {kind}, which act on every source"),
            Self::Certificate => f.write_str("change a certificate that no source owns"),
            Self::Secrets(key) => write!(f, "adopt {key}, which has secrets"),
            Self::Secret(key, module) => write!(f, "replace `{module}` of {key}, which has a secret and no source"),
            Self::Stated(key) => write!(f, "declare {key} by its ID"),
            Self::Former(key, source) => {
                write!(f, "create {key}, whose ID source `{}` was the last to have", printable(source))
            }
            Self::Action(verb) => write!(f, "{verb} single resources"),
            Self::Host(host) => write!(f, "serve `{}`, which is not in `hosts`", printable(host)),
        }
    }
}

impl Rights<'_> {
    /// Returns the first thing that operations on a state do and these rights do not include, with its resource.
    pub(crate) fn check<O: Borrow<Operation>>(
        &self,
        current: &Snapshot,
        operations: &[O],
    ) -> Result<(), (Key, Denied)> {
        self.denied(current, operations).next().map_or(Ok(()), Err)
    }

    /// Returns everything that operations on a state do and these rights do not include, each with its resource.
    pub(crate) fn denied<'c, O: Borrow<Operation>>(
        &'c self,
        current: &'c Snapshot,
        operations: &'c [O],
    ) -> impl Iterator<Item = (Key, Denied)> {
        // An implicit resource is created by its first module, and claimed after it.
        let mut claims: HashMap<&Key, &Claim> = HashMap::new();
        for operation in operations {
            if let Operation::Claim { key, claim: Some(claim) } = Borrow::<Operation>::borrow(operation) {
                claims.insert(key, claim);
            }
        }
        let check = OperationCheck { rights: self, current, claims };
        operations.iter().filter_map(move |operation| check.denied(Borrow::<Operation>::borrow(operation)))
    }
}

struct OperationCheck<'a> {
    rights: &'a Rights<'a>,
    current: &'a Snapshot,
    /// The claims that the operations give.
    claims: HashMap<&'a Key, &'a Claim>,
}

impl OperationCheck<'_> {
    /// Returns an effect of an operation that the rights do not include, with its resource.
    fn denied(&self, operation: &Operation) -> Option<(Key, Denied)> {
        let host = || unlisted_host(&self.rights.scope.hosts, self.current, operation).map(Denied::Host);
        let denied = self.check_operation(operation).err().or_else(host)?;
        Some((operation.key().clone(), denied))
    }

    fn check_operation(&self, operation: &Operation) -> Result<(), Denied> {
        let key = operation.key();
        if key.kind == Kind::Owner {
            return Ok(());
        }
        let entry = match (operation, self.current.get(key)) {
            (Operation::Create { .. }, _) | (_, None) => return self.check_creation(operation),
            (_, Some(entry)) => entry,
        };
        let action = match operation {
            Operation::Delete { .. } => WriteAction::Delete,
            _ => WriteAction::Update,
        };
        self.check_write(key.kind, self.owner(entry), action)?;
        self.check_edge(entry, operation)?;
        match operation {
            Operation::Claim { claim: Some(claim), .. } => self.check_claim(entry, claim),
            // A resource that loses its owner counts as created without one.
            Operation::Claim { claim: None, .. } => {
                self.check_write(key.kind, None, WriteAction::Create)?;
                self.check_release(key)?;
                self.check_unowned_certificate(key.kind)
            }
            Operation::Delete { .. } => {
                if entry.claim.is_none() {
                    self.check_unowned_certificate(key.kind)?;
                }
                // A deletion takes the children with it, whoever owns them.
                self.current.children(key).try_for_each(|child| match (child.source(), &entry.claim) {
                    // A route without a source belongs to its edge.
                    (None, Some(_)) => Ok(()),
                    (source, _) => {
                        let permitted = self.check_write(child.key.kind, source, WriteAction::Delete);
                        permitted.map_err(|denied| match denied {
                            Denied::Source(_, source) => Denied::Source(format!("delete {} of", child.key), source),
                            other => other,
                        })
                    }
                })
            }
            Operation::PutModule { slot, .. } => self.check_secret(entry, slot),
            Operation::Patch { spec, fields, .. } => {
                let mut set = spec.modules().filter(|(slot, _)| fields.iter().any(|field| field == slot.name));
                set.try_for_each(|(slot, _)| self.check_secret(entry, slot))
            }
            _ => Ok(()),
        }
    }

    /// Checks the replacement of a module. The history tells whether its secret changed, and so whether a guess is right.
    fn check_secret(&self, entry: &Entry, slot: &Slot) -> Result<(), Denied> {
        // An adoption is judged by its claim, and whoever may apply a source sees its secrets.
        let is_judged = entry.claim.is_none() && !self.claims.contains_key(&entry.key);
        if is_judged && !self.rights.scope.secrets && entry.spec().module(slot).is_some_and(has_secrets) {
            return Err(Denied::Secret(entry.key.clone(), slot.name));
        }
        Ok(())
    }

    /// Checks the creation of a resource. Another operation on a resource that does not exist fails for that.
    fn check_creation(&self, operation: &Operation) -> Result<(), Denied> {
        let key = operation.key();
        let claim = match operation {
            Operation::Create { claim, .. } => claim.as_deref().or_else(|| self.claims.get(key).copied()),
            Operation::PutModule { .. } | Operation::Claim { .. } => self.claims.get(key).copied(),
            _ => return Ok(()),
        };
        let source = claim.map(|claim| claim.source.as_str());
        // Before anybody declares a subscription, nobody can tell whose it is.
        if let Some(subscription) = key.parent_key().filter(|parent| parent.kind == Kind::EventSubscription)
            && self.rights.stated.contains(key)
            && !self.rights.scope.may_write(key.kind)
            && self.current.children(&subscription).next().is_none()
        {
            return Err(Denied::Stated(subscription));
        }
        // The owner of the place is named first: a single request has no source.
        self.check_place(key, source)?;
        self.check_write(key.kind, source, WriteAction::Create)?;
        match claim {
            Some(claim) => self.check_id(key, claim),
            None => self.check_unowned_certificate(key.kind),
        }
    }

    /// Checks the place that a resource gets as one of a source, or of none: a route changes what its edge does.
    fn check_place(&self, key: &Key, source: Option<&str>) -> Result<(), Denied> {
        let Some(parent) = key.parent_key() else { return Ok(()) };
        // A subscription is in another system: it belongs to those who have its event sources.
        if parent.kind == Kind::EventSubscription {
            let mut others = self.current.children(&parent);
            return others.try_for_each(|other| self.check_parent(key.kind, self.owner(other), source));
        }
        // Planning checks the paths that the edge delegates.
        if source.is_some_and(|source| delegates(self.current, key, source)) {
            return Ok(());
        }
        let parent = self.current.get(&parent);
        parent.map_or(Ok(()), |parent| self.check_parent(parent.key.kind, self.owner(parent), source))
    }

    /// Checks the place of a resource that loses its source. On an edge without one, a route goes back to where it was adopted, and
    /// its requests stay the same: whoever may adopt and change such routes may release them, too.
    fn check_release(&self, key: &Key) -> Result<(), Denied> {
        let parent = key.parent_key();
        let is_in_place = parent.is_some_and(|parent| unowned_edge(self.current, &parent).is_some());
        if is_in_place { Ok(()) } else { self.check_place(key, None) }
    }

    /// Whether the actor may add something for a source to what `owner` has. Planning leaves this to the rights of a followed
    /// source.
    fn check_parent(&self, kind: Kind, owner: Option<&str>, source: Option<&str>) -> Result<(), Denied> {
        match owner {
            Some(owner) if source != Some(owner) && !self.rights.scope.may_apply(owner) => {
                Err(Denied::Source("update resources of".to_owned(), owner.to_owned()))
            }
            _ => self.check_write(kind, owner, WriteAction::Update),
        }
    }

    /// The source that owns a resource, or that takes it over by these operations because its owner has promised it (D104).
    fn owner<'e>(&self, entry: &'e Entry) -> Option<&'e str> {
        let receiver = entry.claim.as_deref().and_then(Claim::receiver);
        let taken_by = self.claims.get(&entry.key).map(|claim| claim.source.as_str());
        receiver.filter(|receiver| taken_by == Some(receiver)).or_else(|| entry.source())
    }

    /// Checks a change of a route without a source, and another match of any route on an edge that no source owns: as when it
    /// is created, it changes what its edge does.
    fn check_edge(&self, route: &Entry, operation: &Operation) -> Result<(), Denied> {
        let Some(edge) = route.key.parent_key().and_then(|parent| self.current.get(&parent)) else { return Ok(()) };
        let taken_by = self.claims.get(&route.key).map(|claim| claim.source.as_str());
        // A plan that adopts the route: planning has checked the path that it will have and its present one, and a rollback asks for
        // its present one here, because requests for it lose the route.
        let is_delegated = || {
            let edge = edge.spec_as::<HttpsEdge>();
            taken_by.zip(edge).is_some_and(|(source, edge)| consents_to_present(edge, source, route))
        };
        let is_judged = match edge.claim {
            None => moves_route(operation),
            Some(_) => route.claim.is_none() && !is_delegated(),
        };
        if is_judged { self.check_parent(edge.key.kind, self.owner(edge), taken_by) } else { Ok(()) }
    }

    /// Checks the ID of a new resource of a source. One that another source had last stays that one's, whoever may take over what no
    /// source owns: the SAML key of a route derives from it. One that a manifest states and nobody had can be one that another
    /// source will have, or a record of another system.
    fn check_id(&self, key: &Key, claim: &Claim) -> Result<(), Denied> {
        let Rights { scope, stated, .. } = self.rights;
        // The ID of an event source is its type.
        if key.kind == Kind::EventSource {
            return Ok(());
        }
        match self.current.former_source(key) {
            Some(former) if former == claim.source || scope.may_apply(former) => Ok(()),
            Some(former) => Err(Denied::Former(key.clone(), former.to_owned())),
            None if !stated.contains(key) || scope.may_write(key.kind) => Ok(()),
            None => Err(Denied::Stated(key.clone())),
        }
    }

    /// Checks a certificate without a source: edges of everybody present it for hosts that have no other one.
    fn check_unowned_certificate(&self, kind: Kind) -> Result<(), Denied> {
        // For a followed source, the kinds that it may adopt decide.
        let is_judged = kind == Kind::TlsCertificate && self.rights.origin != ChangeOrigin::Followed;
        if is_judged && !self.rights.scope.global { Err(Denied::Certificate) } else { Ok(()) }
    }

    /// Whether the actor may make such a change to a resource of a source, or of none.
    fn check_write(&self, kind: Kind, source: Option<&str>, action: WriteAction) -> Result<(), Denied> {
        let Rights { scope, origin, .. } = self.rights;
        let verb = action.as_str();
        match source {
            Some(source) if !scope.may_apply(source) && *origin != ChangeOrigin::Followed => {
                return Err(Denied::Source(format!("{verb} resources of"), source.to_owned()));
            }
            None if !scope.may_write(kind) => return Err(Denied::Unowned(verb, kind)),
            _ => {}
        }
        if kind.facts().global && !scope.global {
            return Err(Denied::Global(verb, kind));
        }
        if *origin == ChangeOrigin::Request && !scope.may_do(action) {
            return Err(Denied::Action(verb));
        }
        Ok(())
    }

    /// Whether the actor may give a resource to a source. From then on it sees the secrets of the resource.
    fn check_claim(&self, entry: &Entry, claim: &Claim) -> Result<(), Denied> {
        let Rights { scope, origin, .. } = self.rights;
        if !scope.may_apply(&claim.source) && *origin != ChangeOrigin::Followed {
            return Err(Denied::Source("give resources to".to_owned(), claim.source.clone()));
        }
        if entry.claim.is_some() {
            return Ok(());
        }
        self.check_unowned_certificate(entry.key.kind)?;
        if !scope.secrets && entry.lazy_spec.secret_count() > 0 {
            return Err(Denied::Secrets(entry.key.clone()));
        }
        Ok(())
    }
}

/// Whether an operation gives a route another match.
fn moves_route(operation: &Operation) -> bool {
    let Operation::Patch { key, fields, .. } = operation else { return false };
    key.kind == Kind::HttpsEdgeRoute && fields.iter().any(|field| field == "match" || field == "match_type")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

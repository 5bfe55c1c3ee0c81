//! Secrets that a route has from the edge of another source, and which secrets can be compared (D103).
//!
//! # The problem
//!
//! An edge copies the modules that it requires, secrets included, into the routes of other sources. The team of such a route
//! must not read the secret, but it can set one of its own in its place, and roll back to either. Whatever depends on whether
//! two secrets of the route are equal then tells the team whether its guess is right.
//!
//! # The idea
//!
//! The claim on a route records which of its modules have secrets of the edge, and whose they are. One rule follows, for plans,
//! rollbacks, the history and everything made from these: **a secret is compared only with one of the same origin**, which means
//! that the claims record the same source for the module, or none. Otherwise the two count as different, and a plan sets
//! the module in any case.
//!
//! A route on an edge of another source whose claim has no record, because an earlier version synced it, has secrets of unknown
//! origin: they are hidden as the edge's own, and compared with none. The next sync records their origin.
//!
//! For example, the edge of `shop` no longer requires `webhook_verification`, and `docs` sets that module with a guess. The plan,
//! the history of the commit and a rollback of it show the module as changed, whether the guess is right or not.
//!
//! # What it never does
//!
//! It decides by claims, slots and whether a module has a secret, and never by the value of one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claim::Claim;
use super::kind::Kind;
use super::kind::https_edge::HttpsEdge;
use super::module::{AnyModule, SharedModule, Slot};
use super::resource::any_resource::AnyResource;
use super::secrets::Secrets;
use super::snapshot::Snapshot;
use super::snapshot::entry::Entry;

/// The note at a change that sets modules without comparing their secrets.
pub(crate) const SET_IN_ANY_CASE: &str = "a secret that the edge requires is never compared with another one, so its \
                                          module is set in any case";

/// The record of a route on an edge of another source: the modules whose secrets the edge requires, and the source of the edge,
/// by the names of their slots. A route without secrets needs none.
pub(crate) fn required_secrets(edge: &Entry, route: &dyn AnyResource) -> Option<Arc<BTreeMap<String, String>>> {
    let required = edge.spec_as::<HttpsEdge>()?.required_modules.as_deref();
    if !route.modules().any(|(_, module)| has_secrets(module)) {
        return None;
    }
    let source = edge.source().unwrap_or_default();
    let is_copied = |slot: &Slot, module: &dyn AnyModule| {
        has_secrets(module) && route.module(slot).is_some_and(|own| own.same(module))
    };
    let mut record = BTreeMap::new();
    if let Some(required) = required {
        let required: &dyn AnyResource = required;
        let copied = required.modules().filter(|it| is_copied(it.0, it.1));
        record.extend(copied.map(|(slot, _)| (slot.name.to_owned(), source.to_owned())));
    }
    Some(Arc::new(record))
}

/// Whether nobody knows the origin of the secrets of a stored resource: it is a route on an edge of another source, without a
/// record.
pub(crate) fn lacks_record(state: &Snapshot, route: &Entry) -> bool {
    let claim = route.claim.as_deref().filter(|claim| claim.required_secrets.is_none());
    let Some(claim) = claim.filter(|_| route.key.kind == Kind::HttpsEdgeRoute) else { return false };
    let Some(edge) = route.key.parent_key() else { return false };
    state.get(&edge).is_some_and(|edge| !edge.is_owned_by(&claim.source))
}

/// Whether the secrets of a module can be compared between two states of a route, or between two routes.
pub(crate) fn are_comparable(one: (&Snapshot, &Entry), other: (&Snapshot, &Entry), slot: &Slot) -> bool {
    let is_known = |state: &Snapshot, route: &Entry| {
        !lacks_record(state, route) || !route.spec().module(slot).is_some_and(has_secrets)
    };
    let has_same_origin = || {
        let [origin, another] = [one.1, other.1].map(|route| recorded_source(route.claim.as_deref(), slot));
        origin == another
    };
    std::ptr::eq(one.1, other.1) || (has_same_origin() && is_known(one.0, one.1) && is_known(other.0, other.1))
}

/// The Spec with which a wanted one of a route is compared: the former one without the modules whose secrets cannot be
/// compared, so that they are set in any case. None if all can be.
pub(crate) fn without_incomparable(
    former: &Entry,
    lacks_record: bool,
    wanted: &dyn AnyResource,
    claim: Option<&Claim>,
) -> Option<Arc<dyn AnyResource>> {
    if former.key.kind != Kind::HttpsEdgeRoute {
        return None;
    }
    let is_incomparable = |slot: &Slot, module: &dyn AnyModule| {
        recorded_source(former.claim.as_deref(), slot) != recorded_source(claim, slot)
            || (lacks_record && has_secrets(module))
    };
    // What is removed is removed whatever it was.
    let set = former.spec().modules().filter(|(slot, _)| wanted.module(slot).is_some());
    let set = set.filter(|it| is_incomparable(it.0, it.1));
    let left_out: Vec<(&'static Slot, Option<SharedModule>)> = set.map(|(slot, _)| (slot, None)).collect();
    (!left_out.is_empty()).then(|| former.spec().with_modules(&left_out))
}

/// The source whose secret a module has, if a claim records it.
fn recorded_source<'c>(claim: Option<&'c Claim>, slot: &Slot) -> Option<&'c str> {
    claim?.required_secrets.as_deref()?.get(slot.name).map(String::as_str)
}

/// Whether a module has secrets.
pub(crate) fn has_secrets(module: &dyn AnyModule) -> bool {
    match (module.to_json(Secrets::Revealed), module.to_json(Secrets::Masked)) {
        (Ok(revealed), Ok(masked)) => revealed != masked,
        _ => true,
    }
}

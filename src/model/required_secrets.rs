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
//! A required module is **filled**: a route that has it but for its secrets gets the module of the edge, as it is by then, by a
//! sync and by a rollback alike. So neither a secret of the route's own nor one that the edge has replaced comes back, and the
//! record has what was filled, which no comparison of secrets decides.
//!
//! For example, the edge of `shop` no longer requires `webhook_verification`, and `docs` sets that module with a guess. The plan,
//! the history of the commit and a rollback of it show the module as changed, whether the guess is right or not.
//!
//! # What it never does
//!
//! It decides by claims, slots and whether a module has a secret, and never by the value of one. Only [`awaits_secrets`] compares
//! two: a secret that a route has from the edge, with the one that the stored edge has now. Manifests, and so guesses, have no
//! part in that.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::claim::Claim;
use super::kind::Kind;
use super::kind::https_edge::HttpsEdge;
use super::module::{AnyModule, SharedModule, Slot};
use super::resource::any_resource::AnyResource;
use super::secrets::Secrets;
use super::secrets::unknown_value::is_unknown;
use super::snapshot::Snapshot;
use super::snapshot::entry::Entry;

/// The note at a change that sets modules without comparing their secrets.
pub(crate) const SET_IN_ANY_CASE: &str = "a secret that the edge requires is never compared with another one, so its \
                                          module is set in any case";

/// The record of a route on an edge of another source: the modules whose secrets the edge requires, and the source of the edge,
/// by the names of their slots. A route without secrets needs none.
pub(crate) fn required_secrets(edge: &Entry, route: &dyn AnyResource) -> Option<Arc<BTreeMap<String, String>>> {
    let has_any = route.modules().any(|(_, module)| has_secrets(module));
    has_any.then(|| Arc::new(record_of(edge, route)))
}

fn record_of(edge: &Entry, route: &dyn AnyResource) -> BTreeMap<String, String> {
    let source = edge.source().unwrap_or_default();
    let filled = required_modules(edge).map(|required| filled(required, route)).unwrap_or_default();
    filled.into_iter().map(|slot| (slot.name.to_owned(), source.to_owned())).collect()
}

/// The modules that an edge requires of its routes.
pub(crate) fn required_modules(edge: &Entry) -> Option<&dyn AnyResource> {
    let required = edge.spec_as::<HttpsEdge>()?.required_modules.as_deref()?;
    Some(required)
}

/// The slots of the modules with secrets that a route has or gets from its edge, which requires them.
fn filled(required: &dyn AnyResource, route: &dyn AnyResource) -> Vec<&'static Slot> {
    let is_filled = |slot: &Slot, module: &dyn AnyModule| {
        has_secrets(module) && route.module(slot).is_some_and(|own| alike(own, module))
    };
    required.modules().filter(|it| is_filled(it.0, it.1)).map(|(slot, _)| slot).collect()
}

/// A route with the secrets of the modules that its edge requires, instead of its own.
pub(crate) fn with_required_secrets(spec: Arc<dyn AnyResource>, required: &dyn AnyResource) -> Arc<dyn AnyResource> {
    let alike = required
        .modules()
        .filter(|(slot, module)| spec.module(slot).is_some_and(|own| !own.same(*module) && alike(own, *module)));
    let modules: Vec<(&'static Slot, Option<SharedModule>)> =
        alike.map(|(slot, _)| (slot, required.shared_module(slot))).collect();
    if modules.is_empty() { spec } else { spec.with_modules(&modules) }
}

/// A route that comes back to the edge of another source, with the secrets that the edge requires, and a claim that records
/// them.
pub(crate) fn brought_back(
    edge: &Entry,
    route: &Arc<dyn AnyResource>,
    claim: Arc<Claim>,
) -> (Arc<dyn AnyResource>, Arc<Claim>) {
    let Some(required) = required_modules(edge) else { return (Arc::clone(route), claim) };
    let spec = with_required_secrets(Arc::clone(route), required);
    // Without a record, each secret counts as the edge's already.
    let Some(known) = &claim.required_secrets else { return (spec, claim) };
    let mut record = BTreeMap::clone(known);
    record.extend(record_of(edge, spec.as_ref()));
    let claim = Claim { required_secrets: Some(Arc::new(record)), ..Claim::clone(&claim) };
    (spec, Arc::new(claim))
}

/// Whether a route of another source does not have the secrets that `edge`, as `source` declares it, requires: its claim does
/// not record them, or those that it records are not the ones that the edge in the store has now.
pub(crate) fn awaits_secrets(edge: &HttpsEdge, stored: Option<&Entry>, source: &str, route: &Entry) -> bool {
    let Some(required) = edge.required_modules.as_deref() else { return false };
    let Some(record) = recorded(route.claim.as_deref()) else { return false };
    let spec = route.spec();
    let present = stored.filter(|edge| edge.is_owned_by(source)).and_then(required_modules);
    let is_replaced = |slot: &Slot| {
        let modules = present.and_then(|present| present.module(slot)).zip(spec.module(slot));
        modules.is_some_and(|(present, had)| !present.same(had) && alike(present, had))
    };
    let is_of_edge = |slot: &Slot| record.get(slot.name).is_some_and(|of| of == source);
    filled(required, spec.as_ref()).into_iter().any(|slot| !is_of_edge(slot) || is_replaced(slot))
}

/// Whether nobody knows the origin of the secrets of a stored resource: it is a route on an edge of another source, without a
/// record.
pub(crate) fn lacks_record(state: &Snapshot, route: &Entry) -> bool {
    let claim = route.claim.as_deref().filter(|claim| claim.required_secrets.is_none());
    let Some(claim) = claim.filter(|_| route.key.kind == Kind::HttpsEdgeRoute) else { return false };
    let Some(edge) = route.key.parent_key() else { return false };
    state.get(&edge).is_some_and(|edge| !edge.is_owned_by(&claim.source))
}

/// Whether the secrets of a module can be compared between two states of a route.
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
    let [had, has] = [former.claim.as_deref(), claim].map(recorded);
    // With the same origins, as of most routes, no module needs a look.
    if former.key.kind != Kind::HttpsEdgeRoute || (had == has && !lacks_record) {
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

/// The record of a claim: the sources whose secrets its modules have.
fn recorded(claim: Option<&Claim>) -> Option<&BTreeMap<String, String>> {
    claim?.required_secrets.as_deref()
}

/// The source whose secret a module has, if a claim records it.
fn recorded_source<'c>(claim: Option<&'c Claim>, slot: &Slot) -> Option<&'c str> {
    recorded(claim)?.get(slot.name).map(String::as_str)
}

/// Whether two modules are equal but for the values of secrets, and for values that are unknown (D106). Whoever sends guesses
/// for a secret of another source must not learn which one is right, so no finding may depend on it.
pub(crate) fn alike(one: &dyn AnyModule, other: &dyn AnyModule) -> bool {
    let forms =
        |module: &dyn AnyModule| Some((module.to_json(Secrets::Masked).ok()?, module.to_json(Secrets::Revealed).ok()?));
    let alike = || match (forms(one), forms(other)) {
        (Some((one, of_one)), Some((other, of_other))) => values_alike([&one, &of_one], [&other, &of_other]),
        _ => false,
    };
    one.same(other) || (one.slot() == other.slot() && alike())
}

/// Compares values in their masked and their revealed form: only the second one tells an unknown value from any text.
fn values_alike(one: [&Value; 2], other: [&Value; 2]) -> bool {
    let is_assumed = |value: &Value| value.as_str().is_some_and(is_unknown);
    match (one, other) {
        ([Value::Object(one), Value::Object(of_one)], [Value::Object(other), Value::Object(of_other)]) => {
            let alike = |name: &String| match (one.get(name), of_one.get(name), other.get(name), of_other.get(name)) {
                (Some(one), Some(of_one), Some(other), Some(of_other)) => {
                    values_alike([one, of_one], [other, of_other])
                }
                _ => false,
            };
            one.len() == other.len() && one.keys().all(alike)
        }
        // No list contains an unknown value.
        ([one, of_one], [other, of_other]) => one == other || is_assumed(of_one) || is_assumed(of_other),
    }
}

/// Whether a module has secrets.
pub(crate) fn has_secrets(module: &dyn AnyModule) -> bool {
    match (module.to_json(Secrets::Revealed), module.to_json(Secrets::Masked)) {
        (Ok(revealed), Ok(masked)) => revealed != masked,
        _ => true,
    }
}

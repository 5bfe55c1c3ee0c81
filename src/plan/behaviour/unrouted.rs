//! The changes of requests that no class has: of all at once, by restrictions of all endpoints, and of those of TLS edges, whose
//! hosts another system knows.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::diff::{BehaviourChange, RequestPattern};
use super::wording::{names, words_of_access};
use crate::model::module::backend::Backend;
use crate::model::{AnyModule, Entry, Key, Kind, Module as _, Slot, Snapshot, TlsEdge};
use crate::routing::behaviour::AccessDifference;
use crate::routing::enforced_restrictions::EnforcedRestrictions;
use crate::routing::routed_state::RoutedState;
use crate::syntax::text::printable;

/// Compares what a change of some resources does to these requests.
pub(super) fn unrouted_changes(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> Vec<BehaviourChange> {
    let restricts = changed.iter().any(|key| key.kind == Kind::IpRestriction);
    let of_all = restricts.then(|| endpoints_change(before, after)).flatten();
    let tls_edges = changed.iter().filter(|key| key.kind == Kind::TlsEdge);
    let of_edges = tls_edges.filter_map(|key| tls_edge_change([before, after], [before.get(key), after.get(key)]));
    of_all.into_iter().chain(of_edges).collect()
}

/// The change of requests that are named in words.
pub(super) fn worded_change(requests: String, opens: bool, change: String) -> BehaviourChange {
    let pattern = RequestPattern { origins: vec![requests], path: String::new(), except: Vec::new() };
    let (before, after, example) = Default::default();
    BehaviourChange { opens, weakens_tls: false, change, before, after, requests: vec![pattern], example }
}

/// The change of the restrictions of all endpoints.
pub(super) fn endpoints_change(before: &Snapshot, after: &Snapshot) -> Option<BehaviourChange> {
    let [then, now] = [before, after].map(|state| EnforcedRestrictions::of_endpoints(RoutedState::stored(state, "")));
    if now.admit_like(&then) {
        return None;
    }
    let shown = |restrictions: &EnforcedRestrictions<'_>| {
        let ids: Vec<&str> = restrictions.sets_of_policies().into_iter().flatten().collect();
        match restrictions.is_empty() {
            true => "open".to_owned(),
            false => format!("`ip_restriction` by {}", printable(&ids.join(", "))),
        }
    };
    let change = format!("{} → {}", shown(&then), shown(&now));
    Some(worded_change("all hosts".to_owned(), now.open_since(&then), change))
}

/// The enabled modules of a TLS edge. The edge itself belongs to another system, and stays without them.
fn modules(edge: Option<&Arc<Entry>>) -> Vec<(&'static Slot, &dyn AnyModule)> {
    edge.into_iter().flat_map(|edge| edge.spec().modules()).filter(|(_, module)| module.enabled()).collect()
}

fn tls_edge_change(states: [&Snapshot; 2], edges: [Option<&Arc<Entry>>; 2]) -> Option<BehaviourChange> {
    let [had, has] = edges.map(modules);
    let is_alike = |(one, another): (&(&'static Slot, &dyn AnyModule), &(&'static Slot, &dyn AnyModule))| {
        one.0 == another.0 && one.1.same(another.1)
    };
    if had.len() == has.len() && had.iter().zip(&has).all(is_alike) {
        return None;
    }
    let access = AccessDifference::of_resource(edges);
    let (lost, gained, mut parts) = (access.lost(), access.gained(), words_of_access(&access));
    let [from, to] = edges.map(|edge| {
        let backend = edge.and_then(|edge| edge.spec_as::<TlsEdge>()).and_then(|edge| edge.backend.as_deref());
        backend.filter(|it| it.enabled).map_or_else(|| "none".to_owned(), |it| printable(&it.backend_id))
    });
    if from != to {
        parts.push(format!("backend {from} → {to}"));
    }
    let is_changed = |name: &str| access.changed.iter().any(|(changed, _)| *changed == name);
    let told = |name: &str| lost.contains(&name) || gained.contains(&name) || is_changed(name) || name == Backend::SLOT;
    let slots = had.iter().chain(&has).map(|(slot, _)| slot.name).filter(|name| !told(name));
    let differs = |name: &&str| {
        let [one, another] =
            [&had, &has].map(|modules| modules.iter().find(|(slot, _)| slot.name == *name).map(|(_, module)| *module));
        one.zip(another).is_none_or(|(one, another)| !one.same(another))
    };
    let differing: BTreeSet<&str> = slots.filter(differs).collect();
    if !differing.is_empty() {
        parts.push(format!("{} configured differently", names(&differing.into_iter().collect::<Vec<_>>())));
    }
    let name = |edge: Option<&Arc<Entry>>, state: &Snapshot| edge.map(|edge| printable(&state.full_name(edge)));
    let ([older, newer], [then, now]) = (edges, states);
    let (before, after) = (name(older, then), name(newer, now));
    let requests = format!("all hosts of TlsEdge {}", after.as_ref().or(before.as_ref())?);
    let change = worded_change(requests, access.opens(false), parts.join("; "));
    Some(BehaviourChange { before: before.unwrap_or_default(), after: after.unwrap_or_default(), ..change })
}

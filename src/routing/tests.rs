//! What tests of routing have in common: states from a few lines of JSON, which no rule checks, and generated ones.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::model::{AnyResource, Entry, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Snapshot};

/// An edge or route by its number, with its Spec.
type Numbered<T> = (u8, T);
/// Generated edges with their routes. Numbers can repeat, also in another estate; the last Spec of a number counts.
pub(crate) type GeneratedEstate = Vec<Numbered<(HttpsEdge, Vec<Numbered<HttpsEdgeRoute>>)>>;

/// The key of an edge.
pub(crate) fn edge_key(id: &str) -> Key {
    Key::new(Kind::HttpsEdge, Id::new(id))
}

/// The key of a route.
pub(crate) fn route_key(edge: &str, id: &str) -> Key {
    Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new(id))
}

/// An object with more fields, which replace those with the same names.
pub(crate) fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

/// A route to the backend `bkd_1`, unless `more` has another one. The match starts with `=` if it is exact.
pub(crate) fn route(matched: &str, more: Value) -> Value {
    let exact = matched.strip_prefix('=');
    let match_type = if exact.is_some() { "exact_path" } else { "path_prefix" };
    let backend = json!({"backend_id": "bkd_1"});
    with(json!({"match_type": match_type, "match": exact.unwrap_or(matched), "backend": backend}), more)
}

/// The Spec from its JSON.
pub(crate) fn spec_of(kind: Kind, spec: &Value) -> Arc<dyn AnyResource> {
    (kind.info().restore)(&spec.to_string()).unwrap()
}

/// A state with some resources, in the order of their creation.
pub(crate) fn state_of(resources: impl IntoIterator<Item = (Key, Arc<dyn AnyResource>)>) -> Snapshot {
    let entries = resources.into_iter().zip(0..);
    Snapshot::restore(1, 0, [], entries.map(|((key, spec), order)| Entry::new(key, spec, Timestamp::UNIX_EPOCH, order)))
}

/// A state of resources, from the JSON of their Specs.
pub(crate) fn state_of_json(resources: impl IntoIterator<Item = (Key, Value)>) -> Snapshot {
    state_of(resources.into_iter().map(|(key, spec)| {
        let spec = spec_of(key.kind, &spec);
        (key, spec)
    }))
}

/// Generates estates whose edges have some of the hostports and one of the sets of modules, and whose routes have one of the
/// matches and one of the sets of modules.
pub(crate) fn estates(
    hostports: &'static [&'static str],
    edges: Vec<Value>,
    matches: &'static [&'static str],
    modules: Vec<Value>,
) -> impl Strategy<Value = GeneratedEstate> {
    let edges = (vec(select(hostports), 0..4), select(edges)).prop_map(|(hostports, modules)| {
        serde_json::from_value::<HttpsEdge>(with(json!({"hostports": hostports}), modules)).unwrap()
    });
    let routes = (select(matches), select(modules))
        .prop_map(|(matched, modules)| serde_json::from_value::<HttpsEdgeRoute>(route(matched, modules)).unwrap());
    vec((0..3_u8, (edges, vec((0..4_u8, routes), 0..5))), 0..4)
}

/// The resources of an estate.
pub(crate) fn specs_of(estate: &GeneratedEstate) -> BTreeMap<Key, Arc<dyn AnyResource>> {
    let mut specs: BTreeMap<Key, Arc<dyn AnyResource>> = BTreeMap::new();
    for (number, (edge, routes)) in estate {
        let id = format!("edghts_{number}");
        specs.insert(edge_key(&id), Arc::new(edge.clone()));
        for (number, route) in routes {
            specs.insert(route_key(&id, &format!("edghtsrt_{number}")), Arc::new(route.clone()));
        }
    }
    specs
}

/// The resources that differ between two states.
pub(crate) fn changed(before: &Snapshot, after: &Snapshot) -> BTreeSet<Key> {
    let keys = before.iter().chain(after.iter()).map(|entry| entry.key.clone());
    let differs = |key: &Key| match (before.get(key), after.get(key)) {
        (Some(one), Some(other)) => !one.spec().same(other.spec().as_ref()),
        (one, other) => one.is_some() != other.is_some(),
    };
    keys.filter(differs).collect()
}

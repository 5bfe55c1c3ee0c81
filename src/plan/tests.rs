//! What tests of planners have in common: states with edges and routes of some sources.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use jiff::Timestamp;

use super::Plan;
use crate::model::kind::https_edge_route::MatchType;
use crate::model::{AnyResource, Claim, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Operation, Snapshot};

/// The key of an edge.
pub(super) fn edge(name: &str) -> Key {
    Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{name}")))
}

/// The key of a route.
pub(super) fn route(edge: &str, name: &str) -> Key {
    Key::child(Kind::HttpsEdgeRoute, self::edge(edge).id, Id::new(&format!("edghtsrt_{name}")))
}

/// The claim of a source.
pub(super) fn claim(source: &str, name: &str) -> Option<Arc<Claim>> {
    Some(Arc::new(Claim::new(source, name)))
}

/// The claim of a source that is protected from deletion.
pub(super) fn protected(source: &str, name: &str) -> Option<Arc<Claim>> {
    Some(Arc::new(Claim { prevent_destroy: true, ..Claim::new(source, name) }))
}

pub(super) fn create(key: &Key, spec: Arc<dyn AnyResource>, claim: Option<Arc<Claim>>) -> Operation {
    Operation::Create { key: key.clone(), spec, claim, token: None }
}

pub(super) fn create_edge(name: &str, claim: Option<Arc<Claim>>) -> Operation {
    create(&edge(name), Arc::new(HttpsEdge { description: name.into(), ..HttpsEdge::default() }), claim)
}

pub(super) fn create_route(edge: &str, name: &str, claim: Option<Arc<Claim>>) -> Operation {
    let (match_type, r#match) = (Some(MatchType::ExactPath), format!("/{name}"));
    create(&route(edge, name), Arc::new(HttpsEdgeRoute { match_type, r#match, ..HttpsEdgeRoute::default() }), claim)
}

pub(super) fn after(state: &Snapshot, operations: &[Operation]) -> Snapshot {
    state.apply(operations, Timestamp::UNIX_EPOCH).unwrap().0
}

pub(super) fn state(operations: &[Operation]) -> Snapshot {
    after(&Snapshot::default(), operations)
}

/// The calls of a plan that nothing refuses.
pub(super) fn calls(plan: &Plan) -> Vec<String> {
    assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
    plan.operations().iter().map(ToString::to_string).collect()
}

/// Why a plan is refused.
pub(super) fn codes(plan: &Plan) -> Vec<String> {
    plan.refusals.iter().map(|refusal| refusal.code.to_string()).collect()
}

//! The policies of routes and TLS edges, with their locations.

use crate::lint::view::EdgeView;
use crate::model::module::policies::{EndpointPolicy, Policies};
use crate::model::{HttpsEdgeRoute, Key, Path, TlsEdge};

/// A policy with its location.
pub(in crate::lint::rules) struct PlacedPolicy<'w> {
    /// The route or TLS edge.
    pub(in crate::lint::rules) key: &'w Key,
    /// Whether the policy applies to responses.
    pub(in crate::lint::rules) is_outbound: bool,
    /// The path of the policy.
    pub(in crate::lint::rules) path: Path,
    pub(in crate::lint::rules) policy: &'w EndpointPolicy,
}

impl PlacedPolicy<'_> {
    /// The path of an action's type.
    pub(in crate::lint::rules) fn action_type(&self, index: usize) -> Path {
        self.path.join("actions").join(index).join("type")
    }

    /// The path of an expression.
    pub(in crate::lint::rules) fn expression(&self, index: usize) -> Path {
        self.path.join("expressions").join(index)
    }
}

/// Returns every policy of every `policies` module, in order.
pub(in crate::lint::rules) fn placed_policies<'w>(view: &'w EdgeView<'_>) -> impl Iterator<Item = PlacedPolicy<'w>> {
    let routes = view.all::<HttpsEdgeRoute>().map(|(key, route)| (key, &route.policies));
    let tls_edges = view.all::<TlsEdge>().map(|(key, edge)| (key, &edge.policies));
    let modules = routes.chain(tls_edges).filter_map(|(key, module)| Some((key, module.as_ref()?)));
    modules.flat_map(|(key, module)| placed(key, module))
}

fn placed<'w>(key: &'w Key, module: &'w Policies) -> impl Iterator<Item = PlacedPolicy<'w>> {
    let directions = [("inbound", false, &module.inbound), ("outbound", true, &module.outbound)];
    directions.into_iter().flat_map(move |(direction, is_outbound, list)| {
        let path = Path::from(["policies", direction]);
        list.iter().enumerate().map(move |(index, policy)| PlacedPolicy {
            key,
            is_outbound,
            path: path.join(index),
            policy,
        })
    })
}

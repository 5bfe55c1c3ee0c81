//! What IDs decide in a state without a store: which of two edges or routes takes the requests that both could take (D120).
//!
//! Of two edges with one hostport, and of two routes with one match, the lower ID wins. Manifests seldom state IDs, and a store
//! may have others than those that are derived from names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::unseen::Unseen;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute, Key, Kind, Snapshot};
use crate::routing::behaviour::Fate;
use crate::routing::selector::{Rank, Selector};
use crate::syntax::text::printable;

/// The edges and routes of a state of which nobody can tell which one takes the requests of both. `is_stated` says whether a
/// manifest states the ID of a resource.
pub(crate) fn decided_by_ids(state: &Snapshot, is_stated: impl Fn(&Key) -> bool) -> Vec<Unseen> {
    let mut unseen = rival_edges(state);
    for edge in state.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        unseen.extend(tied_routes(state, edge, &is_stated));
    }
    unseen
}

/// The edges that share a hostport. A store has it once, whatever their IDs are.
fn rival_edges(state: &Snapshot) -> Vec<Unseen> {
    let mut edges: BTreeMap<(String, u16), Vec<&Arc<Entry>>> = BTreeMap::new();
    for edge in state.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        let Some(spec) = edge.spec_as::<HttpsEdge>() else { continue };
        let addresses: BTreeSet<(String, u16)> = spec.addresses().map(|(_, _, address)| address).collect();
        for address in addresses {
            edges.entry(address).or_default().push(edge);
        }
    }
    let mut unseen = Vec::new();
    for ((host, port), edges) in edges {
        let [one, other, ..] = edges.as_slice() else { continue };
        let (one, other) = (named(state, one), named(state, other));
        let clause = format!("which of the edges {one} and {other} serves `{}:{port}`", printable(&host));
        let keys = edges.iter().map(|edge| edge.key.clone());
        unseen.push(Unseen::new(clause).about_host(host).at_port(Some(port)).guessing(keys));
    }
    unseen
}

/// The routes of an edge that match the same requests with the same rank, and treat them differently. One for a port is tied with
/// others at this port only.
fn tied_routes(state: &Snapshot, edge: &Arc<Entry>, is_stated: impl Fn(&Key) -> bool) -> Vec<Unseen> {
    let mut routes: BTreeMap<(Rank, String, &str), Vec<_>> = BTreeMap::new();
    for route in state.children(&edge.key) {
        let Some(selector) = route.spec_as::<HttpsEdgeRoute>().and_then(Selector::from_route) else { continue };
        let place = (selector.precedence(), selector.host, selector.path);
        routes.entry(place).or_default().push((selector.port, route));
    }
    let mut unseen = Vec::new();
    for ((_, host, _), routes) in routes.into_iter().filter(|(_, routes)| routes.len() > 1) {
        let ports: BTreeSet<Option<u16>> = routes.iter().map(|(port, _)| *port).collect();
        for port in ports {
            let at_port = routes.iter().filter(|(own, _)| own.is_none() || *own == port).map(|(_, route)| *route);
            let tied: Vec<&Arc<Entry>> = at_port.collect();
            let Some((first, others)) = tied.split_first() else { continue };
            let Some(other) = others.iter().find(|other| !is_alike(state, edge, first, other)) else { continue };
            let addresses = edge.spec_as::<HttpsEdge>().into_iter().flat_map(|spec| spec.addresses());
            let at_port = addresses.filter(|(.., (_, own))| port.is_none_or(|port| port == *own));
            let served: Vec<String> = at_port.map(|(.., (host, _))| host).collect();
            if served.is_empty() || tied.iter().all(|route| is_stated(&route.key)) {
                continue;
            }
            let clause =
                format!("which of the routes {} and {} has the lower ID", named(state, first), named(state, other));
            let hosts = if host.is_empty() { served } else { vec![host.clone()] };
            let about = Unseen::new(clause).about(first.spec().as_ref()).at_port(port);
            let about = hosts.into_iter().fold(about, Unseen::about_host);
            unseen.push(about.guessing(tied.iter().map(|route| route.key.clone())));
        }
    }
    unseen
}

/// Whether two routes of an edge treat requests alike, for a scope of sources, too.
fn is_alike(state: &Snapshot, edge: &Arc<Entry>, one: &Arc<Entry>, other: &Arc<Entry>) -> bool {
    let fate = |route| Fate::new(state, Some(edge), Some(route));
    one.source() == other.source() && fate(one).is_like(&fate(other))
}

/// The name of an edge or a route, and whether it is a surrounding one.
fn named(state: &Snapshot, entry: &Entry) -> String {
    let place = if entry.is_owned_by(SURROUNDING_OWNER) { " in `--with`" } else { "" };
    format!("`{}`{place}", printable(&state.full_name(entry)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::traffic::TracedRequest;
    use crate::routing::invariant::RequestTaken;
    use crate::routing::tests::{edge_key, route, route_key, state_of_json};

    #[test]
    fn a_tie_is_about_the_ports_of_both_routes() {
        let edge = json!({"hostports": ["a.example.com:443", "a.example.com:8443"]});
        let decided = |matched: &str, url: &str| {
            let other = route("a.example.com/x", json!({"backend": {"backend_id": "bkd_2"}}));
            let state = state_of_json([
                (edge_key("edghts_1"), edge.clone()),
                (route_key("edghts_1", "edghtsrt_1"), route(matched, json!({}))),
                (route_key("edghts_1", "edghtsrt_2"), other),
            ]);
            let request = TracedRequest::new("GET", url).unwrap_or_default();
            let taken = RequestTaken::new(&request, Vec::new(), Some("a.example.com".to_owned()));
            decided_by_ids(&state, |_| false).iter().any(|it| it.may_decide(&taken))
        };
        assert!(decided("a.example.com:443/x", "https://a.example.com/x"));
        assert!(!decided("a.example.com:443/x", "https://a.example.com:8443/x"), "only one is for this port");
        assert!(decided("a.example.com/x", "https://a.example.com:8443/x"));
        assert!(!decided("a.example.com:9443/x", "https://a.example.com/x"), "the edge has no such port");
    }
}

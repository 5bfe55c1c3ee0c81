//! The routes of an edge that no source owns and that take requests from routes that sources declare.
//!
//! No plan changes a route without a source, so nothing else tells that the gateway does not do what the manifests say. A request
//! that only a route, or a more general one, matches is routed twice: by all routes of the edge, and without those that no source
//! owns. If a route without a source takes it, and a declared route would take it otherwise, the two are rivals.
//!
//! For example, `/home` without a source takes from a declared `/` what is below `/home`, and `shop.example.com` from each declared
//! path what this host gets. A route that another source declares with the consent of the edge is no rival.

use std::collections::{BTreeMap, BTreeSet};

use super::host_rank::rank_host;
use super::selector::{Selector, passes_tls_through};
use super::table::{KnownRoute, RouteTable};
use crate::model::{HttpsEdge, HttpsEdgeRoute, Key, Snapshot};

/// The most requests that are routed for one edge, so that a huge edge does not take quadratic time. Those of the routes without a
/// source come first.
const MOST_LOOKUPS: usize = 1 << 18;
/// The most routes of an edge that are compared for a request or a page. The runs of sources compare those of larger edges.
const MOST_STORED: usize = 5000;

/// A route without a source, and a declared one that gets no request, or fewer, because of it.
#[derive(Clone, Copy)]
pub(crate) struct Rivals<'w> {
    /// The route without a source.
    pub taking: KnownRoute<'w>,
    /// The declared route.
    pub losing: KnownRoute<'w>,
    /// Whether both match the same requests, so that only the order of their IDs decides.
    pub are_equal: bool,
}

impl<'w> Rivals<'w> {
    /// The rivals among the routes of an edge, by their keys. Both lists are in the order of their keys.
    pub(crate) fn find(edge: &HttpsEdge, unmanaged: &[KnownRoute<'w>], declared: &[KnownRoute<'w>]) -> Vec<Self> {
        if unmanaged.is_empty() || declared.is_empty() {
            return Vec::new();
        }
        let passes_through = passes_tls_through(edge);
        let without = RouteTable::new(passes_through, declared.iter().copied());
        // A table has the first one of equal matches.
        let with = RouteTable::new(passes_through, unmanaged.iter().chain(declared).copied());
        let taking = with.routes().len().saturating_sub(without.routes().len());
        let addresses = addresses(edge, with.routes().get(..taking).unwrap_or_default());
        let (mut found, mut lookups) = (BTreeMap::new(), 0);
        for (_, selector) in with.routes() {
            let probe = selector.probe();
            for (host, port) in &addresses {
                if selector.rank_address(host, *port).is_none() {
                    continue;
                }
                lookups += 1;
                if lookups > MOST_LOOKUPS {
                    return found.into_values().collect();
                }
                let winner = with.winning(host, *port, &probe).filter(|at| *at < taking);
                let winner = winner.and_then(|at| with.routes().get(at));
                if let (Some((taking, own)), Some((losing, other))) = (winner, without.winner(host, *port, &probe)) {
                    let are_equal = own.precedence() == other.precedence();
                    let rivals = Self { taking: *taking, losing: *losing, are_equal };
                    found.entry((taking.0, losing.0)).or_insert(rivals);
                }
            }
        }
        found.into_values().collect()
    }

    /// The rivals among the routes of an edge of a store: none if no source owns the edge, or if it has very many routes.
    pub(crate) fn of_stored(state: &'w Snapshot, edge: &Key) -> Vec<Self> {
        let entry = state.get(edge).filter(|entry| entry.claim.is_some());
        let Some(edge_spec) = entry.and_then(|entry| entry.spec_as::<HttpsEdge>()) else { return Vec::new() };
        if state.children_after(edge, None).nth(MOST_STORED).is_some() {
            return Vec::new();
        }
        let (mut unmanaged, mut declared) = (Vec::new(), Vec::new());
        for entry in state.children_after(edge, None) {
            let list = if entry.claim.is_none() { &mut unmanaged } else { &mut declared };
            list.extend(entry.spec_as::<HttpsEdgeRoute>().map(|route| (&entry.key, route)));
        }
        Self::find(edge_spec, &unmanaged, &declared)
    }

    /// What the route without a source does to the declared one: the words between the two.
    pub(crate) fn verb(&self) -> &'static str {
        if self.are_equal { "has the same match as" } else { "takes requests from" }
    }
}

/// The hosts and ports of an edge at which a route that takes requests is served. A wildcard serves hosts that no hostport names.
fn addresses(edge: &HttpsEdge, taking: &[(KnownRoute<'_>, Selector<'_>)]) -> BTreeSet<(String, u16)> {
    let mut all: BTreeSet<(String, u16)> = edge.addresses().map(|(_, _, address)| address).collect();
    let mut named = Vec::new();
    for (_, selector) in taking.iter().filter(|(_, selector)| !selector.host.is_empty()) {
        let served = all.iter().filter(|(host, _)| rank_host(&selector.host, host).is_some());
        named.extend(served.map(|(_, port)| (selector.host.clone(), *port)));
    }
    all.extend(named);
    all.retain(|(host, port)| taking.iter().any(|(_, selector)| selector.rank_address(host, *port).is_some()));
    all
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};
    use crate::routing::table::tests::routes;

    /// The matches of the rivals of an edge whose first routes have no source.
    fn rivals(hosts: &[&str], unmanaged: &[(MatchType, &str)], declared: &[(MatchType, &str)]) -> Vec<String> {
        let hostports = hosts.iter().map(|host| format!("{host}:443")).collect();
        let edge = HttpsEdge { hostports, ..HttpsEdge::default() };
        let all = routes(&[unmanaged, declared].concat());
        let known: Vec<KnownRoute<'_>> = all.iter().map(|(key, route)| (key, route)).collect();
        let (unmanaged, declared) = known.split_at(unmanaged.len());
        let found = Rivals::find(&edge, unmanaged, declared);
        let text = |it: &Rivals<'_>| format!("{} {} {}", it.taking.1.r#match, it.verb(), it.losing.1.r#match);
        found.iter().map(text).collect()
    }

    #[test]
    fn a_closer_match_takes_requests_and_a_wider_one_does_not() {
        let declared = [(PathPrefix, "/"), (PathPrefix, "/home")];
        let one = |unmanaged: (MatchType, &str)| rivals(&["a.example.com"], &[unmanaged], &declared);
        assert_eq!(one((PathPrefix, "/home")), ["/home has the same match as /home"]);
        assert_eq!(one((ExactPath, "/home")), ["/home takes requests from /home"]);
        assert_eq!(one((PathPrefix, "/home/sale")), ["/home/sale takes requests from /home"]);
        assert_eq!(one((PathPrefix, "/hom")), ["/hom takes requests from /"]);
        assert!(one((PathPrefix, "b.example.com/home")).is_empty(), "the edge does not serve the host");
        assert!(rivals(&["a.example.com"], &[(PathPrefix, "/")], &declared[1..]).is_empty());
        assert!(rivals(&["a.example.com"], &[], &declared).is_empty());
    }

    #[test]
    fn a_host_takes_the_paths_of_routes_for_all_hosts() {
        let declared = [(PathPrefix, "/home"), (ExactPath, "/cart"), (PathPrefix, "b.example.com/docs")];
        let taken = ["a.example.com takes requests from /home", "a.example.com takes requests from /cart"];
        for served in [&["a.example.com", "b.example.com"][..], &["*.example.com"]] {
            assert_eq!(rivals(served, &[(PathPrefix, "a.example.com")], &declared), taken, "{served:?}");
        }
        let wide = rivals(&["a.example.com", "b.example.com"], &[(PathPrefix, "*.example.com")], &declared);
        assert_eq!(wide, taken.map(|text| text.replacen("a.", "*.", 1)));
    }

    #[test]
    fn each_route_without_a_source_is_told_with_the_declared_one() {
        let unmanaged = [(PathPrefix, "/home"), (PathPrefix, "/home/sale")];
        let found = rivals(&["a.example.com"], &unmanaged, &[(PathPrefix, "/home")]);
        assert_eq!(found, ["/home has the same match as /home", "/home/sale takes requests from /home"]);
    }
}

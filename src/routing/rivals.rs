//! The routes of an edge that no source owns and that take requests from routes that sources declare.
//!
//! No plan changes a route without a source, so nothing else tells that the gateway does not do what the manifests say. A request
//! that only a route, or a more general one, matches is routed twice: by all routes of the edge, and without those that no source
//! owns. If a route without a source takes it, and a declared route would take it otherwise, the two are rivals.
//!
//! For example, `/home` without a source takes from a declared `/` what is below `/home`, and `shop.example.com` from each declared
//! path what this host gets. A route that another source declares with the consent of the edge is no rival.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::host_rank::rank_host;
use super::selector::{Selector, passes_tls_through};
use super::table::{KnownRoute, RouteTable};
use crate::model::{HttpsEdge, HttpsEdgeRoute, Key, Snapshot};
use crate::syntax::text::number_of;

/// The most steps for an edge or a page, so that huge edges do not take quadratic time. Each comparison of a route with an address
/// is one, also if the route does not match it. Those of the routes without a source come first.
const MOST_STEPS: usize = 1 << 18;
/// The most of them for a route that a request writes, whose response waits.
const MOST_OF_ROUTE: usize = 1 << 16;
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
    /// The rivals among the routes of an edge, by their keys, and whether all routes were compared. Both lists are in the order
    /// of their keys.
    pub(crate) fn find(
        edge: &HttpsEdge,
        unmanaged: &[KnownRoute<'w>],
        declared: &[KnownRoute<'w>],
    ) -> (Vec<Self>, bool) {
        let mut budget = MOST_STEPS;
        Self::search(edge, unmanaged, declared, None, &mut budget)
    }

    /// The rivals of all routes without a source, or of only one of them, and whether the budget of steps was enough for all.
    fn search(
        edge: &HttpsEdge,
        unmanaged: &[KnownRoute<'w>],
        declared: &[KnownRoute<'w>],
        only: Option<&Key>,
        budget: &mut usize,
    ) -> (Vec<Self>, bool) {
        if unmanaged.is_empty() || declared.is_empty() {
            return (Vec::new(), true);
        }
        let passes_through = passes_tls_through(edge);
        let without = RouteTable::new(passes_through, declared.iter().copied());
        // A table has the first one of equal matches.
        let with = RouteTable::new(passes_through, unmanaged.iter().chain(declared).copied());
        let (taking, others) = with.routes().split_at(with.routes().len().saturating_sub(without.routes().len()));
        let (asked, others) = match only {
            None => (taking, others),
            Some(only) => {
                let own = taking.iter().find(|((key, _), _)| *key == only);
                (own.map(std::slice::from_ref).unwrap_or_default(), with.routes())
            }
        };
        // At least half of the steps are left to look for rivals.
        let mut of_addresses = *budget / 2;
        *budget -= of_addresses;
        let (addresses, mut is_whole) = addresses(edge, asked, &mut of_addresses);
        *budget += of_addresses;
        let mut found = BTreeMap::new();
        'all: for (_, selector) in asked.iter().chain(others) {
            let probe = selector.probe();
            for (host, port) in served_to(selector, &addresses) {
                if !take_step(budget) {
                    is_whole = false;
                    break 'all;
                }
                let can_win = |own: &Selector<'_>| own.rank(host, *port, &probe, passes_through).is_ok();
                let is_lost = only.is_some() && !asked.iter().any(|(_, own)| can_win(own));
                if is_lost || selector.rank_address(host, *port).is_none() {
                    continue;
                }
                let winner = with.winning(host, *port, &probe).and_then(|at| taking.get(at));
                let winner = winner.filter(|((key, _), _)| only.is_none_or(|only| *key == only));
                if let (Some((taking, own)), Some((losing, other))) = (winner, without.winner(host, *port, &probe)) {
                    let are_equal = own.precedence() == other.precedence() && own.port == other.port;
                    let rivals = Self { taking: *taking, losing: *losing, are_equal };
                    found.entry((taking.0, losing.0)).or_insert(rivals);
                }
            }
        }
        (found.into_values().collect(), is_whole)
    }

    /// The rivals among the routes of some edges of a store, for a page: none on edges that no source owns or that have very many
    /// routes.
    pub(crate) fn of_stored<'k>(state: &'w Snapshot, edges: impl IntoIterator<Item = &'k Key>) -> Vec<Self> {
        let mut budget = MOST_STEPS;
        edges.into_iter().flat_map(|edge| Self::of_edge(state, edge, None, &mut budget)).collect()
    }

    /// The rivals of a route of a store that no source owns: none on such edges.
    pub(crate) fn of_route(state: &'w Snapshot, route: &Key) -> Vec<Self> {
        let (edge, mut budget) = (route.parent_key(), MOST_OF_ROUTE);
        edge.map(|edge| Self::of_edge(state, &edge, Some(route), &mut budget)).unwrap_or_default()
    }

    /// The rivals among the routes of an edge of a store, or those of only one. To read a route is a step, too.
    fn of_edge(state: &'w Snapshot, edge: &Key, only: Option<&Key>, budget: &mut usize) -> Vec<Self> {
        let entry = state.get(edge).filter(|entry| entry.claim.is_some());
        let Some(edge_spec) = entry.and_then(|entry| entry.spec_as::<HttpsEdge>()) else { return Vec::new() };
        let routes = state.children_after(edge, None).take(MOST_STORED + 1).count();
        *budget = budget.saturating_sub(routes);
        if routes > MOST_STORED || *budget == 0 {
            return Vec::new();
        }
        let (mut unmanaged, mut declared) = (Vec::new(), Vec::new());
        for entry in state.children_after(edge, None) {
            let list = if entry.claim.is_none() { &mut unmanaged } else { &mut declared };
            list.extend(entry.spec_as::<HttpsEdgeRoute>().map(|route| (&entry.key, route)));
        }
        Self::search(edge_spec, &unmanaged, &declared, only, budget).0
    }

    /// The words for so many more declared routes; empty for none.
    pub(crate) fn and_others(count: usize) -> String {
        if count == 0 { String::new() } else { format!(" and {}", number_of(count, "other")) }
    }

    /// What the route without a source does to the declared one: the words between the two.
    pub(crate) fn verb(&self) -> &'static str {
        if self.are_equal { "has the same match as" } else { "takes requests from" }
    }
}

/// Takes a step from a budget; `false` if none is left.
fn take_step(budget: &mut usize) -> bool {
    let left = budget.checked_sub(1);
    *budget = left.unwrap_or_default();
    left.is_some()
}

/// The hosts and ports of an edge at which a route that takes requests is served, and whether the budget was enough for all. A
/// wildcard serves hosts that no hostport names.
fn addresses(
    edge: &HttpsEdge,
    taking: &[(KnownRoute<'_>, Selector<'_>)],
    budget: &mut usize,
) -> (BTreeSet<(String, u16)>, bool) {
    let served: BTreeSet<(String, u16)> = edge.addresses().map(|(_, _, address)| address).collect();
    // A route without a host is served at all of them, and most have none.
    let is_for_all = taking.iter().any(|(_, selector)| selector.host.is_empty());
    let mut all = if is_for_all { served.clone() } else { BTreeSet::new() };
    for (_, selector) in taking.iter().filter(|(_, selector)| !selector.host.is_empty()) {
        for (host, port) in &served {
            if !take_step(budget) {
                return (all, false);
            }
            if selector.rank_address(host, *port).is_some() {
                all.insert((host.clone(), *port));
            }
            let serves_host = rank_host(&selector.host, host).is_some();
            if serves_host && selector.rank_address(&selector.host, *port).is_some() {
                all.insert((selector.host.clone(), *port));
            }
        }
    }
    (all, true)
}

/// The addresses at which a route may be served: with a literal host, those of the host alone.
fn served_to<'a>(
    selector: &Selector<'_>,
    addresses: &'a BTreeSet<(String, u16)>,
) -> impl Iterator<Item = &'a (String, u16)> + use<'a> {
    let host = (!selector.host.is_empty() && !selector.host.starts_with("*.")).then(|| selector.host.clone());
    let (first, last) = match host {
        Some(host) => (Bound::Included((host.clone(), 0)), Bound::Included((host, u16::MAX))),
        None => (Bound::Unbounded, Bound::Unbounded),
    };
    addresses.range((first, last))
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
        let (found, is_whole) = Rivals::find(&edge, unmanaged, declared);
        assert!(is_whole);
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
    fn many_routes_with_hosts_take_no_quadratic_number_of_steps() {
        let edge = HttpsEdge { hostports: vec!["*.example.com:443".to_owned()], ..HttpsEdge::default() };
        let matches: Vec<String> = (0..6_000).map(|number| format!("h{number}.example.com")).collect();
        let named = matches.iter().map(|matched| (PathPrefix, matched.as_str()));
        let all = routes(&named.chain([(PathPrefix, "/")]).collect::<Vec<_>>());
        let known: Vec<KnownRoute<'_>> = all.iter().map(|(key, route)| (key, route)).collect();
        let (unmanaged, declared) = known.split_at(6_000);
        let mut budget = 3 * 6_000;
        let (found, is_whole) = Rivals::search(&edge, unmanaged, declared, None, &mut budget);
        assert_eq!((found.len(), is_whole), (6_000, true));
    }

    #[test]
    fn addresses_that_a_route_cannot_win_at_are_steps_too() {
        let hostports = (0..20).map(|number| format!("h{number}.example.com:443")).collect();
        let edge = HttpsEdge { hostports, ..HttpsEdge::default() };
        let all = routes(&[(PathPrefix, "/home"), (PathPrefix, "/cart"), (PathPrefix, "/docs")]);
        let known: Vec<KnownRoute<'_>> = all.iter().map(|(key, route)| (key, route)).collect();
        let (unmanaged, declared) = known.split_at(1);
        for (only, steps) in [(None, 60), (Some(known[0].0), 80)] {
            let search = |mut budget: usize| {
                let (found, is_whole) = Rivals::search(&edge, unmanaged, declared, only, &mut budget);
                (found.len(), is_whole, budget)
            };
            assert_eq!([search(steps), search(steps - 1)], [(0, true, 0), (0, false, 0)], "{only:?}");
        }
    }

    #[test]
    fn routes_of_one_path_at_different_ports_have_no_equal_match() {
        let found =
            rivals(&["a.example.com"], &[(PathPrefix, "a.example.com:443/x")], &[(PathPrefix, "a.example.com/x")]);
        assert_eq!(found, ["a.example.com:443/x takes requests from a.example.com/x"]);
    }

    #[test]
    fn each_route_without_a_source_is_told_with_the_declared_one() {
        let unmanaged = [(PathPrefix, "/home"), (PathPrefix, "/home/sale")];
        let found = rivals(&["a.example.com"], &unmanaged, &[(PathPrefix, "/home")]);
        assert_eq!(found, ["/home has the same match as /home", "/home/sale takes requests from /home"]);
    }

    #[test]
    fn the_rivals_of_one_route_are_those_of_its_edge_with_it() {
        let hostports = ["a.example.com:443", "b.example.com:443"].map(str::to_owned).into();
        let edge = HttpsEdge { hostports, ..HttpsEdge::default() };
        let matches = ["/home", "/home/sale", "/cart", "a.example.com", "/", "/home", "/docs"];
        let all = routes(&matches.map(|matched| (PathPrefix, matched)));
        let known: Vec<KnownRoute<'_>> = all.iter().map(|(key, route)| (key, route)).collect();
        let (unmanaged, declared) = known.split_at(4);
        let (whole, _) = Rivals::find(&edge, unmanaged, declared);
        assert_eq!(whole.len(), 6, "three at one host, and all declared ones at the other");
        for (key, _) in unmanaged {
            let of_edge = whole.iter().filter(|it| it.taking.0 == *key).map(|it| it.losing.0);
            let (found, is_whole) = Rivals::search(&edge, unmanaged, declared, Some(*key), &mut 20);
            assert!(found.iter().map(|it| it.losing.0).eq(of_edge) && is_whole, "{key}");
        }
        let (found, is_whole) = Rivals::search(&edge, unmanaged, declared, None, &mut 2);
        assert_eq!((found.len(), is_whole), (1, false));
    }
}

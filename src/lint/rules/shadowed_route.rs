//! `shadowed-route`: a route that never receives a request because other routes match first, or because its edge cannot
//! see paths.
//!
//! For each host and port of the edge that a route covers, the lint looks up which route receives a request that only
//! this route or a more general one matches, as `trace` does. A route that receives none of them is dead, because a
//! finite number of longer prefixes never exhausts a shorter one. `duplicate-match` reports routes with equal matches.

use std::collections::BTreeSet;

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};

use super::duplicate_match::{only_port, requests};
use super::partial_segment_prefix;
use super::prelude::*;
use crate::routing::selector::Selector;
use crate::routing::table::{KnownRoute, RouteTable};
use crate::routing::{passes_tls_through, rank_host};

pub(crate) static LINT: Lint = Lint {
    name: "shadowed-route",
    default: Level::Warn,
    summary: "A route never receives a request: other routes match first, or the edge cannot see its path.",
    why: "The backend and modules of the route have no effect, although the manifest suggests that they do.",
    cure: "Remove the route, or change its host or path to one that no other route matches. On an edge that passes TLS through, match only a host.",
    check: LintCheck::Edge(check),
};

/// The most requests that are looked up for one edge, so that a huge edge does not take quadratic time. Further routes
/// are taken for live.
const MOST_PROBES: usize = 1 << 18;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let mut routes: HashMap<&Id, Vec<KnownRoute<'_>>> = HashMap::new();
    // `duplicate-match` reports the later one of two duplicates, so the first one is judged here.
    for (key, route) in view.in_order::<HttpsEdgeRoute>() {
        if let Some(edge) = &key.parent {
            routes.entry(edge).or_default().push((key, route));
        }
    }
    for (key, edge) in view.all::<HttpsEdge>() {
        for ((key, route), why) in shadowed_routes(edge, routes.remove(&key.id).unwrap_or_default()) {
            let text = printable(&route.r#match);
            match why {
                ShadowCause::PathUnread => {
                    let message =
                        format!("this edge passes TLS through and cannot see paths, so no request matches `{text}`");
                    findings.report(key, ["match"], message);
                }
                ShadowCause::Taken(other) => {
                    let message = format!("other routes of this edge take every request for `{text}`");
                    let finding = findings.report(key, ["match"], message);
                    finding.relate(other, ["match"], "the other route");
                    finding.yields_to = Some(partial_segment_prefix::LINT.name);
                }
            }
        }
    }
}

/// Why a route receives no requests.
enum ShadowCause<'w> {
    /// The edge cannot see its path.
    PathUnread,
    /// Other routes win, such as this one.
    Taken(&'w Key),
}

/// Returns the routes of an edge that receive no requests, except duplicates of others.
fn shadowed_routes<'w>(edge: &HttpsEdge, routes: Vec<KnownRoute<'w>>) -> Vec<(KnownRoute<'w>, ShadowCause<'w>)> {
    let (passes_through, port) = (passes_tls_through(edge), only_port(edge));
    let mut known = HashSet::with_capacity(routes.len());
    let first = routes.into_iter().filter_map(|route| {
        let selector = Selector::from_route(route.1)?;
        known.insert(requests(&selector, port)).then_some((route, selector))
    });
    let table = RouteTable::build(passes_through, first);
    let served: BTreeSet<(String, u16)> = edge.addresses().map(|(_, _, address)| address).collect();
    let addresses = Addresses::new(&table, &served);
    let mut probes = MOST_PROBES;
    let mut dead = Vec::new();
    for (route, selector) in table.routes() {
        if passes_through && !selector.takes_every_path() {
            dead.push((*route, ShadowCause::PathUnread));
        } else if let Some(other) = addresses.never_taken(&table, route.0, selector, &mut probes) {
            dead.push((*route, ShadowCause::Taken(other)));
        }
    }
    dead
}

/// The hosts and ports of an edge.
struct Addresses<'s> {
    served: &'s BTreeSet<(String, u16)>,
    /// The addresses without a route of their own for all paths: only they leave requests for routes without a host.
    open: Vec<(&'s str, u16)>,
}

impl<'s> Addresses<'s> {
    fn new(table: &RouteTable<'_>, served: &'s BTreeSet<(String, u16)>) -> Self {
        let has_own = |host: &str, port| {
            let winner = table.winner(host, port, "/\0");
            winner.is_some_and(|(_, selector)| !selector.host.is_empty() && selector.takes_every_path())
        };
        let all = served.iter().map(|(host, port)| (host.as_str(), *port));
        Self { served, open: all.filter(|(host, port)| !has_own(host, *port)).collect() }
    }

    /// Returns a route that receives requests instead of this one, if this one receives none.
    fn never_taken<'w>(
        &self,
        table: &RouteTable<'w>,
        key: &Key,
        selector: &Selector<'_>,
        probes: &mut usize,
    ) -> Option<&'w Key> {
        let probe = selector.probe();
        let mut other = None;
        // A wildcard serves hosts that no hostport names.
        let own = self.served.iter().filter_map(|(host, port)| {
            let is_served = !selector.host.is_empty() && rank_host(&selector.host, host).is_some();
            is_served.then_some((selector.host.as_str(), *port))
        });
        let first = self.served.first().map(|(host, port)| (host.as_str(), *port));
        let all = self.served.iter().map(|(host, port)| (host.as_str(), *port));
        let is_general = selector.host.is_empty();
        let covered = all.filter(|_| !is_general).chain(first.into_iter().chain(self.open.iter().copied()));
        for (host, port) in own.chain(covered) {
            if selector.rank_address(host, port).is_none() {
                continue;
            }
            *probes = probes.checked_sub(1)?;
            match table.serving(host, port, &probe) {
                Some((serving, _)) if serving == key => return None,
                Some((serving, _)) => other = Some(serving),
                None => {}
            }
        }
        other
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;
    use crate::model::kind::https_edge_route::MatchType::{self, ExactPath, PathPrefix};
    use crate::model::module::tls_termination::{TerminateAt, TlsTermination};

    fn dead(hostports: &[&str], passes_through: bool, routes: &[(MatchType, &str)]) -> Vec<usize> {
        let terminate_at = if passes_through { TerminateAt::Upstream } else { TerminateAt::Edge };
        let edge = HttpsEdge {
            hostports: hostports.iter().map(ToString::to_string).collect(),
            tls_termination: Some(std::sync::Arc::new(TlsTermination { terminate_at, ..TlsTermination::default() })),
            ..HttpsEdge::default()
        };
        let route = |(index, (match_type, text)): (usize, &(MatchType, &str))| {
            let spec = HttpsEdgeRoute {
                match_type: Some(*match_type),
                r#match: (*text).to_owned(),
                ..HttpsEdgeRoute::default()
            };
            (Key::new(Kind::HttpsEdgeRoute, Id::new(&format!("edghtsrt_{index}"))), spec)
        };
        let routes: Vec<(Key, HttpsEdgeRoute)> = routes.iter().enumerate().map(route).collect();
        let known: Vec<KnownRoute<'_>> = routes.iter().map(|(key, route)| (key, route)).collect();
        let dead = shadowed_routes(&edge, known);
        let place = |it: &Key| routes.iter().position(|(key, _)| key == it);
        dead.iter().filter_map(|((key, _), _)| place(key)).collect()
    }

    #[test]
    fn a_route_is_dead_if_others_win_on_every_host() {
        let wider = [(PathPrefix, "/"), (PathPrefix, "/x"), (ExactPath, "/x"), (PathPrefix, "a.example.com/x/y")];
        assert!(dead(&["a.example.com:443"], false, &wider).is_empty());
        let both = [(PathPrefix, "/x"), (PathPrefix, "A.example.com/x"), (PathPrefix, "/")];
        assert_eq!(dead(&["a.example.com:443"], false, &both), [0]);
        assert!(dead(&["a.example.com:443", "b.example.com:443"], false, &both).is_empty());
        assert!(dead(&["*.example.com:443"], false, &both).is_empty() && dead(&[], false, &both).is_empty());
        let wildcard = [(ExactPath, "/x"), (ExactPath, "*.example.com/x")];
        assert_eq!(dead(&["a.example.com:443", "*.example.com:443"], false, &wildcard), [0]);
        let twice = [(ExactPath, "/x"), (ExactPath, "*.example.com/x"), (ExactPath, "a.example.com/x")];
        assert_eq!(dead(&["a.example.com:443", "b.example.com:443"], false, &twice), [0]);
        assert_eq!(dead(&["a.example.com:443", "example.org:443"], false, &twice), [1]);
    }

    #[test]
    fn a_closer_host_takes_all_its_paths() {
        let hosts = ["a.example.com:443", "b.example.com:443"];
        let routes = [(PathPrefix, "/x"), (PathPrefix, "a.example.com"), (ExactPath, "b.example.com")];
        assert_eq!(dead(&hosts, false, &routes), [0]);
        assert!(dead(&hosts, false, &routes[..2]).is_empty());
    }

    #[test]
    fn a_port_in_a_match_counts() {
        let routes = [(PathPrefix, "/x"), (PathPrefix, "a.example.com:443/x")];
        assert_eq!(dead(&["a.example.com:443"], false, &routes), [0]);
        assert!(dead(&["a.example.com:443", "a.example.com:8443"], false, &routes).is_empty());
        let twins = [(PathPrefix, "a.example.com/x"), (PathPrefix, "a.example.com:443/x")];
        assert_eq!(dead(&["a.example.com:443", "b.example.com:80"], false, &twins), [1]);
    }

    #[test]
    fn without_paths_only_hosts_match() {
        for route in [(PathPrefix, "/x"), (PathPrefix, "a.example.com/x"), (ExactPath, "/")] {
            assert_eq!(dead(&["a.example.com:443"], true, &[route]), [0], "{route:?}");
        }
        for route in [(PathPrefix, "/"), (PathPrefix, "a.example.com"), (ExactPath, "a.example.com")] {
            assert!(dead(&["a.example.com:443"], true, &[route]).is_empty(), "{route:?}");
        }
        let own = [(PathPrefix, "/"), (PathPrefix, "*.example.com"), (PathPrefix, "b.example.com/x")];
        assert_eq!(dead(&["a.example.com:443", "b.example.com:443"], true, &own), [0, 2]);
    }
}

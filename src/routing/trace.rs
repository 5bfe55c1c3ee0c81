//! The trace of a request through a revision.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::behaviour::Fate;
use super::enforced_restrictions::EnforcedRestrictions;
use super::host_rank::{HostRank, rank_host};
use super::module_pipeline::{PipelineStep, pipeline};
use super::route_decision::RouteDecision;
use super::routed_state::RoutedState;
use super::selector::{Rank, Selector, passes_tls_through};
use crate::model::diagnostics::check::parse_hostport;
use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::traffic::{TracedRequest, bare_host};
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, MatchType, Resource, Snapshot};

/// A resource in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The key.
    pub key: Key,
    /// The name in the manifests; `None` if no source owns it.
    pub name: Option<String>,
}

/// The edge that serves a request, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeChoice {
    /// The edge.
    pub edge: Named,
    /// The edge's matching hostport.
    pub hostport: String,
    /// How specific the hostport is.
    pub rank: HostRank,
    /// Whether the edge passes TLS through and so cannot see the path.
    pub passes_through: bool,
}

/// A candidate route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteCandidate {
    /// The route.
    pub route: Named,
    /// The match type.
    pub match_type: Option<MatchType>,
    /// The match.
    pub matched: String,
    /// The verdict.
    pub verdict: RouteDecision,
}

/// The path of a request through the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The edge that serves the request.
    pub edge: Option<EdgeChoice>,
    /// The edge's routes, with the one that handles the request first.
    pub routes: Vec<RouteCandidate>,
    /// The enabled modules in traffic order, up to the first that rejects the request.
    pub modules: Vec<PipelineStep>,
}

impl Trace {
    /// Returns the route that handles the request.
    pub fn route(&self) -> Option<&RouteCandidate> {
        self.routes.iter().find(|route| route.verdict == RouteDecision::Taken)
    }

    /// Returns the fate of the request in the revision that was traced.
    pub(crate) fn fate<'s>(&self, snapshot: &'s Snapshot) -> Fate<'s> {
        let edge = self.edge.as_ref().and_then(|it| snapshot.get(&it.edge.key));
        Fate::new(snapshot, edge, self.route().and_then(|it| snapshot.get(&it.route.key)))
    }
}

/// Traces a request through a revision.
pub fn trace(snapshot: &Snapshot, request: &TracedRequest) -> Trace {
    trace_part(snapshot, request, 0..usize::MAX).0
}

/// Traces a request through a revision, with some of the routes that do not handle it: an edge can have a million. Returns
/// whether there are more of them, too.
pub(crate) fn trace_part(snapshot: &Snapshot, request: &TracedRequest, losers: Range<usize>) -> (Trace, bool) {
    let edges = resources::<HttpsEdge>(snapshot.entries_after(Key::new(Kind::HttpsEdge, Id::new(""))));
    let serving = edges.flat_map(|(key, name, edge)| {
        let hostports =
            edge.hostports.iter().filter_map(move |hostport| Some((hostport, rank_hostport(request, hostport)?)));
        hostports.map(move |(hostport, rank)| (rank, Reverse(key), name, edge, hostport))
    });
    let Some((rank, Reverse(key), name, edge, hostport)) = serving.max_by_key(|it| (it.0, it.1)) else {
        return (Trace::default(), false);
    };
    let passes_through = passes_tls_through(edge);
    let choice = EdgeChoice { edge: named(key, name), hostport: hostport.clone(), rank, passes_through };
    let ranked = resources::<HttpsEdgeRoute>(snapshot.children_after(key, None))
        .map(|(key, _, route)| (Reverse(rank_route(request, route, passes_through).ok()), key));
    let (first, is_cut) = lowest(ranked, losers.end.saturating_add(1));
    let typed =
        |key: &Key| snapshot.get(key).and_then(|entry| Some((entry.name(), entry.spec_as::<HttpsEdgeRoute>()?)));
    let winner = first.first().and_then(|(Reverse(rank), key)| Some(((*rank)?, *key, typed(key)?.1)));
    let candidate = |key: &Key, verdict: RouteDecision| {
        let (name, route) = typed(key)?;
        let (match_type, matched) = (route.match_type, route.r#match.clone());
        Some(RouteCandidate { route: named(key, name), match_type, matched, verdict })
    };
    let taken = winner.and_then(|(_, key, _)| candidate(key, RouteDecision::Taken));
    let lost = first.get(usize::from(winner.is_some())..).unwrap_or_default();
    let shown = lost.iter().skip(losers.start).take(losers.len()).filter_map(|(_, key)| {
        let verdict = match (rank_route(request, typed(key)?.1, passes_through), &winner) {
            (Err(verdict), _) => verdict,
            (Ok(rank), Some((best, _, taken))) => decide_loser(&rank, best, taken),
            (Ok(_), None) => RouteDecision::NoMatch,
        };
        candidate(key, verdict)
    });
    let routes = taken.into_iter().chain(shown).collect();
    let patterns = &mut CompiledPatterns::default();
    let of_endpoints = || EnforcedRestrictions::of_endpoints(RoutedState::stored(snapshot, "")).step();
    let modules = winner.map(|(.., route)| pipeline(request, [edge, route], of_endpoints(), patterns));
    let modules = modules.unwrap_or_default();
    (Trace { edge: Some(choice), routes, modules }, is_cut || lost.len() > losers.end)
}

/// The edges that serve the host of a request on other ports, at most so many.
pub(crate) fn on_other_ports(snapshot: &Snapshot, request: &TracedRequest, most: usize) -> Vec<EdgeChoice> {
    let edges = resources::<HttpsEdge>(snapshot.entries_after(Key::new(Kind::HttpsEdge, Id::new(""))));
    let choices = edges.flat_map(|(key, name, edge)| {
        edge.hostports.iter().filter_map(move |hostport| {
            let (rank, port) = rank_any_port(request, hostport)?;
            let passes_through = passes_tls_through(edge);
            let choice = || EdgeChoice { edge: named(key, name), hostport: hostport.clone(), rank, passes_through };
            (port != request.port).then(choice)
        })
    });
    choices.take(most).collect()
}

/// The lowest items, at most so many, in order: the others are not kept. Returns whether there are others, too.
fn lowest<T: Ord>(items: impl Iterator<Item = T>, most: usize) -> (Vec<T>, bool) {
    let (mut lowest, mut is_cut) = (BinaryHeap::new(), false);
    for item in items {
        if lowest.len() < most {
            lowest.push(item);
        } else {
            is_cut = true;
            if let Some(mut highest) = lowest.peek_mut().filter(|highest| item < **highest) {
                *highest = item;
            }
        }
    }
    (lowest.into_sorted_vec(), is_cut)
}

/// Resources with their names and typed Specs.
fn resources<'a, R: Resource>(
    entries: impl Iterator<Item = &'a Arc<Entry>>,
) -> impl Iterator<Item = (&'a Key, Option<&'a str>, &'a R)> {
    entries.filter_map(|entry| Some((&entry.key, entry.name(), entry.spec_as::<R>()?)))
}

fn named(key: &Key, name: Option<&str>) -> Named {
    Named { key: key.clone(), name: name.map(str::to_owned) }
}

fn rank_hostport(request: &TracedRequest, hostport: &str) -> Option<HostRank> {
    let (rank, port) = rank_any_port(request, hostport)?;
    (port == request.port).then_some(rank)
}

/// The rank of a hostport by its host alone, and its port.
fn rank_any_port(request: &TracedRequest, hostport: &str) -> Option<(HostRank, u16)> {
    // Most are of another host, which takes less than to parse them.
    let rank = rank_host(&request.host, bare_host(hostport.rsplit_once(':')?.0))?;
    Some((rank, parse_hostport(hostport).ok()?.1))
}

fn rank_route(request: &TracedRequest, route: &HttpsEdgeRoute, passes_through: bool) -> Result<Rank, RouteDecision> {
    let selector = Selector::from_route(route).ok_or(RouteDecision::NoMatch)?;
    selector.rank(&request.host, request.port, &request.path, passes_through)
}

fn decide_loser(rank: &Rank, best: &Rank, winner: &HttpsEdgeRoute) -> RouteDecision {
    if rank.0 < best.0 {
        RouteDecision::CloserHostWins
    } else if !rank.1 && best.1 {
        RouteDecision::ExactWins
    } else if rank.2 < best.2 {
        RouteDecision::Shorter(winner.r#match.clone())
    } else {
        RouteDecision::Twin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_are_kept_in_order() {
        let numbers = [5, 3, 9, 1, 7];
        assert_eq!(lowest(numbers.into_iter(), 3), (vec![1, 3, 5], true));
        assert_eq!(lowest(numbers.into_iter(), 5), (vec![1, 3, 5, 7, 9], false));
        assert_eq!(lowest(numbers.into_iter(), 0), (vec![], true));
    }
}

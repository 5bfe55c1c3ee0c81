//! The trace of a request through a revision.

use std::{cmp::Reverse, sync::Arc};

use super::host_rank::{HostRank, rank_host};
use super::module_pipeline::{PipelineStep, pipeline};
use super::route_decision::RouteDecision;
use super::selector::{Rank, Selector, passes_tls_through};
use crate::model::diagnostics::check::parse_hostport;
use crate::model::module::agent_patterns::CompiledPatterns;
use crate::model::traffic::TracedRequest;
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute, Key, Kind, MatchType, Resource, Snapshot};

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
}

/// Traces a request through a revision.
pub fn trace(snapshot: &Snapshot, request: &TracedRequest) -> Trace {
    let edges = resources::<HttpsEdge>(snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX));
    let serving = edges.flat_map(|(key, name, edge)| {
        let hostports =
            edge.hostports.iter().filter_map(move |hostport| Some((hostport, rank_hostport(request, hostport)?)));
        hostports.map(move |(hostport, rank)| (rank, Reverse(key), name, edge, hostport))
    });
    let Some((rank, Reverse(key), name, edge, hostport)) = serving.max_by_key(|it| (it.0, it.1)) else {
        return Trace::default();
    };
    let passes_through = passes_tls_through(edge);
    let choice = EdgeChoice { edge: named(key, name), hostport: hostport.clone(), rank, passes_through };
    let mut routes: Vec<_> = resources::<HttpsEdgeRoute>(snapshot.children(key))
        .map(|(key, name, route)| (rank_route(request, route, passes_through), key, name, route))
        .collect();
    // Best match first, then the routes that do not match.
    routes.sort_by(|a, b| b.0.as_ref().ok().cmp(&a.0.as_ref().ok()).then_with(|| a.1.cmp(b.1)));
    let winner = routes.first().and_then(|(rank, key, _, route)| Some((rank.as_ref().ok().copied()?, *key, *route)));
    let considered = routes.iter().map(|(rank, key, name, route)| {
        let verdict = match (rank, &winner) {
            (Err(verdict), _) => verdict.clone(),
            (Ok(_), Some((_, first, _))) if first == key => RouteDecision::Taken,
            (Ok(rank), Some((best, _, taken))) => decide_loser(rank, best, taken),
            (Ok(_), None) => RouteDecision::NoMatch,
        };
        RouteCandidate {
            route: named(key, *name),
            match_type: route.match_type,
            matched: route.r#match.clone(),
            verdict,
        }
    });
    let routes = considered.collect();
    let patterns = &mut CompiledPatterns::default();
    let modules = winner.map(|(.., route)| pipeline(request, [edge, route], patterns)).unwrap_or_default();
    Trace { edge: Some(choice), routes, modules }
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
    let (host, port) = parse_hostport(hostport).ok()?;
    if port == request.port { rank_host(&request.host, host) } else { None }
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

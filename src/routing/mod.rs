//! Request routing: which edge and route handle a request, and the modules that it passes through.
//!
//! # The problem
//!
//! Many routes can match one request. `edgewright trace`, lints and warnings about plans must choose the one that the
//! gateway chooses.
//!
//! # The idea
//!
//! Host and port select the edge, the most specific hostport first. Among the edge's routes, a closer host wins over
//! any path, an exact path over a prefix, and a longer prefix over a shorter one (`selector.rs`). A
//! [`RouteTable`](table::RouteTable) answers many such questions about one edge. The modules of edge and route then act
//! in a fixed order (`order.rs`, `passage.rs`).
//!
//! # An example
//!
//! `GET https://shop.example.com/cart/1` selects the edge with `shop.example.com:443` before the one with
//! `*.example.com:443`, and its route for `/cart` before the one for `/`.
//!
//! # What it never does
//!
//! It handles no traffic and evaluates no policy: a step whose effect is unknown is shown as such.
//!
//! See `docs/explanation/routing.md` and D42.

pub(crate) mod order;
mod passage;
pub(crate) mod selector;
pub(crate) mod table;

use std::{cmp::Reverse, fmt, net::Ipv6Addr, sync::Arc};

pub use crate::model::traffic::{StepEffect, TracedRequest};
use crate::model::{
    Entry, HttpsEdge, HttpsEdgeRoute, Key, Kind, Resource, Snapshot, diagnostics::check::parse_hostport,
    kind::https_edge_route::MatchType, rules, traffic::bare_host,
};
pub use passage::Passage;
use selector::{Rank, Selector};

/// A resource in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The key.
    pub key: Key,
    /// The name in the manifests; `None` if no source owns it.
    pub name: Option<String>,
}

/// How specific a host match is; later variants win over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostRank {
    /// Any host.
    Any,
    /// A wildcard with a suffix of this many bytes.
    Wildcard(usize),
    /// The exact host.
    Literal,
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

/// Whether a route handles a request, or why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteDecision {
    /// The route handles the request.
    Taken,
    /// The `match` is empty, or the `match_type` is unset.
    NoMatch,
    /// The `match` has a different host.
    OtherHost,
    /// The `match` has a different path.
    PathDiffers,
    /// The edge passes TLS through and cannot see the path.
    PathUnread,
    /// The winner's host is more specific.
    CloserHostWins,
    /// The winner is an `exact_path`.
    ExactWins,
    /// The winner has a longer prefix.
    Shorter(String),
    /// The winner has the same match and a lower ID.
    Twin,
}

impl fmt::Display for RouteDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteDecision::Taken => f.write_str("handles the request"),
            RouteDecision::NoMatch => f.write_str("no match"),
            RouteDecision::OtherHost => f.write_str("host differs"),
            RouteDecision::PathDiffers => f.write_str("path differs"),
            RouteDecision::PathUnread => f.write_str("the edge cannot see the path"),
            RouteDecision::CloserHostWins => f.write_str("a more specific host wins"),
            RouteDecision::ExactWins => f.write_str("exact_path wins"),
            RouteDecision::Shorter(than) => write!(f, "shorter prefix than {than}"),
            RouteDecision::Twin => f.write_str("same match, the lower ID wins"),
        }
    }
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
    pub modules: Vec<Passage>,
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
    let blind = is_blind(edge);
    let choice = EdgeChoice { edge: named(key, name), hostport: hostport.clone(), rank, passes_through: blind };
    let mut routes: Vec<_> = resources::<HttpsEdgeRoute>(snapshot.children(key))
        .map(|(key, name, route)| (rank_route(request, route, blind), key, name, route))
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
    let modules = winner.map(|(.., route)| passage::passages(request, [edge, route])).unwrap_or_default();
    Trace { edge: Some(choice), routes, modules }
}

/// Resources with their names and typed Specs.
fn resources<'a, R: Resource>(
    entries: impl Iterator<Item = &'a Arc<Entry>>,
) -> impl Iterator<Item = (&'a Key, Option<&'a str>, &'a R)> {
    let name = |entry: &'a Entry| entry.claim.as_deref().map(|claim| claim.name.as_str());
    entries.filter_map(move |entry| Some((&entry.key, name(entry), entry.spec_as::<R>()?)))
}

fn named(key: &Key, name: Option<&str>) -> Named {
    Named { key: key.clone(), name: name.map(str::to_owned) }
}

/// Whether an edge passes TLS through, and so cannot see paths.
pub(crate) fn is_blind(edge: &HttpsEdge) -> bool {
    rules::passes_through(edge) && edge.tls_termination.as_ref().is_some_and(|tls| tls.enabled)
}

/// Ranks how specifically a pattern matches a host, ignoring case, a trailing dot and the spelling of an IPv6 address;
/// `None` if it does not match.
pub(crate) fn rank_host(host: &str, pattern: &str) -> Option<HostRank> {
    let pattern = pattern.strip_suffix('.').unwrap_or(pattern);
    let Some(suffix) = pattern.strip_prefix('*') else {
        let pattern = bare_host(pattern);
        return (pattern.eq_ignore_ascii_case(host) || same_address(host, pattern)).then_some(HostRank::Literal);
    };
    let at = host.len().checked_sub(suffix.len()).filter(|at| *at > 0)?;
    host.get(at..)?.eq_ignore_ascii_case(suffix).then_some(HostRank::Wildcard(suffix.len()))
}

fn same_address(one: &str, other: &str) -> bool {
    let address = |text: &str| text.parse::<Ipv6Addr>().ok();
    other.contains(':') && address(one).is_some_and(|one| address(other) == Some(one))
}

fn rank_hostport(request: &TracedRequest, hostport: &str) -> Option<HostRank> {
    let (host, port) = parse_hostport(hostport).ok()?;
    if port == request.port { rank_host(&request.host, host) } else { None }
}

fn rank_route(request: &TracedRequest, route: &HttpsEdgeRoute, blind: bool) -> Result<Rank, RouteDecision> {
    let selector = Selector::from_route(route).ok_or(RouteDecision::NoMatch)?;
    selector.rank(&request.host, request.port, &request.path, blind)
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
    fn a_literal_host_is_closer_than_a_wildcard_and_a_long_wildcard_than_a_short_one() {
        let literal = rank_host("a.b.example.com", "A.B.example.com");
        let (long, short) =
            (rank_host("a.b.example.com", "*.b.example.com"), rank_host("a.b.example.com", "*.example.com"));
        assert!(literal > long && long > short && short > Some(HostRank::Any));
        assert_eq!(rank_host("example.com", "*.example.com"), None);
        assert_eq!(rank_host("myexample.com", "*.example.com"), None);
        assert_eq!(rank_host("2001:db8::1", "[2001:DB8:0::1]"), Some(HostRank::Literal));
    }
}

//! Which edge serves a host and port, and which of its routes takes a request, for many requests of one state. The table
//! chooses as a trace does, and does not look at each edge.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use foldhash::HashMap;

use super::enforced_restrictions::EnforcedRestrictions;
use super::routed_state::RoutedState;
use super::selector::passes_tls_through;
use super::table::{KnownRoute, RouteTable};
use crate::model::diagnostics::check::parse_hostport;
use crate::model::traffic::host_name;
use crate::model::{AnyResource, HttpsEdge, Key, Snapshot};

/// Where a request goes in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RoutedTo {
    /// No edge serves its host and port.
    Nowhere,
    /// The edge at this place of the table has no route for it.
    Edge(usize),
    /// A route of an edge, by their places.
    Route(usize, usize),
}

/// An edge with its routes, which are read when a request asks for them.
pub(crate) struct RoutedEdge<'s> {
    pub(crate) key: &'s Key,
    pub(crate) edge: &'s HttpsEdge,
    routes: OnceLock<RouteTable<'s>>,
}

/// A port of a host.
struct ServedPort<'s> {
    port: u16,
    /// The place of the edge that serves it.
    edge: usize,
    /// The hostport as the edge has it.
    hostport: &'s str,
}

/// The edges of a state by host and port.
pub(crate) struct EdgeTable<'s> {
    state: RoutedState<'s>,
    /// In the order of their keys.
    edges: Vec<RoutedEdge<'s>>,
    hosts: HashMap<String, Vec<ServedPort<'s>>>,
    /// By the part of the host behind the `*`.
    wildcards: HashMap<String, Vec<ServedPort<'s>>>,
    /// The lengths of the wildcards' suffixes.
    lengths: BTreeSet<usize>,
    endpoints: EnforcedRestrictions<'s>,
}

impl<'s> EdgeTable<'s> {
    /// Creates the table of a state.
    pub(crate) fn new(state: RoutedState<'s>) -> Self {
        let edges = state.edges().map(|(key, edge)| RoutedEdge { key, edge, routes: OnceLock::new() });
        let mut edges: Vec<RoutedEdge<'s>> = edges.collect();
        // Of two edges with the same hostport, the lower ID wins.
        edges.sort_by(|one, other| one.key.cmp(other.key));
        let mut hosts: HashMap<String, Vec<ServedPort<'s>>> = HashMap::default();
        let mut wildcards: HashMap<String, Vec<ServedPort<'s>>> = HashMap::default();
        let mut lengths = BTreeSet::new();
        for (at, routed) in edges.iter().enumerate() {
            for hostport in &routed.edge.hostports {
                let Ok((host, port)) = parse_hostport(hostport) else { continue };
                let host = host_name(host);
                let ports = match host.strip_prefix('*') {
                    Some(suffix) => {
                        lengths.insert(suffix.len());
                        wildcards.entry(suffix.to_owned()).or_default()
                    }
                    None => hosts.entry(host).or_default(),
                };
                match ports.iter_mut().find(|known| known.port == port) {
                    None => ports.push(ServedPort { port, edge: at, hostport }),
                    // The edge has the hostport in another spelling, too: a trace shows the last one.
                    Some(known) if known.edge == at => known.hostport = hostport,
                    Some(_) => {}
                }
            }
        }
        Self { state, edges, hosts, wildcards, lengths, endpoints: EnforcedRestrictions::of_endpoints(state) }
    }

    /// Creates the table of what a store has.
    pub(crate) fn of_store(snapshot: &'s Snapshot) -> Self {
        Self::new(RoutedState::stored(snapshot, ""))
    }

    /// The state of the table.
    pub(crate) fn state(&self) -> RoutedState<'s> {
        self.state
    }

    /// The restrictions of all endpoints.
    pub(super) fn endpoints(&self) -> &EnforcedRestrictions<'s> {
        &self.endpoints
    }

    /// All edges, in the order of their places.
    pub(crate) fn edges(&self) -> &[RoutedEdge<'s>] {
        &self.edges
    }

    /// The routes of an edge.
    pub(crate) fn routes<'t>(&self, edge: &'t RoutedEdge<'s>) -> &'t RouteTable<'s> {
        edge.routes.get_or_init(|| RouteTable::new(passes_tls_through(edge.edge), self.state.routes(edge.key)))
    }

    /// Where a request goes. The host is in its normal form.
    pub(crate) fn route(&self, host: &str, port: u16, path: &str) -> RoutedTo {
        let Some(at) = self.serving(host, port).map(|served| served.edge) else { return RoutedTo::Nowhere };
        let winning = self.edges.get(at).and_then(|edge| self.routes(edge).winning(host, port, path));
        winning.map_or(RoutedTo::Edge(at), |route| RoutedTo::Route(at, route))
    }

    /// The hostport by which an edge serves a host in its normal form, as the edge has it.
    pub(crate) fn hostport(&self, host: &str, port: u16) -> Option<&'s str> {
        self.serving(host, port).map(|served| served.hostport)
    }

    /// The edge where a request goes.
    pub(crate) fn edge(&self, to: RoutedTo) -> Option<&RoutedEdge<'s>> {
        match to {
            RoutedTo::Nowhere => None,
            RoutedTo::Edge(at) | RoutedTo::Route(at, _) => self.edges.get(at),
        }
    }

    /// The edge and the route where a request goes.
    pub(crate) fn edge_and_route(&self, to: RoutedTo) -> Option<(&RoutedEdge<'s>, KnownRoute<'s>)> {
        let RoutedTo::Route(_, at) = to else { return None };
        let edge = self.edge(to)?;
        Some((edge, self.routes(edge).routes().get(at)?.0))
    }

    /// The keys of the edge and the route where a request goes.
    pub(super) fn keys(&self, to: RoutedTo) -> [Option<&'s Key>; 2] {
        [self.edge(to).map(|edge| edge.key), self.edge_and_route(to).map(|(_, route)| route.0)]
    }

    /// The edge and the route as the hosts of modules, if the request has both.
    pub(super) fn hosts_of_modules(&self, to: RoutedTo) -> Option<[&'s dyn AnyResource; 2]> {
        let (edge, route) = self.edge_and_route(to)?;
        let hosts: [&dyn AnyResource; 2] = [edge.edge, route.1];
        Some(hosts)
    }

    /// The port of a host in its normal form: of the host itself, or of the longest wildcard that covers it.
    fn serving(&self, host: &str, port: u16) -> Option<&ServedPort<'s>> {
        let of_wildcard = |length: &usize| {
            let at = host.len().checked_sub(*length).filter(|at| *at > 0)?;
            at_port(self.wildcards.get(host.get(at..)?), port)
        };
        at_port(self.hosts.get(host), port).or_else(|| self.lengths.iter().rev().find_map(of_wildcard))
    }
}

fn at_port<'t, 's>(ports: Option<&'t Vec<ServedPort<'s>>>, port: u16) -> Option<&'t ServedPort<'s>> {
    ports?.iter().find(|known| known.port == port)
}

#[cfg(test)]
mod tests;

//! The edges of a state by host and port. The index finds what a trace finds by comparing the ranks of all hostports.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashMapExt as _};

use crate::model::diagnostics::check::parse_hostport;
use crate::model::traffic::host_name;
use crate::model::{AnyResource, Entry, HttpsEdge, HttpsEdgeRoute, Key, Kind, Snapshot};
use crate::routing::selector::passes_tls_through;
use crate::routing::table::{KnownRoute, RouteTable};

/// Where a request goes in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RoutedTo {
    /// No edge serves its host and port.
    Nowhere,
    /// The edge at this place of the index has no route for it.
    Edge(usize),
    /// A route of an edge, by their places.
    Route(usize, usize),
}

/// The ports of a host, each with the place of its edge.
type EdgesByPort = Vec<(u16, usize)>;

/// The edges of a state.
pub(crate) struct EdgeIndex<'s> {
    snapshot: &'s Snapshot,
    edges: Vec<RoutedEdge<'s>>,
    hosts: HashMap<String, EdgesByPort>,
    /// By the part of the host behind the `*`.
    wildcards: HashMap<String, EdgesByPort>,
    /// The lengths of the wildcards' suffixes.
    lengths: BTreeSet<usize>,
}

/// An edge with its routes, which are read when a request asks for them.
pub(crate) struct RoutedEdge<'s> {
    pub(crate) entry: &'s Arc<Entry>,
    pub(crate) edge: &'s HttpsEdge,
    routes: OnceLock<RouteTable<'s>>,
}

impl<'s> EdgeIndex<'s> {
    /// Indexes a state.
    pub(crate) fn new(snapshot: &'s Snapshot) -> Self {
        let entries = snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX);
        let edges = entries.filter_map(|entry| {
            Some(RoutedEdge { entry, edge: entry.spec_as::<HttpsEdge>()?, routes: OnceLock::new() })
        });
        let mut edges: Vec<RoutedEdge<'s>> = edges.collect();
        // Of two edges with the same hostport, the lower ID wins.
        edges.sort_by(|one, other| one.entry.key.cmp(&other.entry.key));
        let (mut hosts, mut wildcards, mut lengths) = (HashMap::new(), HashMap::new(), BTreeSet::new());
        for (at, routed) in edges.iter().enumerate() {
            for hostport in &routed.edge.hostports {
                let Ok((host, port)) = parse_hostport(hostport) else { continue };
                let host = host.strip_suffix('.').unwrap_or(host);
                let ports: &mut EdgesByPort = match host.strip_prefix('*') {
                    Some(suffix) => {
                        lengths.insert(suffix.len());
                        wildcards.entry(suffix.to_ascii_lowercase()).or_default()
                    }
                    None => hosts.entry(host_name(host)).or_default(),
                };
                if ports.iter().all(|(known, _)| *known != port) {
                    ports.push((port, at));
                }
            }
        }
        Self { snapshot, edges, hosts, wildcards, lengths }
    }

    /// The edge for a host in its normal form.
    fn serving(&self, host: &str, port: u16) -> Option<usize> {
        let at_port = |ports: &EdgesByPort| ports.iter().find(|(known, _)| *known == port).map(|(_, at)| *at);
        let of_wildcard = |length: &usize| {
            let at = host.len().checked_sub(*length).filter(|at| *at > 0)?;
            self.wildcards.get(host.get(at..)?).and_then(at_port)
        };
        self.hosts.get(host).and_then(at_port).or_else(|| self.lengths.iter().rev().find_map(of_wildcard))
    }

    /// Where a request goes. The host is in its normal form.
    pub(crate) fn route(&self, host: &str, port: u16, path: &str) -> RoutedTo {
        let Some((at, edge)) = self.serving(host, port).and_then(|at| Some((at, self.edges.get(at)?))) else {
            return RoutedTo::Nowhere;
        };
        let winning = self.routes(edge).winning(host, port, path);
        winning.map_or(RoutedTo::Edge(at), |route| RoutedTo::Route(at, route))
    }

    /// All edges, in the order of their places.
    pub(crate) fn edges(&self) -> &[RoutedEdge<'s>] {
        &self.edges
    }

    /// The routes of an edge.
    pub(crate) fn routes<'i>(&self, edge: &'i RoutedEdge<'s>) -> &'i RouteTable<'s> {
        edge.routes.get_or_init(|| {
            let children = self.snapshot.children(&edge.entry.key);
            let routes = children.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)));
            let mut routes: Vec<KnownRoute<'s>> = routes.collect();
            routes.sort_by(|one, other| one.0.cmp(other.0));
            RouteTable::new(passes_tls_through(edge.edge), routes)
        })
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
    pub(super) fn keys(&self, to: RoutedTo) -> [Option<&Key>; 2] {
        [self.edge(to).map(|edge| &edge.entry.key), self.edge_and_route(to).map(|(_, route)| route.0)]
    }

    /// The edge and the route as the hosts of modules, if the request has both.
    pub(super) fn hosts_of_modules(&self, to: RoutedTo) -> Option<[&dyn AnyResource; 2]> {
        let (edge, route) = self.edge_and_route(to)?;
        let hosts: [&dyn AnyResource; 2] = [edge.edge, route.1];
        Some(hosts)
    }

    /// The name of a resource in the manifests, or its ID.
    pub(crate) fn name(&self, key: &Key) -> String {
        let name = self.snapshot.get(key).and_then(|entry| entry.name());
        name.map_or_else(|| key.id.to_string(), str::to_owned)
    }
}

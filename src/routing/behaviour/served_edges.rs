//! Which edge serves a host and port in each of some states, as far as a comparison needs it.

use std::array;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::host_tree::HostTree;
use crate::background::yield_to_requests;
use crate::model::diagnostics::check::parse_hostport;
use crate::model::host_pattern::wider;
use crate::model::traffic::host_name;
use crate::model::{Entry, HttpsEdge, Key, Kind, Snapshot};

/// The edges with a hostport, one for each state.
pub(super) type EdgesAt<'s, const N: usize> = [Option<&'s Arc<Entry>>; N];

/// The edges of some states by port and host.
pub(super) struct ServedEdges<'s, const N: usize> {
    ports: BTreeMap<u16, HostTree<EdgesAt<'s, N>>>,
    /// The hostports that are judged.
    judged: BTreeSet<(u16, String)>,
}

impl<'s, const N: usize> ServedEdges<'s, N> {
    /// All edges.
    pub(super) fn all(states: [&'s Snapshot; N]) -> Self {
        let mut served = Self { ports: BTreeMap::new(), judged: BTreeSet::new() };
        for (at, state) in states.into_iter().enumerate() {
            edges(state).for_each(|edge| served.judge(edge, at));
        }
        served
    }

    /// Some edges, which are judged, and the others that compete with them. All others are the same in each state.
    pub(super) fn judging(states: [&'s Snapshot; N], judged: &BTreeSet<Key>) -> Self {
        let mut served = Self { ports: BTreeMap::new(), judged: BTreeSet::new() };
        for (at, state) in states.into_iter().enumerate() {
            judged.iter().filter_map(|key| state.get(key)).for_each(|edge| served.judge(edge, at));
        }
        if served.judged.is_empty() {
            return served;
        }
        let mut others = Vec::new();
        for edge in states.into_iter().take(1).flat_map(edges).filter(|edge| !judged.contains(&edge.key)) {
            others.extend(hostports(edge).filter(|(host, port)| served.competes(host, *port)).map(|it| (edge, it)));
        }
        // Only what competes with judged edges is kept: what competes with the others does not matter.
        for (edge, (host, port)) in others {
            (0..N).for_each(|at| served.add(edge, &host, port, at));
        }
        served
    }

    /// The hostports that are judged, by port.
    pub(super) fn judged(&self) -> impl Iterator<Item = (u16, &str)> {
        self.judged.iter().map(|(port, host)| (*port, host.as_str()))
    }

    /// The edges that serve the hosts of a pattern for which no narrower hostport exists.
    pub(super) fn serving(&self, pattern: &str, port: u16) -> EdgesAt<'s, N> {
        let Some(tree) = self.ports.get(&port) else { return [None; N] };
        array::from_fn(|at| {
            let own = |pattern: &str| tree.get(pattern).and_then(|edges| edges.get(at).copied().flatten());
            own(pattern).or_else(|| wider(pattern).find_map(|wider| own(&wider)))
        })
    }

    /// Whether the hosts of a pattern are served by a hostport, and by no narrower one.
    pub(super) fn is_closest(&self, hostport: &str, pattern: &str, port: u16) -> bool {
        let Some(tree) = self.ports.get(&port) else { return false };
        let mut covering = std::iter::once(pattern.to_owned()).chain(wider(pattern));
        covering.find(|it| tree.get(it).is_some()).is_some_and(|closest| closest == hostport)
    }

    /// The narrower hostports below a pattern.
    pub(super) fn below(&self, pattern: &str, port: u16) -> Vec<String> {
        self.ports.get(&port).map(|tree| tree.below(pattern)).unwrap_or_default()
    }

    /// Whether a hostport can change what another one of the judged edges serves.
    fn competes(&self, host: &str, port: u16) -> bool {
        self.ports.get(&port).is_some_and(|tree| tree.meets(host))
    }

    fn judge(&mut self, edge: &'s Arc<Entry>, at: usize) {
        for (host, port) in hostports(edge) {
            self.add(edge, &host, port, at);
            self.judged.insert((port, host));
        }
    }

    /// If two edges have a hostport, the lower ID serves it.
    fn add(&mut self, edge: &'s Arc<Entry>, host: &str, port: u16, at: usize) {
        let edges = self.ports.entry(port).or_default().entry(host, [None; N]);
        if let Some(known) = edges.get_mut(at).filter(|known| known.is_none_or(|known| edge.key < known.key)) {
            *known = Some(edge);
        }
    }
}

fn edges(state: &Snapshot) -> impl Iterator<Item = &Arc<Entry>> {
    state.newest_first(Kind::HttpsEdge, None, u64::MAX).inspect(|_| yield_to_requests())
}

/// The hostports of an edge in normal form.
pub(in crate::routing) fn hostports(edge: &Arc<Entry>) -> impl Iterator<Item = (String, u16)> {
    let hostports = edge.spec_as::<HttpsEdge>().into_iter().flat_map(|edge| &edge.hostports);
    hostports.filter_map(|text| parse_hostport(text).ok()).map(|(host, port)| (host_name(host), port))
}

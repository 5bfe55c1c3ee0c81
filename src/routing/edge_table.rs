//! The edges of a state by host and port, so that tests can ask about many requests. A table chooses as a trace does, and
//! does not look at each edge.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use foldhash::HashMap;

use super::table::KnownRoute;
use crate::model::diagnostics::check::parse_hostport;
use crate::model::traffic::host_name;
use crate::model::{Claim, Desired, Entry, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind, Snapshot};

/// The edges and routes of a state.
#[derive(Clone, Copy)]
pub(crate) struct RoutedState<'s> {
    /// The resources in a store.
    pub(crate) snapshot: &'s Snapshot,
    /// The source that asks.
    pub(crate) source: &'s str,
    /// What the source declares, in place of its resources in the store, if that is not applied yet.
    pub(crate) desired: Option<&'s BTreeMap<Key, Desired>>,
}

impl<'s> RoutedState<'s> {
    /// The resources in a store.
    pub(crate) fn stored(snapshot: &'s Snapshot, source: &'s str) -> Self {
        Self { snapshot, source, desired: None }
    }

    /// Whether a stored resource counts.
    fn keeps(self, entry: &Entry) -> bool {
        self.desired.is_none_or(|desired| !entry.is_owned_by(self.source) && !desired.contains_key(&entry.key))
    }

    /// The declared resources beside `first`, from there on.
    fn declared(self, first: Key) -> impl Iterator<Item = &'s Desired> {
        self.desired.into_iter().flat_map(move |desired| {
            let (kind, parent) = (first.kind, first.parent.clone());
            let following = desired.range(first.clone()..).map(|(_, wanted)| wanted);
            following.take_while(move |wanted| wanted.key.kind == kind && wanted.key.parent == parent)
        })
    }

    /// The edges.
    fn edges(self) -> impl Iterator<Item = (&'s Key, &'s HttpsEdge)> {
        let declared = self.declared(Key::new(Kind::HttpsEdge, Id::new("")));
        let declared =
            declared.filter_map(|wanted| Some((&wanted.key, wanted.spec.as_any().downcast_ref::<HttpsEdge>()?)));
        let stored = self.snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX).filter(move |entry| self.keeps(entry));
        declared.chain(stored.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdge>()?))))
    }

    /// The routes of an edge, in the order of their keys.
    pub(crate) fn routes(self, edge: &Key) -> Vec<KnownRoute<'s>> {
        let declared = self.declared(Key::child(Kind::HttpsEdgeRoute, edge.id.clone(), Id::new("")));
        let typed = |wanted: &'s Desired| Some((&wanted.key, wanted.spec.as_any().downcast_ref::<HttpsEdgeRoute>()?));
        let declared = declared.filter_map(typed);
        let stored = self.snapshot.children(edge).filter(|entry| self.keeps(entry));
        let stored = stored.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)));
        let mut routes: Vec<KnownRoute<'s>> = declared.chain(stored).collect();
        routes.sort_by(|one, other| one.0.cmp(other.0));
        routes
    }

    /// The source and the name of a resource.
    pub(crate) fn claim(self, key: &Key) -> Option<&'s Claim> {
        match self.desired.and_then(|desired| desired.get(key)) {
            Some(wanted) => Some(wanted.claim.as_ref()),
            None => self.snapshot.get(key)?.claim.as_deref(),
        }
    }

    /// Whether the source declares routes on edges that are not in the state: another source has them.
    pub(crate) fn lacks_edges(self) -> bool {
        let declared = self.desired.into_iter().flat_map(BTreeMap::keys).filter_map(Key::parent_key);
        let is_missing = |edge: &Key| {
            self.snapshot.get(edge).is_none() && self.desired.is_none_or(|desired| !desired.contains_key(edge))
        };
        declared.filter(|parent| parent.kind == Kind::HttpsEdge).any(|edge| is_missing(&edge))
    }
}

/// An edge with its key, and the hostport by which it serves a request.
pub(crate) type ServingEdge<'s> = (&'s Key, &'s HttpsEdge, &'s str);

/// The edges by host and port.
#[derive(Default)]
pub(crate) struct EdgeTable<'s> {
    hosts: HashMap<String, BTreeMap<u16, ServingEdge<'s>>>,
    /// The lengths of the wildcards' suffixes.
    wildcards: BTreeSet<usize>,
}

impl<'s> EdgeTable<'s> {
    /// Creates the table of a state.
    pub(crate) fn new(state: RoutedState<'s>) -> Self {
        let mut table = Self::default();
        for (key, edge) in state.edges() {
            for text in &edge.hostports {
                let Ok((host, port)) = parse_hostport(text) else { continue };
                let (host, serving) = (host_name(host), (key, edge, text.as_str()));
                table.wildcards.extend(host.strip_prefix('*').map(str::len));
                let first = table.hosts.entry(host).or_default().entry(port).or_insert(serving);
                if key < first.0 {
                    *first = serving;
                }
            }
        }
        table
    }

    /// The keys of the edges, each once for each hostport that it serves.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'s Key> {
        self.hosts.values().flat_map(BTreeMap::values).map(|serving| serving.0)
    }

    /// The edge that serves a host and port.
    pub(crate) fn serving(&self, host: &str, port: u16) -> Option<ServingEdge<'s>> {
        let wildcards = self.wildcards.iter().rev().filter_map(|length| {
            let at = host.len().checked_sub(*length).filter(|at| *at > 0)?;
            Some(format!("*{}", host.get(at..)?))
        });
        let mut names = iter::once(host_name(host)).chain(wildcards);
        names.find_map(|name| self.hosts.get(&name)?.get(&port).copied())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::Operation;
    use crate::model::traffic::TracedRequest;
    use crate::routing::trace;

    fn edge(hostports: &[&str]) -> Arc<HttpsEdge> {
        let hostports = hostports.iter().map(|text| (*text).to_owned()).collect();
        Arc::new(HttpsEdge { hostports, ..HttpsEdge::default() })
    }

    fn state(edges: &[&[&str]]) -> Snapshot {
        let create = |(index, hostports): (usize, &&[&str])| Operation::Create {
            key: Key::new(Kind::HttpsEdge, Id::new(&format!("edghts_{index}"))),
            spec: edge(hostports),
            claim: None,
            token: None,
        };
        let operations: Vec<Operation> = edges.iter().enumerate().map(create).collect();
        let applied = Snapshot::default().apply(&operations, Timestamp::UNIX_EPOCH);
        applied.map(|(snapshot, _)| snapshot).unwrap_or_default()
    }

    #[test]
    fn the_table_chooses_the_edge_that_a_trace_chooses() {
        let snapshot = state(&[
            &["*.example.com:443", "*.example.com:8443"],
            &["shop.example.com:443"],
            &["*.eu.example.com:443", "Shop.Example.com:443"],
            &["*.example.com:443", "[2001:DB8::1]:443", "192.0.2.1:80"],
        ]);
        assert_eq!(snapshot.len(), 4);
        let table = EdgeTable::new(RoutedState::stored(&snapshot, "default"));
        let mut served = 0;
        for host in
            ["shop.example.com", "a.eu.example.com", "eu.example.com", "example.com", "[2001:db8:0::1]", "192.0.2.1"]
        {
            for port in [80, 443, 8443] {
                let request = TracedRequest::new("GET", &format!("https://{host}:{port}/")).unwrap_or_default();
                let traced = trace(&snapshot, &request).edge.map(|edge| edge.edge.key);
                let chosen = table.serving(&request.host, request.port).map(|serving| serving.0.clone());
                assert_eq!(chosen, traced, "{host}:{port}");
                served += usize::from(chosen.is_some());
            }
        }
        assert_eq!(served, 8);
    }

    #[test]
    fn what_a_source_declares_takes_the_place_of_what_it_has() {
        let (stored, key) = (state(&[&["a.example.com:443"]]), Key::new(Kind::HttpsEdge, Id::new("edghts_0")));
        let claim = Arc::new(Claim { source: "shop".into(), name: "shop".into(), ..Claim::default() });
        let spec = edge(&["b.example.com:443"]);
        let wanted = Desired { key: key.clone(), spec, claim, position: 0, token_file: None, replaces: None };
        let desired = BTreeMap::from([(key.clone(), wanted)]);
        let state = RoutedState { desired: Some(&desired), ..RoutedState::stored(&stored, "shop") };
        let table = EdgeTable::new(state);
        assert!(table.serving("a.example.com", 443).is_none() && table.serving("b.example.com", 443).is_some());
        assert_eq!(state.claim(&key).map(|claim| claim.name.as_str()), Some("shop"));
        assert!(!state.lacks_edges());
    }
}

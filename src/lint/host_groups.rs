//! Edges that share hosts. Lints with a `HostView` judge them together.
//!
//! Whether a hostport is a duplicate depends on all edges with its host. Edges belong together if they serve one host
//! on any port, if one of the source serves a wildcard over a host of another one of it, or if a route of one matches a
//! host that the other serves. Everybody else's edges cannot change the findings, so an edge that shares nothing is
//! judged with its part.
//!
//! For example, a wildcard makes one large group of all edges under it, which is judged again whenever one of them
//! changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};

use super::{by_kind::entries_of_kind, rules::unserved_host::matched_host};
use crate::model::{AnyResource, Desired, Entry, HttpsEdge, HttpsEdgeRoute, Id, Key, Kind};

/// The edge of a route, or the edge itself.
pub(super) fn edge_of(key: &Key) -> &Id {
    key.parent.as_ref().unwrap_or(&key.id)
}

/// The hosts of an edge, in their normal form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamedHosts {
    pub edge: Id,
    /// The hosts that it serves.
    served: BTreeSet<String>,
    /// The other hosts in the matches of its routes. Another edge may serve them.
    matched: BTreeSet<String>,
}

impl NamedHosts {
    /// The hosts of each edge in a part of the source, and of the edges elsewhere that its routes belong to.
    pub(super) fn all(part: &[&Desired]) -> Vec<Self> {
        let mut all: BTreeMap<&Id, Self> = BTreeMap::new();
        for it in part {
            let edge = edge_of(&it.key);
            all.entry(edge).or_insert_with(|| Self::new(edge)).add(it.spec.as_ref());
        }
        all.into_values().collect()
    }

    fn new(edge: &Id) -> Self {
        Self { edge: edge.clone(), served: BTreeSet::new(), matched: BTreeSet::new() }
    }

    /// Adds the hosts of the edge, and then those of its routes.
    fn add(&mut self, spec: &dyn AnyResource) {
        let spec = spec.as_any();
        if let Some(edge) = spec.downcast_ref::<HttpsEdge>() {
            self.served.extend(edge.addresses().map(|(_, _, (host, _))| host));
        } else if let Some(route) = spec.downcast_ref::<HttpsEdgeRoute>() {
            let name = matched_host(&route.r#match).map(|(_, name, _)| name);
            self.matched.extend(name.filter(|name| !self.served.contains(name)));
        }
    }
}

/// The edges that cannot be judged alone, in groups: those with the same hosts, those on whose hosts or with whose routes
/// another source has edges or routes, and those with routes that no source owns.
#[derive(Debug, Default)]
pub(super) struct HostGroups {
    /// The group of each edge that is in one.
    pub of_edge: HashMap<Id, usize>,
    /// The edges and routes of other sources, and the routes without a source, that concern each group, by key.
    pub others: Vec<Vec<Arc<Entry>>>,
}

impl HostGroups {
    /// Finds the groups of a source's edges. `others` are the resources of other sources and the routes without one, by key.
    pub(super) fn find<'h>(own: impl Iterator<Item = &'h NamedHosts>, others: &[Arc<Entry>]) -> Self {
        let own: Vec<&NamedHosts> = own.collect();
        let (edges, routes) = (entries_of_kind(others, Kind::HttpsEdge), entries_of_kind(others, Kind::HttpsEdgeRoute));
        let foreign = edges.iter().map(|entry| {
            let mut hosts = NamedHosts::new(&entry.key.id);
            hosts.add(entry.spec().as_ref());
            hosts
        });
        let foreign: Vec<NamedHosts> = foreign.collect();
        let all: Vec<&NamedHosts> = own.iter().copied().chain(&foreign).collect();
        let mut forest = Forest((0..all.len()).collect());
        let mut node_of: HashMap<&Id, usize> = HashMap::new();
        if !edges.is_empty() || !routes.is_empty() {
            for (node, hosts) in all.iter().enumerate() {
                let first = *node_of.entry(&hosts.edge).or_insert(node);
                forest.join(first, node);
            }
        }
        join_by_hosts(&own, &all, &mut forest);
        let roots: Vec<usize> = (0..all.len()).map(|node| forest.root(node)).collect();
        let root_of = |entry: &Arc<Entry>| roots.get(*node_of.get(edge_of(&entry.key))?).copied();

        let mut sizes = vec![0_usize; all.len()];
        for root in roots.iter().copied().chain(routes.iter().filter_map(root_of)) {
            if let Some(size) = sizes.get_mut(root) {
                *size += 1;
            }
        }
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut groups = Self::default();
        for (hosts, root) in own.iter().zip(&roots) {
            if sizes.get(*root).is_some_and(|size| *size > 1) {
                let next = numbers.len();
                let number = *numbers.entry(*root).or_insert(next);
                groups.of_edge.insert(hosts.edge.clone(), number);
            }
        }
        groups.others = vec![Vec::new(); numbers.len()];
        for entry in edges.iter().chain(routes) {
            let number = root_of(entry).and_then(|root| numbers.get(&root).copied());
            if let Some(of_group) = number.and_then(|number| groups.others.get_mut(number)) {
                of_group.push(Arc::clone(entry));
            }
        }
        groups
    }
}

/// Joins the edges that serve one host, an edge with a route for a host and those that serve it, and the edges of this
/// source under a wildcard. Lints do not compare with the wildcards of other sources.
fn join_by_hosts(own: &[&NamedHosts], all: &[&NamedHosts], forest: &mut Forest) {
    let count: usize = all.iter().map(|hosts| hosts.served.len()).sum();
    let mut serving: HashMap<&str, usize> = HashMap::with_capacity(count);
    for (node, hosts) in all.iter().enumerate() {
        for name in &hosts.served {
            let first = *serving.entry(name.as_str()).or_insert(node);
            forest.join(first, node);
        }
    }
    let mut wildcards: HashMap<&str, usize> = HashMap::new();
    for (node, hosts) in own.iter().enumerate() {
        wildcards.extend(hosts.served.iter().filter_map(|name| Some((name.strip_prefix('*')?, node))));
        for other in hosts.matched.iter().filter_map(|name| serving.get(name.as_str())) {
            forest.join(*other, node);
        }
    }
    if wildcards.is_empty() {
        return;
    }
    for (node, hosts) in own.iter().enumerate() {
        for name in &hosts.served {
            let suffixes = name.match_indices('.').filter_map(|(dot, _)| name.get(dot..));
            for other in suffixes.filter_map(|suffix| wildcards.get(suffix)) {
                forest.join(*other, node);
            }
        }
    }
}

/// Disjoint sets of numbers. The least number of a set is its root.
struct Forest(Vec<usize>);

impl Forest {
    fn parent(&self, node: usize) -> usize {
        self.0.get(node).copied().unwrap_or(node)
    }

    fn root(&mut self, mut node: usize) -> usize {
        loop {
            let parent = self.parent(node);
            if parent == node {
                return node;
            }
            // Paths get shorter with each look, so that no order of edges makes them long.
            let next = self.parent(parent);
            if let Some(place) = self.0.get_mut(node) {
                *place = next;
            }
            node = next;
        }
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(place) = self.0.get_mut(one.max(other)) {
            *place = one.min(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::Claim;

    fn hosts(edge: &str, served: &[&str], matched: &[&str]) -> NamedHosts {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        NamedHosts { edge: Id::new(edge), served: names(served), matched: names(matched) }
    }

    fn entry(key: Key, spec: Arc<dyn AnyResource>) -> Arc<Entry> {
        let claim = Arc::new(Claim::new("b", "n"));
        Arc::new(Entry { claim: Some(claim), ..Entry::new(key, spec, Timestamp::UNIX_EPOCH, 0) })
    }

    fn other_edge(id: &str, hostport: &str) -> Arc<Entry> {
        let edge = HttpsEdge { hostports: vec![hostport.to_owned()], ..HttpsEdge::default() };
        entry(Key::new(Kind::HttpsEdge, Id::new(id)), Arc::new(edge))
    }

    fn other_route(edge: &str) -> Arc<Entry> {
        let key = Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new("edghtsrt_1"));
        entry(key, Arc::new(HttpsEdgeRoute::default()))
    }

    /// The edges of each group, with the number of entries of other sources.
    fn groups(own: &[NamedHosts], others: &[Arc<Entry>]) -> Vec<(String, usize)> {
        let groups = HostGroups::find(own.iter(), others);
        let of = |(number, others): (usize, &Vec<Arc<Entry>>)| {
            let is_in = |hosts: &&NamedHosts| groups.of_edge.get(&hosts.edge) == Some(&number);
            let edges: Vec<&str> = own.iter().filter(is_in).map(|hosts| hosts.edge.as_str()).collect();
            (edges.join(" "), others.len())
        };
        groups.others.iter().enumerate().map(of).collect()
    }

    #[test]
    fn edges_with_one_host_are_a_group_whoever_names_it() {
        let own = [
            hosts("a", &["a.example.com", "x.example.com"], &[]),
            hosts("b", &["b.example.com"], &["x.example.com", "y.example.com"]),
            hosts("c", &["c.example.com"], &["z.example.com"]),
            hosts("d", &["d.example.com"], &["z.example.com"]),
            hosts("e", &["e.example.com", "a.example.com"], &[]),
        ];
        assert_eq!(groups(&own, &[]), [("a b e".to_owned(), 0)]);
    }

    #[test]
    fn a_wildcard_joins_the_names_under_it() {
        let own = [
            hosts("a", &["*.example.com"], &[]),
            hosts("b", &["b.eu.example.com"], &[]),
            hosts("c", &["example.com"], &["*.example.org"]),
            hosts("d", &["d.example.org"], &[]),
        ];
        assert_eq!(groups(&own, &[]), [("a b".to_owned(), 0)]);
    }

    #[test]
    fn what_another_source_has_joins_by_edge_and_by_host() {
        let own =
            [hosts("a", &["a.example.com"], &[]), hosts("b", &["b.example.com"], &[]), hosts("c", &["c.org"], &[])];
        let others = [
            other_edge("x", "A.example.com:443"),
            other_edge("y", "*.example.com:443"),
            other_edge("z", "z.example.com:443"),
            other_route("b"),
            other_route("x"),
        ];
        assert_eq!(groups(&own, &others), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        // Routes of this source on an edge of another one.
        assert_eq!(groups(&[hosts("z", &[], &[])], &others), [("z".to_owned(), 1)]);
        assert!(groups(&own, &[]).is_empty());
    }

    #[test]
    fn the_hosts_of_an_edge_are_those_in_its_hostports_and_matches() {
        let claim = Arc::new(Claim::new("a", "n"));
        let desired = |key: Key, spec: Arc<dyn AnyResource>| Desired::new(key, spec, claim.clone());
        let route = |edge: &str, text: &str| {
            let spec = HttpsEdgeRoute { r#match: text.to_owned(), ..HttpsEdgeRoute::default() };
            desired(Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new(text)), Arc::new(spec))
        };
        let hostports = vec!["B.example.com.:443".to_owned(), "b.example.com:80".to_owned()];
        let edge = HttpsEdge { hostports, ..HttpsEdge::default() };
        let all = [
            desired(Key::new(Kind::HttpsEdge, Id::new("b")), Arc::new(edge)),
            route("a", "X.example.com:443/a"),
            route("b", "/a"),
            route("b", "b.example.com/a"),
            route("b", "checkout"),
        ];
        let found = NamedHosts::all(&all.iter().collect::<Vec<_>>());
        let joined = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let found: Vec<_> =
            found.iter().map(|it| (it.edge.as_str(), joined(&it.served), joined(&it.matched))).collect();
        let named = |edge: &'static str, served: &str, matched: &str| (edge, served.to_owned(), matched.to_owned());
        assert_eq!(found, [named("a", "", "x.example.com"), named("b", "b.example.com", "checkout")]);
    }
}

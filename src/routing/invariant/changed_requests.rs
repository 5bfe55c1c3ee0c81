//! What a change can have an effect on: which of the changed resources, and requests to which hosts with which paths. An
//! invariant about other requests need not be judged.

use std::collections::BTreeSet;

use crate::model::kind::invariant::InvariantScope;
use crate::model::traffic::host_name;
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute, Key, Kind, Snapshot};
use crate::routing::behaviour::{HostTree, PathBeginnings, content};
use crate::routing::selector::Selector;

/// The changed resources on which invariants depend, without those of which only texts for people changed.
pub(super) fn effective_changes(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> BTreeSet<Key> {
    let is_alike = |then: &Entry, now: &Entry| {
        let is_same = || then.spec().same(now.spec().as_ref());
        let has_same_content = || content(then).is_some_and(|then| content(now) == Some(then));
        then.source() == now.source() && (is_same() || has_same_content())
    };
    let has_effect = |key: &&Key| match (before.get(key), after.get(key)) {
        (Some(then), Some(now)) => !is_alike(then, now),
        _ => true,
    };
    changed.iter().filter(|key| depend_on(key.kind)).filter(has_effect).cloned().collect()
}

/// Whether invariants depend on resources of a kind.
pub(crate) fn depend_on(kind: Kind) -> bool {
    matches!(kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute | Kind::Invariant | Kind::IpRestriction)
}

/// The requests that a change of edges and routes can have an effect on, or a few more.
#[derive(Debug, Default)]
pub(super) struct ChangedRequests<'s> {
    hosts: HostTree<()>,
    paths: PathBeginnings<'s>,
    /// Whether an edge changes, so that all of its paths do.
    has_any_path: bool,
    /// The sources of what takes these requests after the change. None if an edge changes, which may leave them to another one.
    sources: Option<BTreeSet<String>>,
}

impl<'s> ChangedRequests<'s> {
    /// The requests of changed edges, and those near changed routes.
    pub(super) fn new(states: [&'s Snapshot; 2], changed: &BTreeSet<Key>) -> Self {
        let (mut edges, mut paths, mut has_any_path) = (BTreeSet::new(), BTreeSet::new(), false);
        for key in changed {
            match key.kind {
                Kind::HttpsEdge => {
                    has_any_path = true;
                    edges.insert(key.clone());
                }
                Kind::HttpsEdgeRoute => {
                    edges.extend(key.parent_key());
                    let routes = states.into_iter().filter_map(|state| state.get(key)?.spec_as::<HttpsEdgeRoute>());
                    paths.extend(routes.filter_map(Selector::from_route).map(|selector| selector.path));
                }
                _ => {}
            }
        }
        let [_, after] = states;
        let takers = || edges.iter().flat_map(|edge| after.get(edge).into_iter().chain(after.children(edge)));
        let sources = (!has_any_path).then(|| takers().filter_map(|entry| entry.source()).map(str::to_owned).collect());
        let mut hosts = HostTree::default();
        for key in &edges {
            for edge in states.into_iter().filter_map(|state| state.get(key)?.spec_as::<HttpsEdge>()) {
                for (_, _, (host, _)) in edge.addresses() {
                    hosts.entry(&host, ());
                }
            }
        }
        Self { hosts, paths: PathBeginnings::new(paths), has_any_path, sources }
    }

    /// Whether some of them may be in a scope.
    pub(super) fn meet(&self, scope: &InvariantScope) -> bool {
        let meets_host = scope.hosts.is_empty() || scope.hosts.iter().any(|host| self.hosts.meets(&host_name(host)));
        let meets_path = || {
            let any = self.has_any_path || scope.path_prefixes.is_empty();
            any || scope.path_prefixes.iter().any(|prefix| self.paths.meet(prefix))
        };
        let is_taken_by = |sources: &BTreeSet<String>| scope.sources.iter().any(|source| sources.contains(source));
        let meets_source = || scope.sources.is_empty() || self.sources.as_ref().is_none_or(is_taken_by);
        self.hosts.len() > 0 && meets_host && meets_path() && meets_source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_met_by_hosts_and_paths_that_it_can_share() {
        let mut hosts = HostTree::default();
        for host in ["*.eu.example.com", "a.org"] {
            hosts.entry(host, ());
        }
        let requests = ChangedRequests {
            hosts,
            paths: PathBeginnings::new(BTreeSet::from(["/a/b", "/x"])),
            has_any_path: false,
            sources: Some(BTreeSet::from(["shop".to_owned()])),
        };
        let meets = |host: &str, path: &str| {
            let list = |text: &str| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
            let scope = InvariantScope { hosts: list(host), path_prefixes: list(path), ..InvariantScope::default() };
            requests.meet(&scope)
        };
        for host in
            ["", "*.eu.example.com", "*.example.com", "X.EU.example.com", "*.b.eu.example.com", "a.org.", "*.org"]
        {
            assert!(meets(host, ""), "{host}");
        }
        for host in ["eu.example.com", "b.org", "*.a.org", "*.us.example.com", "neu.example.com"] {
            assert!(!meets(host, ""), "{host}");
        }
        for path in ["/", "/a", "/a/b", "/a/bc", "/x/y"] {
            assert!(meets("a.org", path), "{path}");
        }
        for path in ["/a/c", "/b", "/y"] {
            assert!(!meets("a.org", path), "{path}");
        }
        assert!(!ChangedRequests::default().meet(&InvariantScope::default()));
        let of = |source: &str| InvariantScope { sources: vec![source.to_owned()], ..InvariantScope::default() };
        assert!(requests.meet(&of("shop")) && !requests.meet(&of("docs")));
        assert!(ChangedRequests { sources: None, ..requests }.meet(&of("docs")));
    }
}

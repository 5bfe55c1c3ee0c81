//! What a change of resources can affect: edges, and routes with the paths that they select.

use std::collections::BTreeSet;

use crate::model::{Entry, HttpsEdgeRoute, Id, Key, Kind, Snapshot};
use crate::routing::selector::Selector;

/// The edges and routes that changed, and those that reference what changed.
#[derive(Debug, Default)]
pub(super) struct Affected {
    /// The edges, and those of the routes.
    pub(super) edges: BTreeSet<Key>,
    routes: BTreeSet<Key>,
}

impl Affected {
    /// Finds the edges and routes that changed resources affect in some of the states.
    pub(super) fn find(states: &[&Snapshot], changed: &BTreeSet<Key>) -> Self {
        let mut affected = Self::default();
        for key in changed {
            let users = states.iter().flat_map(|state| state.users(key));
            for key in std::iter::once(key).chain(users) {
                match key.kind {
                    Kind::HttpsEdge => {
                        affected.edges.insert(key.clone());
                    }
                    Kind::HttpsEdgeRoute => {
                        affected.edges.extend(key.parent_key());
                        affected.routes.insert(key.clone());
                    }
                    _ => {}
                }
            }
        }
        affected
    }

    /// The paths that the affected routes of an edge select in some of the states.
    pub(super) fn paths_of<'s>(&self, edge: &Entry, states: &[&'s Snapshot]) -> AffectedPaths<'s> {
        let first = Key::child(Kind::HttpsEdgeRoute, edge.key.id.clone(), Id::new(""));
        let routes = self.routes.range::<Key, _>(first..).take_while(|key| key.parent.as_ref() == Some(&edge.key.id));
        let mut paths = BTreeSet::new();
        for entry in routes.flat_map(|key| states.iter().filter_map(move |state| state.get(key))) {
            paths
                .extend(entry.spec_as::<HttpsEdgeRoute>().and_then(Selector::from_route).map(|selector| selector.path));
        }
        AffectedPaths::new(paths)
    }
}

/// Paths of which none begins with another one.
#[derive(Debug, Default)]
pub(super) struct AffectedPaths<'s>(BTreeSet<&'s str>);

impl<'s> AffectedPaths<'s> {
    fn new(paths: BTreeSet<&'s str>) -> Self {
        let mut shortest: Vec<&str> = Vec::new();
        for path in paths {
            // In this order, all that begins with a path follows it.
            if shortest.last().is_none_or(|last| !path.starts_with(last)) {
                shortest.push(path);
            }
        }
        Self(shortest.into_iter().collect())
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a request can be selected by a path and by one of these, if all of them are prefixes.
    pub(super) fn meet(&self, path: &str) -> bool {
        let begins = self.0.range::<&str, _>(..=path).next_back().is_some_and(|shorter| path.starts_with(shorter));
        begins || self.0.range::<&str, _>(path..).next().is_some_and(|longer| longer.starts_with(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_meet_if_one_begins_with_the_other() {
        let affected = AffectedPaths::new(BTreeSet::from(["/a/b", "/a/b/c", "/a/bd", "/x"]));
        for path in ["/", "/a", "/a/b", "/a/b/c", "/a/bzz", "/x/y"] {
            assert!(affected.meet(path), "{path}");
        }
        for path in ["/a/c", "/b", "/w", "/y", "/a/aa"] {
            assert!(!affected.meet(path), "{path}");
        }
        assert!(!AffectedPaths::default().meet("/"));
    }
}

//! What a change of resources can affect: edges, and routes with the paths that they select.

use std::collections::BTreeSet;

use super::path_beginnings::PathBeginnings;
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
    pub(super) fn paths_of<'s>(&self, edge: &Entry, states: &[&'s Snapshot]) -> PathBeginnings<'s> {
        let first = Key::child(Kind::HttpsEdgeRoute, edge.key.id.clone(), Id::new(""));
        let routes = self.routes.range::<Key, _>(first..).take_while(|key| key.parent.as_ref() == Some(&edge.key.id));
        let mut paths = BTreeSet::new();
        for entry in routes.flat_map(|key| states.iter().filter_map(move |state| state.get(key))) {
            paths
                .extend(entry.spec_as::<HttpsEdgeRoute>().and_then(Selector::from_route).map(|selector| selector.path));
        }
        PathBeginnings::new(paths)
    }
}

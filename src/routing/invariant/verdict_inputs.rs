//! What the verdict on a change depends on: it is the same on a later state if none of that has changed meanwhile.
//!
//! A change of edges and routes can only have an effect on the requests to their hosts. Edges of other hosts have no part in the
//! verdict, and neither have the routes of another edge, unless the change gives hosts to it or takes them from it. For example, a
//! route is added to the edge of `*.example.com`. The verdict on that depends on the edge, all of its routes, and the edge
//! of `shop.example.com`, which keeps the requests to that host; but not on the routes there, and on nothing of `a.example.org`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::changed_requests::depend_on;
use crate::model::{Key, Kind, Snapshot};
use crate::routing::behaviour::{HostTree, hostports};

/// The most changes of others that are looked at, because other writers wait for that.
const MOST_CHANGES: usize = 1000;

/// What the verdict on a change depends on.
#[derive(Debug)]
pub(crate) struct VerdictInputs {
    before: Snapshot,
    /// The written edges, and those of the written routes, also if nothing changes there: a PATCH with the values that a route has
    /// changes it again after others have. None if anything else changes on which invariants depend: that has an effect on the
    /// requests of every edge.
    edges: Option<BTreeSet<Key>>,
    /// The hosts of these edges, before and after the change.
    hosts: HostTree<()>,
    /// Whether the edges have other hosts after the change.
    moves_hosts: bool,
}

impl VerdictInputs {
    /// Notes what the verdict on a change from one state to another depends on: also what the change writes as it is already. Once
    /// others have changed that, the same change has an effect.
    pub(crate) fn new(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> Self {
        let edges: Option<BTreeSet<Key>> = changed.iter().filter(|key| depend_on(key.kind)).map(edge_of).collect();
        let (mut hosts, mut moves_hosts) = (HostTree::default(), false);
        for edge in edges.iter().flatten() {
            let [then, now] = [before, after].map(|state| hosts_of(state, edge));
            moves_hosts = moves_hosts || then != now;
            for (host, _) in then.union(&now) {
                hosts.entry(host, ());
            }
        }
        Self { before: before.clone(), edges, hosts, moves_hosts }
    }

    /// Whether the verdict is the same on another state, as far as can be told within a short time.
    pub(crate) fn are_same_in(&self, current: &Snapshot) -> bool {
        if self.before.is_same(current) {
            return true;
        }
        let mut changed = current.changed_since(&self.before);
        let mut competing = BTreeSet::new();
        for key in changed.by_ref().take(MOST_CHANGES).filter(|key| depend_on(key.kind) && !self.is_same(key, current))
        {
            let Some((edges, edge)) = self.edges.as_ref().zip(edge_of(key)) else { return false };
            if edges.contains(&edge) {
                return false;
            }
            if key.kind == Kind::HttpsEdge || self.moves_hosts {
                competing.insert(edge);
            }
        }
        let meets = |edge: &Key| {
            let mut hosts = [&self.before, current].into_iter().flat_map(|state| hosts_of(state, edge));
            hosts.any(|(host, _)| self.hosts.meets(&host))
        };
        changed.next().is_none() && !competing.iter().any(meets)
    }

    /// Whether others have left a resource as it was. The entry of an edge is also another one if only its routes have changed.
    fn is_same(&self, key: &Key, current: &Snapshot) -> bool {
        let pair = self.before.get(key).zip(current.get(key));
        pair.is_some_and(|(one, other)| Arc::ptr_eq(one.spec(), other.spec()) && one.claim == other.claim)
    }
}

/// The edge that a key is of, if it is one of an edge or a route.
fn edge_of(key: &Key) -> Option<Key> {
    match key.kind {
        Kind::HttpsEdge => Some(key.clone()),
        Kind::HttpsEdgeRoute => key.parent_key(),
        _ => None,
    }
}

/// The hosts and ports of an edge in a state.
fn hosts_of(state: &Snapshot, edge: &Key) -> BTreeSet<(String, u16)> {
    state.get(edge).into_iter().flat_map(hostports).collect()
}

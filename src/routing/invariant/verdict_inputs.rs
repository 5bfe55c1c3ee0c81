//! What the verdict on a change depends on: it is the same on a later state if none of that has changed meanwhile.
//!
//! A change of edges and routes can only have an effect on the requests to their hosts. Edges of other hosts have no part in the
//! verdict, and neither have the routes of another edge, unless the change gives hosts to it or takes them from it. For example, a
//! route is added to the edge of `*.example.com`. The verdict on that depends on the edge, all of its routes, and the edge
//! of `shop.example.com`, which keeps the requests to that host; but not on the routes there, and on nothing of `a.example.org`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::changed_requests::{depend_on, effective_changes};
use crate::model::{Key, Kind, Snapshot};
use crate::routing::behaviour::{HostTree, hostports};

/// The most changes of others that are looked at, because other writers wait for that.
const MOST_CHANGES: usize = 1000;

/// What the verdict on a change depends on.
#[derive(Debug)]
pub(crate) struct VerdictInputs {
    before: Snapshot,
    /// The changed edges, and those of the changed routes. None if anything else changes on which invariants depend: that has an
    /// effect on the requests of every edge.
    edges: Option<BTreeSet<Key>>,
    /// The hosts of these edges, before and after the change.
    hosts: HostTree<()>,
    /// Whether the edges have other hosts after the change.
    moves_hosts: bool,
}

impl VerdictInputs {
    /// Notes what the verdict on a change from one state to another depends on.
    pub(crate) fn new(before: &Snapshot, after: &Snapshot, changed: &BTreeSet<Key>) -> Self {
        let changed = effective_changes(before, after, changed);
        let edges: Option<BTreeSet<Key>> = changed.iter().map(edge_of).collect();
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
        let matters = changed.by_ref().take(MOST_CHANGES).any(|key| self.include(key, current));
        !matters && changed.next().is_none()
    }

    /// Whether the verdict depends on a resource that others have changed.
    fn include(&self, key: &Key, current: &Snapshot) -> bool {
        // The entry of an edge is also another one if only its routes have changed.
        let is_same = || {
            let pair = self.before.get(key).zip(current.get(key));
            pair.is_some_and(|(one, other)| Arc::ptr_eq(one.spec(), other.spec()) && one.claim == other.claim)
        };
        if !depend_on(key.kind) || is_same() {
            return false;
        }
        let Some((edges, edge)) = self.edges.as_ref().zip(edge_of(key)) else { return true };
        let may_compete = key.kind == Kind::HttpsEdge || self.moves_hosts;
        let states = [&self.before, current].into_iter();
        let meets = || states.flat_map(|state| hosts_of(state, &edge)).any(|(host, _)| self.hosts.meets(&host));
        edges.contains(&edge) || (may_compete && meets())
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

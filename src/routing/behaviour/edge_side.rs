//! An edge in a state, as a visit of classes asks for the fates of its requests.

use std::sync::Arc;

use super::fate::Fate;
use super::path_beginnings::PathBeginnings;
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute, Snapshot};
use crate::routing::selector::{Selector, passes_tls_through};
use crate::routing::table::RouteTable;

/// An edge in a state, with its routes.
pub(super) struct EdgeSide<'s> {
    state: &'s Snapshot,
    edge: Option<&'s Arc<Entry>>,
    pub(super) table: RouteTable<'s>,
}

impl<'s> EdgeSide<'s> {
    /// The routes that select affected paths suffice if nothing else changed.
    pub(super) fn new(
        state: &'s Snapshot,
        edge: Option<&'s Arc<Entry>>,
        affected: Option<&PathBeginnings<'s>>,
    ) -> Self {
        let passes_through = edge.and_then(|edge| edge.spec_as::<HttpsEdge>()).is_some_and(passes_tls_through);
        let routes = edge.into_iter().flat_map(|edge| state.children_after(&edge.key, None));
        let known = routes.filter_map(|entry| Some((&entry.key, entry.spec_as::<HttpsEdgeRoute>()?)));
        let selected = known.filter_map(|known| Some((known, Selector::from_route(known.1)?)));
        let routes = selected.filter(|(_, selector)| affected.is_none_or(|paths| paths.meet(selector.path)));
        Self { state, edge, table: RouteTable::build(passes_through, routes) }
    }

    /// The fate of the requests for a host and port with a path.
    pub(super) fn fate(&self, host: &str, port: u16, path: &str) -> Fate<'s> {
        let route = self.edge.and_then(|_| self.table.serving(host, port, path));
        Fate::new(self.state, self.edge, route.and_then(|(key, _)| self.state.get(key)))
    }

    /// The fate of the requests that no route takes.
    pub(super) fn unrouted(&self) -> Fate<'s> {
        Fate::new(self.state, self.edge, None)
    }

    /// The matches for a host, and for a port of it or all, that can select requests.
    pub(super) fn selectors(&self, host: &str, port: Option<u16>) -> impl Iterator<Item = &Selector<'s>> {
        // An edge that passes TLS through does not see paths.
        let reads_paths = !self.table.passes_through();
        let is_read = move |selector: &&Selector<'s>| reads_paths || selector.takes_every_path();
        self.table.selectors(host, port).filter(is_read)
    }

    /// Whether the paths of requests decide about their routes.
    pub(super) fn decides_by_path(&self) -> bool {
        !self.table.passes_through() && !self.table.routes().is_empty()
    }
}

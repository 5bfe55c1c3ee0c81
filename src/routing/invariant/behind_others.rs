//! The invariants that routes would break if no route of another source took their requests.
//!
//! Nothing is wrong as long as these routes are there. But their source could not remove or narrow them any more, because the
//! next route to take the requests breaks an invariant, and belongs to somebody else. So the source that adds that route is
//! warned, while it is the one that changes something.
//!
//! For example, an invariant requires `oidc` below `/docs/guides/`, and the route `/docs/guides/` of `guides` has it. If `docs`
//! adds a route `/docs/` without a login, `guides` can only delete its route once that one has a login, too.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::change::{breaches, is_refused};
use super::changed_requests::effective_changes;
use crate::model::traffic::TracedRequest;
use crate::model::{Entry, Fault, HttpsEdge, Key, Kind, Operation, Snapshot};
use crate::routing::routed_state::RoutedState;
use crate::routing::selector::passes_tls_through;
use crate::routing::table::RouteTable;
use crate::syntax::text::printable;

/// Returns what changed routes would break without the routes of other sources on their edges, each with the route.
pub(crate) fn broken_behind_others(
    before: &Snapshot,
    after: &Snapshot,
    changed: &BTreeSet<Key>,
    now: Timestamp,
) -> Vec<(Key, Fault)> {
    if after.newest_first(Kind::Invariant, None, u64::MAX).next().is_none() {
        return Vec::new();
    }
    let mut of_sources: BTreeMap<&str, BTreeSet<Key>> = BTreeMap::new();
    for key in effective_changes(before, after, changed).into_iter().filter(|key| key.kind == Kind::HttpsEdgeRoute) {
        if let Some(source) = after.get(&key).and_then(|entry| entry.source()) {
            of_sources.entry(source).or_default().insert(key);
        }
    }
    let mut found = Vec::new();
    for (source, routes) in of_sources {
        let edges: BTreeSet<Key> = routes.iter().filter_map(Key::parent_key).collect();
        let others = routes_of_others(after, &edges, source);
        if others.is_empty() {
            continue;
        }
        let apart = |state: &Snapshot, others: &[Operation]| state.apply(others, now).ok().map(|(alone, _)| alone);
        let states = apart(before, &routes_of_others(before, &edges, source)).zip(apart(after, &others));
        let Some((then, alone)) = states else { continue };
        for breach in breaches(&then, &alone, &routes, now).iter().filter(|breach| is_refused(breach)) {
            let culprit = breach.culprit();
            let taker = culprit.parent_key().and_then(|edge| taker(after, &edge, &breach.request));
            // What it breaks already is not behind others.
            if !routes.contains(culprit) || taker.is_some_and(|taker| taker.key == *culprit) {
                continue;
            }
            let other = taker.and_then(|taker| Some((taker, taker.source().filter(|other| *other != source)?)));
            let needed = match other {
                Some((taker, other)) => {
                    format!("route `{}` of source `{}`", printable(&after.full_name(taker)), printable(other))
                }
                None => "the routes of other sources".to_owned(),
            };
            let fault = breach.fault(&alone, culprit, true);
            let message = format!("without {needed}, {}", fault.message);
            found.push((culprit.clone(), Fault { message, ..fault }));
        }
    }
    found
}

/// The deletions of the routes that other sources have on some edges.
fn routes_of_others(state: &Snapshot, edges: &BTreeSet<Key>, source: &str) -> Vec<Operation> {
    let routes = edges.iter().flat_map(|edge| state.children(edge));
    let others = routes.filter(|route| route.source().is_some_and(|other| other != source));
    others.map(|route| Operation::Delete { key: route.key.clone(), with_children: false }).collect()
}

/// The route of an edge that takes a request.
fn taker<'s>(state: &'s Snapshot, edge: &Key, request: &TracedRequest) -> Option<&'s Arc<Entry>> {
    let passes_through = passes_tls_through(state.get(edge)?.spec_as::<HttpsEdge>()?);
    let table = RouteTable::new(passes_through, RoutedState::stored(state, "").routes(edge));
    let (key, _) = table.serving(&request.host, request.port, &request.path)?;
    state.get(key)
}

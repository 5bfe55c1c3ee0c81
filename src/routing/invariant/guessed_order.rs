//! What IDs decide in a state without a store: which of two edges takes the requests that both could take (D120).
//!
//! A store has a hostport once, and files do not tell which of two edges has it there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::unseen::Unseen;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::{Entry, HttpsEdge, Kind, Snapshot};
use crate::syntax::text::printable;

/// The edges that share a hostport. A store has it once, whatever their IDs are.
pub(crate) fn rival_edges(state: &Snapshot) -> Vec<Unseen> {
    let mut edges: BTreeMap<(String, u16), Vec<&Arc<Entry>>> = BTreeMap::new();
    for edge in state.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        let Some(spec) = edge.spec_as::<HttpsEdge>() else { continue };
        let addresses: BTreeSet<(String, u16)> = spec.addresses().map(|(_, _, address)| address).collect();
        for address in addresses {
            edges.entry(address).or_default().push(edge);
        }
    }
    let mut unseen = Vec::new();
    for ((host, port), edges) in edges {
        let [one, other, ..] = edges.as_slice() else { continue };
        let (one, other) = (named(state, one), named(state, other));
        let clause = format!("which of the edges {one} and {other} serves `{}:{port}`", printable(&host));
        let keys = edges.iter().map(|edge| edge.key.clone());
        unseen.push(Unseen::new(clause).about_host(host).guessing(keys));
    }
    unseen
}

/// The name of an edge or a route, and whether it is a surrounding one.
fn named(state: &Snapshot, entry: &Entry) -> String {
    let place = if entry.is_owned_by(SURROUNDING_OWNER) { " in `--with`" } else { "" };
    format!("`{}`{place}", printable(&state.full_name(entry)))
}

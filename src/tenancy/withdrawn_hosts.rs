//! Warnings about hosts of other sources that a plan closes: their edges keep them, but get no more ports of them (D112).
//!
//! No plan deletes what is another source's. So whoever closes such hosts is told who keeps which of them beside the edge. An edge
//! closes hosts in two ways:
//!
//! - It withdraws the consent by which others have them: its own, or that of an edge whose hosts it gets, because that edge is
//!   renamed or replaced.
//! - It adds a wildcard above them, with the consent of their edges, and gives no consent in return.
//!
//! For example, `shop` has `*.example.com:443` and delegates `/` to `docs`, which has `docs.example.com:443`. If the manifest of
//! `shop` gets another name and loses `delegates_to`, its plan warns about `docs.example.com:443`.
//!
//! A plan looks at each edge of the store once or twice, however many of its edges close something.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::delegation::MOST_LISTED;
use super::host_owners::left_to;
use super::hostports::{added, stored_edge};
use crate::background::yield_to_requests;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::host_pattern::wider;
use crate::model::{Code, Desired, Fault, HttpsEdge, Key, Kind, Snapshot};
use crate::syntax::text::{first_of, printable};

/// Returns a warning for each edge that closes hosts which edges of other sources have.
pub(super) fn withdrawn_hosts(
    desired: &BTreeMap<Key, Desired>,
    snapshot: &Snapshot,
    source: &str,
) -> Vec<(Key, Fault)> {
    let mut edges = closing_edges(desired, snapshot, source);
    if edges.is_empty() {
        return Vec::new();
    }
    // By the hosts of these edges, and by the wildcards above them.
    let (mut by_host, mut by_wider) = (HashMap::<String, Vec<usize>>::new(), HashMap::<String, Vec<usize>>::new());
    for (index, closing) in edges.iter().enumerate() {
        let hosts: BTreeSet<String> = closing.edge.addresses().map(|(_, _, (host, _))| host).collect();
        let above: BTreeSet<String> = hosts.iter().flat_map(|host| wider(host)).collect();
        above.into_iter().for_each(|host| by_wider.entry(host).or_default().push(index));
        hosts.into_iter().for_each(|host| by_host.entry(host).or_default().push(index));
    }
    // Many edges can have other ports of one host.
    let mut met: HashMap<String, Vec<usize>> = HashMap::new();
    for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        yield_to_requests();
        let Some((theirs, owner)) = entry.spec_as::<HttpsEdge>().zip(entry.source()).filter(|it| it.1 != source) else {
            continue;
        };
        for (_, text, (host, _)) in theirs.addresses() {
            let met = met.entry(host.clone()).or_insert_with_key(|host| {
                let above = once(host.clone()).chain(wider(host)).filter_map(|host| by_host.get(&host));
                let met: BTreeSet<usize> = above.chain(by_wider.get(host)).flatten().copied().collect();
                met.into_iter().collect()
            });
            for index in met {
                if let Some(closing) = edges.get_mut(*index) {
                    closing.note(&host, text, owner);
                }
            }
        }
    }
    edges.iter().flat_map(ClosingEdge::warnings).collect()
}

/// A host as it is written with its port, and the source that has it.
type HeldHost<'a> = (&'a str, &'a str);

/// An edge of a plan that may close hosts.
struct ClosingEdge<'a> {
    wanted: &'a Desired,
    edge: &'a HttpsEdge,
    /// The sources that it leaves its hosts to.
    left_to: HashSet<&'a str>,
    /// The sources that those edges left their hosts to whose hosts it has now.
    withdrawn_from: BTreeSet<&'a str>,
    /// The wildcards that no edge of its source had.
    wildcards: HashSet<String>,
    /// The hosts of others that it closes by withdrawing consent.
    withdrawn: Vec<HeldHost<'a>>,
    /// The hosts of others that it closes by its new wildcards.
    covered: Vec<HeldHost<'a>>,
}

/// The edges of a plan that withdraw consent or add wildcards.
fn closing_edges<'a>(
    desired: &'a BTreeMap<Key, Desired>,
    snapshot: &'a Snapshot,
    source: &str,
) -> Vec<ClosingEdge<'a>> {
    let own = LazyCell::new(|| own_edges(snapshot, source));
    let edges = Desired::of_kind(desired, Kind::HttpsEdge).filter_map(|wanted| {
        let edge = wanted.spec_as::<HttpsEdge>()?;
        let former = stored_edge(snapshot, &wanted.key);
        let added: BTreeSet<String> = added(edge, former).into_iter().map(|(_, _, (host, _))| host).collect();
        let from: BTreeSet<&Key> = added.iter().filter_map(|host| own.get(host)).flatten().copied().collect();
        let predecessors = from.into_iter().filter_map(|key| stored_edge(snapshot, key)).chain(former);
        let left: HashSet<&str> = left_to(edge).collect();
        let withdrawn_from: BTreeSet<&str> = predecessors.flat_map(left_to).filter(|it| !left.contains(it)).collect();
        let is_new_wildcard = |host: &String| host.starts_with('*') && !own.contains_key(host);
        let wildcards: HashSet<String> = added.into_iter().filter(is_new_wildcard).collect();
        let closes = !withdrawn_from.is_empty() || !wildcards.is_empty();
        closes.then(|| {
            let (withdrawn, covered) = (Vec::new(), Vec::new());
            ClosingEdge { wanted, edge, left_to: left, withdrawn_from, wildcards, withdrawn, covered }
        })
    });
    edges.collect()
}

/// The edges of a source in the store, by their hosts.
fn own_edges<'s>(snapshot: &'s Snapshot, source: &str) -> HashMap<String, Vec<&'s Key>> {
    let mut found = HashMap::<String, Vec<&Key>>::new();
    for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX).filter(|entry| entry.is_owned_by(source)) {
        for (_, _, (host, _)) in entry.spec_as::<HttpsEdge>().into_iter().flat_map(|edge| edge.addresses()) {
            found.entry(host).or_default().push(&entry.key);
        }
    }
    found
}

impl<'a> ClosingEdge<'a> {
    /// Notes a host of another source that meets those of the edge, if the edge closes it.
    fn note(&mut self, host: &str, text: &'a str, owner: &'a str) {
        if self.withdrawn_from.contains(owner) {
            self.withdrawn.push((text, owner));
            return;
        }
        // Of which source surrounding manifests are, they do not tell.
        let is_left = self.left_to.contains(owner) || owner == SURROUNDING_OWNER;
        let mut above = once(host.to_owned()).chain(wider(host));
        if !is_left && !self.wildcards.is_empty() && above.any(|host| self.wildcards.contains(&host)) {
            self.covered.push((text, owner));
        }
    }

    /// The warnings about what the edge closes.
    fn warnings(&self) -> Vec<(Key, Fault)> {
        let name = printable(&self.wanted.claim.name);
        let requires = self.edge.required_modules.is_some();
        let mut found = Vec::new();
        if !self.withdrawn.is_empty() {
            let held = listed(&self.withdrawn);
            let message = format!("HttpsEdge `{name}` no longer leaves hosts to edges that have them: {held}");
            let help = "these edges keep their hosts, without the modules that this edge requires, but get no more ports of \
                        them; ask their owners to remove them, or leave the edge as it was";
            let field = if requires { "required_modules" } else { "delegates_to" };
            found.push(Fault::new(Code::NotDelegated, message).at(field).help(help));
        }
        if !self.covered.is_empty() {
            let held = listed(&self.covered);
            let message = format!(
                "HttpsEdge `{name}` adds a wildcard above hosts of other edges, which can then get no more ports: {held}"
            );
            let help = match requires {
                true => "remove the wildcard or `required_modules`, or tell their owners; existing hosts stay",
                false => "delegate `/` to their sources, or tell their owners; existing hosts stay",
            };
            found.push(Fault::new(Code::NotDelegated, message).at("hostports").help(help));
        }
        found.into_iter().map(|fault| (self.wanted.key.clone(), fault)).collect()
    }
}

/// The first of some hosts.
fn listed(hosts: &[HeldHost<'_>]) -> String {
    let named = hosts.iter().map(|(text, owner)| format!("`{}` of source `{}`", printable(text), printable(owner)));
    first_of(named, MOST_LISTED)
}

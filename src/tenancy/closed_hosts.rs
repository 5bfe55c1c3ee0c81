//! Warnings about hosts of other sources that a plan closes: their edges keep them, but get no more ports of them (D112).
//!
//! No plan deletes what is another source's. So whoever closes such hosts is told who keeps which of them beside the edge. An edge
//! closes hosts in two ways:
//!
//! - It withdraws the consent by which others have them: its own, or that of an edge whose hosts it gets, because that edge is
//!   renamed or replaced.
//! - It adds them on other ports, or a wildcard above them, with the consent of their edges, and gives no consent in return. What it
//!   takes over, it adds.
//!
//! What an edge of the source closed before is closed already.
//!
//! For example, `shop` has `*.example.com:443` and delegates `/` to `docs`, which has `docs.example.com:443`. If the manifest of
//! `shop` gets another name and loses `delegates_to`, its plan warns about `docs.example.com:443`.
//!
//! A plan looks at each edge of the store once or twice, however many of its edges close something, and judges a host once, however
//! many ports of it there are.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::delegation::MOST_LISTED;
use super::host_owners::left_to;
use super::hostports::{added, is_own};
use crate::background::yield_to_requests;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::host_pattern::wider;
use crate::model::{Code, Desired, Entry, Fault, HttpsEdge, Key, Kind, Snapshot};
use crate::syntax::text::{and_more, printable};

/// Returns a warning for each edge that closes hosts which edges of other sources have, unless it is refused.
pub(super) fn hosts_closed_by(
    desired: &BTreeMap<Key, Desired>,
    snapshot: &Snapshot,
    source: &str,
    refused: &BTreeSet<&Key>,
) -> Vec<(Key, Fault)> {
    let is_own = |entry: &Entry| is_own(entry, source, &|key| desired.contains_key(key));
    let accepted = Desired::of_kind(desired, Kind::HttpsEdge).filter(|wanted| !refused.contains(&wanted.key));
    closed_by(accepted, (snapshot, snapshot), source, &is_own)
}

/// Returns a warning for each edge that closes hosts of other sources between two states, as far as it is among the keys.
pub(crate) fn closed_hosts<'k>(
    keys: impl Iterator<Item = &'k Key>,
    before: &Snapshot,
    after: &Snapshot,
) -> Vec<(Key, Fault)> {
    let mut by_source: BTreeMap<&str, BTreeMap<&Key, Desired>> = BTreeMap::new();
    for key in keys.filter(|key| key.kind == Kind::HttpsEdge) {
        let Some(entry) = after.get(key) else { continue };
        let Some(claim) = &entry.claim else { continue };
        let wanted = Desired::new(key.clone(), Arc::clone(entry.spec()), Arc::clone(claim));
        by_source.entry(&claim.source).or_default().insert(key, wanted);
    }
    let mut found = Vec::new();
    for (source, edges) in &by_source {
        let is_own = |entry: &Entry| entry.is_owned_by(source) || edges.contains_key(&entry.key);
        found.extend(closed_by(edges.values(), (before, after), source, &is_own));
    }
    found
}

/// Returns a warning for each edge of a source that closes hosts of others between two states. `is_own` tells the edges that the
/// source has or takes over.
fn closed_by<'a>(
    edges: impl Iterator<Item = &'a Desired>,
    (before, after): (&'a Snapshot, &'a Snapshot),
    source: &str,
    is_own: &dyn Fn(&Entry) -> bool,
) -> Vec<(Key, Fault)> {
    let own = LazyCell::new(|| OwnHosts::new(before, is_own));
    let mut edges: Vec<ClosingEdge<'_>> =
        edges.filter_map(|wanted| ClosingEdge::find(wanted, before, source, &own)).collect();
    if edges.is_empty() {
        return Vec::new();
    }
    let closing_edges = ClosingEdges::new(&edges);
    // Many edges can have other ports of one host.
    let mut judged: HashSet<(String, &str)> = HashSet::default();
    for entry in after.newest_first(Kind::HttpsEdge, None, u64::MAX) {
        yield_to_requests();
        let Some((theirs, owner)) = entry.spec_as::<HttpsEdge>().zip(entry.source()).filter(|_| !is_own(entry)) else {
            continue;
        };
        for (_, text, (host, _)) in theirs.addresses() {
            let held = (host, owner);
            if judged.contains(&held) {
                continue;
            }
            for index in closing_edges.withdrawing(&held.0) {
                if let Some(closing) = edges.get_mut(index).filter(|closing| closing.withdraws_from(owner)) {
                    closing.withdrawn.note(text, owner);
                }
            }
            let adding = if own.close(&held.0, owner) { BTreeSet::new() } else { closing_edges.adding(&held.0) };
            for index in adding {
                if let Some(closing) = edges.get_mut(index).filter(|closing| closing.keeps_from(owner)) {
                    closing.covered.note(text, owner);
                }
            }
            judged.insert(held);
        }
    }
    edges.iter().flat_map(ClosingEdge::warnings).collect()
}

/// The positions of edges, by their hosts.
type ByHost = HashMap<String, Vec<usize>>;

/// The edges of a plan that may close a host.
#[derive(Default)]
struct ClosingEdges {
    /// The edges that withdraw consent, by their hosts.
    withdrawing: ByHost,
    /// The edges that withdraw consent, by the wildcards above their hosts.
    withdrawing_below: ByHost,
    /// The edges that add hosts, by these.
    adding: ByHost,
}

impl ClosingEdges {
    fn new(edges: &[ClosingEdge<'_>]) -> Self {
        let mut found = Self::default();
        for (index, closing) in edges.iter().enumerate() {
            yield_to_requests();
            if !closing.withdrawn_from.is_empty() {
                let hosts: BTreeSet<String> = closing.edge.addresses().map(|(_, _, (host, _))| host).collect();
                let above: BTreeSet<String> = hosts.iter().flat_map(|host| wider(host)).collect();
                above.into_iter().for_each(|host| found.withdrawing_below.entry(host).or_default().push(index));
                hosts.into_iter().for_each(|host| found.withdrawing.entry(host).or_default().push(index));
            }
            for host in &closing.added {
                found.adding.entry(host.clone()).or_default().push(index);
            }
        }
        found
    }

    /// The edges that withdraw consent and have a host, or one above or below it.
    fn withdrawing(&self, host: &str) -> BTreeSet<usize> {
        let below = self.withdrawing_below.get(host).into_iter().flatten().copied();
        below.chain(at_or_above(&self.withdrawing, host)).collect()
    }

    /// The edges that add a host or a wildcard above it.
    fn adding(&self, host: &str) -> BTreeSet<usize> {
        at_or_above(&self.adding, host).collect()
    }
}

/// The edges that have a host or a wildcard above it.
fn at_or_above(edges: &ByHost, host: &str) -> impl Iterator<Item = usize> {
    once(host.to_owned()).chain(wider(host)).filter_map(move |host| edges.get(&host)).flatten().copied()
}

/// Hosts of other sources.
#[derive(Default)]
struct HeldHosts<'a> {
    /// The first ones, as they are written with their ports, and the sources that have them.
    first: Vec<(&'a str, &'a str)>,
    /// How many there are.
    count: usize,
}

impl<'a> HeldHosts<'a> {
    fn note(&mut self, text: &'a str, owner: &'a str) {
        if self.first.len() < MOST_LISTED {
            self.first.push((text, owner));
        }
        self.count += 1;
    }

    /// The first ones, and how many more there are, if there are any.
    fn listed(&self) -> Option<String> {
        let named =
            self.first.iter().map(|(text, owner)| format!("`{}` of source `{}`", printable(text), printable(owner)));
        (self.count > 0).then(|| and_more(named, self.count.saturating_sub(self.first.len())))
    }
}

/// An edge of a plan that may close hosts.
struct ClosingEdge<'a> {
    wanted: &'a Desired,
    edge: &'a HttpsEdge,
    /// The sources that it leaves its hosts to.
    left_to: HashSet<&'a str>,
    /// The sources that those edges left their hosts to whose hosts it has now.
    withdrawn_from: BTreeSet<&'a str>,
    /// The hosts that it adds.
    added: BTreeSet<String>,
    /// The hosts of others that it closes by withdrawing consent.
    withdrawn: HeldHosts<'a>,
    /// The hosts of others that it closes by those that it adds.
    covered: HeldHosts<'a>,
}

/// A source that has edges, if any has them, and the sources that they leave their hosts to.
type Consent<'s> = (Option<&'s str>, BTreeSet<&'s str>);

/// The hosts that edges of a source have in the store, or edges that its plan takes over.
#[derive(Default)]
struct OwnHosts<'s> {
    /// What these edges consent to, each consent once: many edges can have one host.
    consents: Vec<Consent<'s>>,
    /// The positions of the consents of the edges that have a host.
    by_host: HashMap<String, BTreeSet<usize>>,
}

impl<'s> OwnHosts<'s> {
    fn new(snapshot: &'s Snapshot, is_own: &dyn Fn(&Entry) -> bool) -> Self {
        let (mut found, mut positions) = (Self::default(), HashMap::<Consent<'_>, usize>::new());
        for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX).filter(|entry| is_own(entry)) {
            yield_to_requests();
            let Some(edge) = entry.spec_as::<HttpsEdge>() else { continue };
            let consent: Consent<'_> = (entry.source(), left_to(edge).collect());
            let position = *positions.entry(consent).or_insert_with_key(|consent| {
                let next = found.consents.len();
                found.consents.push(consent.clone());
                next
            });
            for (_, _, (host, _)) in edge.addresses() {
                found.by_host.entry(host).or_default().insert(position);
            }
        }
        found
    }

    /// What the edges that have a host consent to.
    fn consents(&self, host: &str) -> impl Iterator<Item = &Consent<'s>> {
        self.by_host.get(host).into_iter().flatten().filter_map(move |position| self.consents.get(*position))
    }

    /// Whether one of the edges closes a host to its owner.
    fn close(&self, host: &str, owner: &str) -> bool {
        let closes =
            |(source, left_to): &Consent<'_>| source.is_some_and(|source| source != owner) && !left_to.contains(owner);
        once(host.to_owned()).chain(wider(host)).any(|host| self.consents(&host).any(closes))
    }
}

impl<'a> ClosingEdge<'a> {
    /// An edge of a plan, if it withdraws consent or adds hosts.
    fn find<F: FnOnce() -> OwnHosts<'a>>(
        wanted: &'a Desired,
        snapshot: &'a Snapshot,
        source: &str,
        own: &LazyCell<OwnHosts<'a>, F>,
    ) -> Option<Self> {
        let edge = wanted.spec_as::<HttpsEdge>()?;
        let stored = snapshot.get(&wanted.key);
        let former = stored.and_then(|entry| entry.spec_as::<HttpsEdge>());
        // What it takes over closes hosts that it did not close before.
        let kept = former.filter(|_| stored.is_some_and(|entry| entry.is_owned_by(source)));
        let added: BTreeSet<String> = added(edge, kept).into_iter().map(|(_, _, (host, _))| host).collect();
        let left: HashSet<&str> = left_to(edge).collect();
        let mut withdrawn_from: BTreeSet<&str> = former.into_iter().flat_map(left_to).collect();
        for host in &added {
            withdrawn_from.extend(own.consents(host).flat_map(|(_, left_to)| left_to).copied());
        }
        withdrawn_from.retain(|it| !left.contains(it));
        let closes = !withdrawn_from.is_empty() || !added.is_empty();
        closes.then(|| {
            let (withdrawn, covered) = (HeldHosts::default(), HeldHosts::default());
            Self { wanted, edge, left_to: left, withdrawn_from, added, withdrawn, covered }
        })
    }

    /// Whether a source had consent that the edge does not give.
    fn withdraws_from(&self, owner: &str) -> bool {
        self.withdrawn_from.contains(owner)
    }

    /// Whether the edge gives a source no consent, and this one had none before.
    fn keeps_from(&self, owner: &str) -> bool {
        // Of which source surrounding manifests are, they do not tell.
        !self.withdraws_from(owner) && !self.left_to.contains(owner) && owner != SURROUNDING_OWNER
    }

    /// The warnings about what the edge closes.
    fn warnings(&self) -> Vec<(Key, Fault)> {
        let name = printable(&self.wanted.claim.name);
        let requires = self.edge.required_modules.is_some();
        let mut found = Vec::new();
        if let Some(held) = self.withdrawn.listed() {
            let message = format!("HttpsEdge `{name}` no longer leaves hosts to edges that have them: {held}");
            let help = "these edges keep their hosts, without the modules that this edge requires, but get no more ports of \
                        them; ask their owners to remove them, or leave the edge as it was";
            let field = if requires { "required_modules" } else { "delegates_to" };
            found.push(Fault::new(Code::NotDelegated, message).at(field).help(help));
        }
        if let Some(held) = self.covered.listed() {
            let message = format!(
                "HttpsEdge `{name}` adds hosts of other edges, or a wildcard above them, and these then get no more \
                 ports: {held}"
            );
            let help = match requires {
                true => "remove the hostport or `required_modules`, or tell their owners; existing hosts stay",
                false => "delegate `/` to their sources, or tell their owners; existing hosts stay",
            };
            found.push(Fault::new(Code::NotDelegated, message).at("hostports").help(help));
        }
        found.into_iter().map(|fault| (self.wanted.key.clone(), fault)).collect()
    }
}

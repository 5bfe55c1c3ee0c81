//! Hosts of edges: who may add a host to an edge (D103, D112).
//!
//! A plan, a request and a rollback are judged alike: what an edge adds, the rival that has it by `host_owners.rs`, and the fault
//! that names it. The owner consents by delegating `/`.
//!
//! Two things nobody consents to. One of two edges with a hostport gets no requests, so what is delegated with `/` is the
//! host, and never the hostport. And an edge with `required_modules` gives no hosts away: they bind its routes only, so that
//! another edge with one of its hosts would serve it without them.
//!
//! For example, `shop` has `*.example.com:443`. An edge of `docs` with `docs.example.com:443` is refused, and so is one
//! with `docs.example.com:80`. If `docs` has `docs.example.com:443`, an edge of `guides` with `*.example.com:80` is refused.
//!
//! Only hosts that are added are judged. What an edge already has stays: its age does not tell who had the host first. But a
//! source that takes an edge over adds its hosts: the former source consents to that, and nobody else has.

use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::iter::once;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::delegated_prefix::{WHOLE, consent_to_ask_for};
use super::host_owners::{Address, HostConsent, HostOwners, delegates_all, leaves_hosts_to_another};
use crate::background::yield_to_requests;
use crate::model::claim::{SURROUNDING_OWNER, source_in_words};
use crate::model::host_pattern::wider;
use crate::model::{Claim, Code, Desired, Entry, Fault, HttpsEdge, Key, Kind, Snapshot, host_port};
use crate::syntax::text::printable;

/// The hostports that an edge does not have yet, with their places in the list.
pub(super) fn added<'e>(edge: &'e HttpsEdge, former: Option<&HttpsEdge>) -> Vec<(usize, &'e str, Address)> {
    // As most edges of a plan.
    if former.is_some_and(|former| former.hostports == edge.hostports) {
        return Vec::new();
    }
    let known: HashSet<Address> = former.into_iter().flat_map(addresses).collect();
    edge.addresses().filter(|(_, _, address)| !known.contains(address)).collect()
}

/// The fault of a hostport that overlaps with one of another edge.
fn fault(index: usize, text: &str, (rival, theirs): &(&Entry, String), source: Option<&str>, name: &str) -> Fault {
    let text = printable(text);
    let owner = rival.claim.as_deref();
    let edge = match owner {
        Some(claim) => {
            format!("HttpsEdge `{}` of {}", printable(&claim.name), source_in_words(&claim.source))
        }
        None => format!("HttpsEdge {}, which no source owns", rival.key.id),
    };
    let is_same = host_port(&text).is_some_and(|(host, port)| format!("{host}:{port}") == *theirs);
    let port = |text: &str| host_port(text).map(|(_, port)| port);
    let why = if port(&text) == port(theirs) { "" } else { ", because hosts belong to one source on all ports" };
    let message = match is_same {
        true => format!("`{text}` belongs to {edge}"),
        false => format!("`{text}` overlaps with `{}` of {edge}{why}", printable(theirs)),
    };
    let help = match (source, owner) {
        (Some(source), Some(claim)) => {
            // Probably the manifests of that source.
            let first = match claim.name == name && claim.source != SURROUNDING_OWNER {
                true => {
                    format!("if these are its manifests, use `--source {}`; otherwise ", printable(&claim.source))
                }
                false => String::new(),
            };
            let edge = rival.spec_as::<HttpsEdge>();
            let asked = edge.filter(|edge| !delegates_all(edge, source));
            let consent = asked.map(|edge| consent_to_ask_for(edge, &claim.name, source, WHOLE));
            let its_name = match claim.source == SURROUNDING_OWNER {
                true => printable(&claim.name),
                false => format!("{}/{}", printable(&claim.source), printable(&claim.name)),
            };
            let and_consent = consent.as_ref().map(|consent| format!(", and {consent}")).unwrap_or_default();
            let routes = format!("replace this edge by routes with `edge: {its_name}`{and_consent}");
            let has_required = edge.is_some_and(|edge| edge.required_modules.is_some());
            match (is_same, consent) {
                // Consent does not help: one of two edges with a hostport gets no traffic.
                (true, _) => format!("{first}{routes}; or ask its owner to remove the hostport"),
                (false, Some(consent)) if !has_required => format!("{first}remove it, or {consent}"),
                (false, _) => {
                    format!("{first}remove it, or {routes}; an edge with `required_modules` leaves no host to others")
                }
            }
        }
        (Some(_), None) => format!("remove it, or adopt that edge with `metadata: {{id: {}}}`", rival.key.id),
        (None, _) => "remove it, or ask the owner of that edge to remove its hostport first".to_owned(),
    };
    Fault::new(Code::NotDelegated, message).at(("hostports", index)).help(help)
}

/// The hosts and ports of an edge.
fn addresses(edge: &HttpsEdge) -> impl Iterator<Item = Address> {
    edge.addresses().map(|(_, _, address)| address)
}

/// Returns a fault for each hostport that an edge of a source, or of none, adds and that has a rival. `name` is that of the edge in
/// the manifests.
fn added_faults<'s>(
    (edge, former): (&HttpsEdge, Option<&HttpsEdge>),
    (source, name): (Option<&str>, &str),
    mut rival: impl FnMut(&Address) -> Option<(&'s Entry, String)>,
) -> impl Iterator<Item = Fault> {
    let added = added(edge, former).into_iter();
    added.filter_map(move |(index, text, address)| Some(fault(index, text, &rival(&address)?, source, name)))
}

/// Whether an edge is taken over, adds a hostport or changes what it allows others, so that it is judged next to other sources. This
/// reads no other edges.
pub(crate) fn concern_others<'a>(mut edges: impl Iterator<Item = &'a Desired>, snapshot: &Snapshot) -> bool {
    edges.any(|wanted| {
        let Some(edge) = wanted.spec_as::<HttpsEdge>() else { return false };
        let stored = snapshot.get(&wanted.key);
        let former = stored.and_then(|entry| entry.spec_as::<HttpsEdge>());
        let is_taken_over = stored.is_some_and(|entry| !entry.is_owned_by(&wanted.claim.source));
        let allows_alike = former.is_none_or(|former| {
            former.delegates_to == edge.delegates_to && former.certificates_from == edge.certificates_from
        });
        is_taken_over || !allows_alike || !added(edge, former).is_empty()
    })
}

/// An edge as a state has it.
fn stored_edge<'s>(snapshot: &'s Snapshot, key: &Key) -> Option<&'s HttpsEdge> {
    snapshot.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>())
}

/// The hostports that edges of a source have, as far as these count.
fn hostports_of(snapshot: &Snapshot, source: &str, counts: &dyn Fn(&Entry) -> bool) -> HashSet<Address> {
    let edges = snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX);
    let edges = edges.filter(|entry| entry.is_owned_by(source) && counts(entry));
    edges.filter_map(|entry| entry.spec_as::<HttpsEdge>()).flat_map(addresses).collect()
}

/// Whether a source has an edge, or takes it over with a plan. `is_declared` tells the edges that the source declares.
pub(super) fn is_own(entry: &Entry, source: &str, is_declared: &dyn Fn(&Key) -> bool) -> bool {
    match entry.claim.as_deref() {
        None => is_declared(&entry.key),
        Some(claim) if claim.source == source => true,
        // Whoever only declares the edge of another source does not have it.
        Some(claim) => is_declared(&entry.key) && (claim.receiver() == Some(source) || claim.is_returned_by(source)),
    }
}

/// Whose the hosts are that edges of a plan add.
struct PlannedHosts<'s> {
    snapshot: &'s Snapshot,
    source: &'s str,
    /// Tells the edges that the source has or takes over.
    is_own: &'s dyn Fn(&Entry) -> bool,
    /// The hostports of edges of the source.
    held: HashSet<Address>,
    /// The hostports of edges that it takes over, with the sources that hand these over.
    received: HashMap<Address, &'s str>,
    /// The owners of hosts: without what others hand over, and for each source that does. With that, all edges of this source
    /// consent.
    owners: HashMap<Option<&'s str>, HostOwners<'s>>,
}

impl<'s> PlannedHosts<'s> {
    fn new(snapshot: &'s Snapshot, source: &'s str, is_own: &'s dyn Fn(&Entry) -> bool) -> Self {
        let (mut held, mut received): (HashSet<Address>, HashMap<_, _>) = (HashSet::default(), HashMap::new());
        for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX).filter(|entry| is_own(entry)) {
            yield_to_requests();
            let Some((edge, owner)) = entry.spec_as::<HttpsEdge>().zip(entry.source()) else { continue };
            match owner == source {
                true => held.extend(addresses(edge)),
                false => received.extend(addresses(edge).map(|address| (address, owner))),
            }
        }
        Self { snapshot, source, is_own, held, received, owners: HashMap::new() }
    }

    /// The edge of another source that an added hostport overlaps with, and the hostport that it has.
    fn rival(&mut self, added: &Address) -> Option<(&'s Entry, String)> {
        // Hosts of the source move between its edges.
        if self.held.contains(added) {
            return None;
        }
        let (snapshot, source, is_own) = (self.snapshot, self.source, self.is_own);
        let (host, port) = added;
        // A wildcard that is handed over has the requests for hosts below it.
        let mut at_or_above = once(host.clone()).chain(wider(host));
        let giver = at_or_above.find_map(|host| self.received.get(&(host, *port)).copied());
        let standing = |entry: &Entry| match entry.source() {
            Some(owner) if owner != source && (is_own(entry) || Some(owner) == giver) => Some(HostConsent::Given),
            _ => is_own(entry).then_some(HostConsent::Own),
        };
        let index = || HostOwners::new(snapshot, Some(source), &standing, &|_, _| HashSet::default());
        let owners = self.owners.entry(giver).or_insert_with(index);
        match self.received.contains_key(added) {
            true => owners.rival_of_received(added),
            false => owners.rival(added),
        }
    }
}

/// Returns a fault for each hostport that an edge adds and that overlaps with one of another source. What an edge of the source, or
/// of none, had before is not judged: nobody can tell from the store who had it first. `is_own` tells the edges that the source
/// has or takes over.
fn added_by<'a>(
    edges: impl Iterator<Item = &'a Desired>,
    snapshot: &Snapshot,
    source: &str,
    is_own: &dyn Fn(&Entry) -> bool,
) -> Vec<(Key, Fault)> {
    let mut found = Vec::new();
    let mut hosts: Option<PlannedHosts<'_>> = None;
    let is_received = |entry: &Entry| entry.source().is_some_and(|owner| owner != source) && is_own(entry);
    for wanted in edges {
        yield_to_requests();
        let Some(edge) = wanted.spec_as::<HttpsEdge>() else { continue };
        // Surrounding manifests do not tell whose they are: an edge of theirs can have the host by the consent of this one.
        let may_have_consent =
            |rival: &Entry| rival.is_owned_by(SURROUNDING_OWNER) && leaves_hosts_to_another(edge, source);
        let rival = |address: &Address| {
            let hosts = hosts.get_or_insert_with(|| PlannedHosts::new(snapshot, source, is_own));
            hosts.rival(address).filter(|(rival, _)| !may_have_consent(rival))
        };
        let kept = snapshot.get(&wanted.key).filter(|entry| !is_received(entry));
        let kept = kept.and_then(|entry| entry.spec_as::<HttpsEdge>());
        let faults = added_faults((edge, kept), (Some(source), wanted.claim.name.as_str()), rival);
        found.extend(faults.map(|fault| (wanted.key.clone(), fault)));
    }
    found
}

/// Returns a fault for each hostport that an edge of a plan adds and that overlaps with one of another source. `is_declared` tells
/// the edges that the source declares.
pub(crate) fn hostport_faults<'a>(
    edges: impl Iterator<Item = &'a Desired>,
    snapshot: &Snapshot,
    source: &str,
    is_declared: &dyn Fn(&Key) -> bool,
) -> Vec<(Key, Fault)> {
    added_by(edges, snapshot, source, &|entry: &Entry| is_own(entry, source, is_declared))
}

/// Returns a fault for each hostport that a source receives with edges, as far as these are among the keys, and to which others
/// than their present source have not consented.
pub(crate) fn received_hostports<'k>(
    keys: impl Iterator<Item = &'k Key>,
    snapshot: &Snapshot,
    source: &str,
) -> Vec<(Key, Fault)> {
    let received = keys.filter(|key| key.kind == Kind::HttpsEdge).filter_map(|key| {
        let spec = Arc::clone(snapshot.get(key)?.spec());
        // Without manifests, it has no name in them.
        Some(Desired::new(key.clone(), spec, Arc::new(Claim::new(source, ""))))
    });
    let received: Vec<Desired> = received.collect();
    let keys: BTreeSet<&Key> = received.iter().map(|wanted| &wanted.key).collect();
    let is_own = |entry: &Entry| entry.is_owned_by(source) || keys.contains(&entry.key);
    added_by(received.iter(), snapshot, source, &is_own)
}

/// Returns a fault for each edge of a source, or of none, that gets a hostport between two states that overlaps with one of
/// another source afterwards. As in a plan, hosts of a source move between its edges, unless another source gets the edge that
/// had them.
pub(crate) fn retaken_hostports<'k>(
    keys: impl Iterator<Item = &'k Key>,
    before: &Snapshot,
    after: &Snapshot,
    source: Option<&str>,
) -> Vec<(Key, Fault)> {
    let mut found = Vec::new();
    let is_own = |entry: &Entry| entry.source() == source;
    // A host that the source gets back now does not count as its own.
    let retaken = |entry: &Entry, edge: &HttpsEdge| -> HashSet<Address> {
        let added = if is_own(entry) { added(edge, stored_edge(before, &entry.key)) } else { Vec::new() };
        added.into_iter().map(|(_, _, address)| address).collect()
    };
    let standing = |entry: &Entry| is_own(entry).then_some(HostConsent::Own);
    let owners = LazyCell::new(|| HostOwners::new(after, source, &standing, &retaken));
    let stays = |entry: &Entry| after.get(&entry.key).is_none_or(|now| is_own(now));
    let held = LazyCell::new(|| source.map(|source| hostports_of(before, source, &stays)).unwrap_or_default());
    for key in keys.filter(|key| key.kind == Kind::HttpsEdge) {
        let Some(edge) = stored_edge(after, key) else { continue };
        let rival = |address: &Address| if held.contains(address) { None } else { owners.rival(address) };
        let faults = added_faults((edge, stored_edge(before, key)), (source, ""), rival);
        found.extend(faults.map(|fault| (key.clone(), fault)));
    }
    found
}

/// Returns a fault for the first hostport that a request adds to an edge of a source, or of none, and that overlaps with one
/// of another source. Other edges are not read unless the request adds a hostport.
pub(super) fn added_hostport_fault(
    current: &Snapshot,
    source: Option<&str>,
    edge: &HttpsEdge,
    former: Option<&HttpsEdge>,
) -> Option<Fault> {
    let standing = |entry: &Entry| (entry.source() == source).then_some(HostConsent::Own);
    let owners = LazyCell::new(|| HostOwners::new(current, source, &standing, &|_, _| HashSet::default()));
    added_faults((edge, former), (source, ""), |address| owners.rival(address)).next()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Id, Operation};

    /// A state with edges: their IDs, their sources, and their hostports.
    fn state(edges: &[(&str, Option<&str>, &str)]) -> Snapshot {
        let create = |(id, source, hostport): &(&str, Option<&str>, &str)| {
            let hostports = vec![(*hostport).to_owned()];
            let spec = Arc::new(HttpsEdge { hostports, ..HttpsEdge::default() });
            let claim = source.map(|source| Arc::new(Claim::new(source, *id)));
            Operation::Create { key: Key::new(Kind::HttpsEdge, Id::new(id)), spec, claim, token: None }
        };
        let operations: Vec<Operation> = edges.iter().map(create).collect();
        Snapshot::default().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0
    }

    #[test]
    fn a_rollback_moves_hosts_of_a_source_between_its_edges_and_takes_none_of_another_source() {
        let (docs, shop) = (Some("docs"), Some("shop"));
        let (wide, host, other) = ("*.example.com:443", "x.example.com:80", "docs.example.org:443");
        let shops = ("edghts_shop", shop, wide);
        let both = |one: &str, owner: Option<&str>, two: &str| {
            state(&[shops, ("edghts_one", docs, one), ("edghts_two", owner, two)])
        };
        let before = both(other, docs, host);
        for (after, expected) in [
            (both(host, docs, other), 0),
            (both("x.example.com:8080", docs, other), 1),
            // Nobody gives the edge with the host away and has the host as well.
            (both(host, shop, host), 1),
            (both(host, None, host), 1),
        ] {
            let keys = ["edghts_one", "edghts_two"].map(|id| Key::new(Kind::HttpsEdge, Id::new(id)));
            let found = retaken_hostports(keys.iter(), &before, &after, docs);
            assert_eq!(found.len(), expected, "{found:?}");
        }
    }
}

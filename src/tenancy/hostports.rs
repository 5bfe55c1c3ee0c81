//! Hosts of edges: who may add a host to an edge (D103, D112).
//!
//! Cookies and the names of certificates know no ports, and browsers try port 80 first: whoever has another port of a
//! host has its sessions. So ports do not count: a host belongs to the source whose edge has it, a host below a wildcard
//! to the source of the closest wildcard, which gets its requests today, and a new wildcard needs those who have hosts
//! below it. The owner consents by delegating `/`.
//!
//! Two things nobody consents to. One of two edges with a hostport gets no requests, so what is delegated with `/` is the
//! host, and never the hostport. And an edge with `required_modules` gives no hosts away: they bind its routes only, so that
//! another edge with one of its hosts would serve it without them.
//!
//! For example, `shop` has `*.example.com:443`. An edge of `docs` with `docs.example.com:443` is refused, and so is one
//! with `docs.example.com:80`. If `docs` has `docs.example.com:443`, an edge of `guides` with `*.example.com:80` is refused.
//!
//! Consent to a host is no consent to its other ports: a source that has a host below a wildcard of another needs the present
//! consent of that edge for each port more, unless its own edges have the requests already.
//!
//! Only hosts that are added are judged. What an edge already has stays: its age does not tell who had the host first.

use std::cell::LazyCell;

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::delegated_prefix::{WHOLE, prefixes_of};
use super::delegation::consent_to_ask_for;
use crate::background::yield_to_requests;
use crate::model::claim::SURROUNDING_OWNER;
use crate::model::{Code, Desired, Entry, Fault, HttpsEdge, Key, Kind, Snapshot, host_port};
use crate::routing::behaviour::wider;
use crate::syntax::text::printable;

/// A host in its normal form, and a port.
type Address = (String, u16);

/// Whether a source may serve a host that an edge has. Of several edges with the host, the one with the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HostConsent {
    /// The edge is its own.
    Own,
    /// The edge delegates all of its paths to the source, which can have the host on other ports.
    Given,
    /// No source owns the edge, so nobody can consent.
    Unowned,
    /// The edge is another's.
    Missing,
}

impl HostConsent {
    /// What an edge that is not the source's own says about its hosts.
    fn from_entry(entry: &Entry, edge: &HttpsEdge, source: Option<&str>) -> Self {
        match entry.claim {
            Some(_) => Self::from_edge(edge, source),
            None => Self::Unowned,
        }
    }

    /// What the edge of another source says about its hosts.
    pub(super) fn from_edge(edge: &HttpsEdge, source: Option<&str>) -> Self {
        let is_given = |source| edge.required_modules.is_none() && delegates_all(edge, source);
        if source.is_some_and(is_given) { Self::Given } else { Self::Missing }
    }
}

/// An edge that has a host.
#[derive(Clone, Copy)]
struct HostOwner<'s> {
    entry: &'s Entry,
    /// The port that it has of the host.
    port: u16,
    /// Whether the source that asks may serve the host, too.
    consent: HostConsent,
}

impl HostOwner<'_> {
    fn is_closed(&self) -> bool {
        self.consent >= HostConsent::Unowned
    }
}

/// The owners of hosts, from the view of one source.
struct HostOwners<'s> {
    /// By host and port.
    served: HashMap<Address, HostOwner<'s>>,
    /// By host, on any port: the one with the least consent.
    hosts: HashMap<String, HostOwner<'s>>,
}

impl<'s> HostOwners<'s> {
    /// Indexes the hosts of those hostports of a state that count. `is_own` tells the edges of the source, or of none.
    fn new(
        snapshot: &'s Snapshot,
        source: Option<&str>,
        is_own: &dyn Fn(&Entry) -> bool,
        counts: &dyn Fn(&Entry, &str) -> bool,
    ) -> Self {
        let (mut served, mut hosts) = (HashMap::new(), HashMap::new());
        // If several edges have a host, those of other sources take precedence over the source's own, and the oldest
        // one, which comes last, over others with the same consent.
        for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX) {
            yield_to_requests();
            let Some(edge) = entry.spec_as::<HttpsEdge>() else { continue };
            let consent = if is_own(entry) { HostConsent::Own } else { HostConsent::from_entry(entry, edge, source) };
            for (_, _, (host, port)) in edge.addresses().filter(|(_, text, _)| counts(entry, text)) {
                let server = HostOwner { entry, port, consent };
                let at = served.entry((host.clone(), port)).or_insert(server);
                let on_any = hosts.entry(host).or_insert(server);
                for known in [at, on_any] {
                    if known.consent <= consent {
                        *known = server;
                    }
                }
            }
        }
        Self { served, hosts }
    }

    /// The edge of another source that an added hostport overlaps with, and the hostport that it has.
    fn rival(&self, added: &Address) -> Option<(&'s Entry, String)> {
        // Whoever has the hostport has all of its requests already.
        let (server, host) = match self.served.get(added) {
            Some(server) if server.consent == HostConsent::Own => None,
            Some(server) => Some((server, added.0.clone())),
            None => self.closed_above(added).or_else(|| self.closed_below(&added.0)),
        }?;
        Some((server.entry, format!("{host}:{}", server.port)))
    }

    /// The edge that has an added host or a wildcard above it, and does not consent. The closest one is asked, and then the next
    /// ones up to that whose requests the hostport takes: whoever has the closest host may have it by their consent alone, and
    /// on another port. An edge that no source owns has never consented.
    fn closed_above(&self, (host, port): &Address) -> Option<(&HostOwner<'s>, String)> {
        let mut is_closest = true;
        for host in std::iter::once(host.clone()).chain(wider(host)) {
            let Some(on_any) = self.hosts.get(&host) else { continue };
            let on_port = self.served.get(&(host.clone(), *port));
            if on_port.is_some_and(|server| server.consent == HostConsent::Own) {
                return None;
            }
            if on_any.is_closed() && (is_closest || on_any.consent == HostConsent::Missing) {
                return Some((on_port.filter(|server| server.is_closed()).unwrap_or(on_any), host));
            }
            if on_port.is_some() {
                return None;
            }
            is_closest = false;
        }
        None
    }

    /// The edge that has a host below an added wildcard, and does not consent.
    fn closed_below(&self, host: &str) -> Option<(&HostOwner<'s>, String)> {
        let suffix = host.strip_prefix('*')?;
        let is_below = |host: &str| host.len() > suffix.len() && host.ends_with(suffix);
        let below = self.hosts.iter().filter(|(host, server)| server.is_closed() && is_below(host));
        below.min_by_key(|(host, _)| *host).map(|(host, server)| (server, host.clone()))
    }
}

/// Whether an edge delegates all of its paths to a source.
fn delegates_all(edge: &HttpsEdge, source: &str) -> bool {
    prefixes_of(edge, source).contains(&WHOLE)
}

/// The hostports that an edge does not have yet, with their places in the list.
fn added<'e>(edge: &'e HttpsEdge, former: Option<&HttpsEdge>) -> Vec<(usize, &'e str, Address)> {
    let known = former.into_iter().flat_map(|former| former.addresses());
    let known: Vec<Address> = known.map(|(_, _, address)| address).collect();
    edge.addresses().filter(|(_, _, address)| !known.contains(address)).collect()
}

/// The fault of a hostport that overlaps with one of another edge.
fn fault(index: usize, text: &str, (rival, theirs): &(&Entry, String), source: Option<&str>, name: &str) -> Fault {
    let text = printable(text);
    let owner = rival.claim.as_deref();
    let edge = match owner {
        Some(claim) => {
            format!("HttpsEdge `{}` of source `{}`", printable(&claim.name), printable(&claim.source))
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
            let first = match claim.name == name {
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

/// Whether an edge adds a hostport, so that it can have one of another source. This reads no other edges.
pub(crate) fn add_hostports<'a>(mut edges: impl Iterator<Item = &'a Desired>, snapshot: &Snapshot) -> bool {
    edges.any(|wanted| {
        let Some(edge) = wanted.spec_as::<HttpsEdge>() else { return false };
        !added(edge, former(snapshot, &wanted.key)).is_empty()
    })
}

pub(super) fn former<'s>(snapshot: &'s Snapshot, key: &Key) -> Option<&'s HttpsEdge> {
    snapshot.get(key).and_then(|former| former.spec_as::<HttpsEdge>())
}

/// The hostports that edges of a source have.
fn hostports_of(snapshot: &Snapshot, source: &str) -> HashSet<Address> {
    let edges = snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX).filter(|entry| entry.is_owned_by(source));
    let edges = edges.filter_map(|entry| entry.spec_as::<HttpsEdge>());
    edges.flat_map(|edge| edge.addresses()).map(|(_, _, address)| address).collect()
}

/// Returns a fault for each hostport that an edge adds and that overlaps with one of another source. What an edge had before
/// is not judged: nobody can tell from the store who had it first. `is_declared` tells the edges that the source declares.
pub(crate) fn hostport_faults<'a>(
    edges: impl Iterator<Item = &'a Desired>,
    snapshot: &Snapshot,
    source: &str,
    is_declared: &dyn Fn(&Key) -> bool,
) -> Vec<(Key, Fault)> {
    let mut found = Vec::new();
    let is_own = |entry: &Entry| match entry.claim.as_deref() {
        None => is_declared(&entry.key),
        Some(claim) if claim.source == source => true,
        // Whoever only declares the edge of another source does not have it.
        Some(claim) => is_declared(&entry.key) && (claim.receiver() == Some(source) || claim.is_returned_by(source)),
    };
    let served = LazyCell::new(|| HostOwners::new(snapshot, Some(source), &is_own, &|_, _| true));
    let held = LazyCell::new(|| hostports_of(snapshot, source));
    for wanted in edges {
        yield_to_requests();
        let Some(edge) = wanted.spec_as::<HttpsEdge>() else { continue };
        for (index, text, address) in added(edge, former(snapshot, &wanted.key)) {
            // Hosts of the source move between its edges.
            if held.contains(&address) {
                continue;
            }
            // Surrounding manifests do not tell whose they are: an edge of theirs can have the host by the consent of this one.
            let may_have_consent = |rival: &Entry| {
                let delegates = edge.delegates_to.iter().any(|it| delegates_all(edge, &it.source));
                rival.is_owned_by(SURROUNDING_OWNER) && edge.required_modules.is_none() && delegates
            };
            if let Some(rival) = served.rival(&address).filter(|(rival, _)| !may_have_consent(rival)) {
                found.push((wanted.key.clone(), fault(index, text, &rival, Some(source), &wanted.claim.name)));
            }
        }
    }
    found
}

/// Returns a fault for each edge of a source, or of none, that gets a hostport between two states that overlaps with one of
/// another source afterwards.
pub(crate) fn retaken_hostports<'k>(
    keys: impl Iterator<Item = &'k Key>,
    before: &Snapshot,
    after: &Snapshot,
    source: Option<&str>,
) -> Vec<(Key, Fault)> {
    let mut found = Vec::new();
    let is_own = |entry: &Entry| entry.source() == source;
    // A host that the source gets back now does not count as its own.
    let counts = |entry: &Entry, text: &str| {
        let gets =
            |edge: &HttpsEdge| added(edge, former(before, &entry.key)).iter().any(|(_, added, _)| *added == text);
        !is_own(entry) || !entry.spec_as::<HttpsEdge>().is_some_and(gets)
    };
    let served = LazyCell::new(|| HostOwners::new(after, source, &is_own, &counts));
    for key in keys.filter(|key| key.kind == Kind::HttpsEdge) {
        let Some(edge) = after.get(key).and_then(|entry| entry.spec_as::<HttpsEdge>()) else { continue };
        for (index, text, address) in added(edge, former(before, key)) {
            if let Some(rival) = served.rival(&address) {
                found.push((key.clone(), fault(index, text, &rival, source, "")));
            }
        }
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
    let is_own = |entry: &Entry| entry.source() == source;
    let served = LazyCell::new(|| HostOwners::new(current, source, &is_own, &|_, _| true));
    let mut added = added(edge, former).into_iter();
    added.find_map(|(index, text, address)| Some(fault(index, text, &served.rival(&address)?, source, "")))
}

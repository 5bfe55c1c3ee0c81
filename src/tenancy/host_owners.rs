//! Whose a host is, from the view of a source that adds one (D103, D112).
//!
//! Cookies and the names of certificates know no ports, and browsers try port 80 first: whoever has another port of a host has its
//! sessions. So ports do not count: a host belongs to the source whose edge has it, a host below a wildcard to the source of the
//! closest wildcard, which gets its requests today, and a new wildcard needs those who have hosts below it.
//!
//! For example, `shop` has `*.example.com:443`, and `docs` has `docs.example.com:443` by its consent. An edge of `guides` with
//! `docs.example.com:80` needs the consent of both, one with `blog.example.com:80` that of `shop`, and one with `*.com:80` that of
//! both again.
//!
//! Consent to a host is no consent to its other ports: a source that has a host below a wildcard of another needs the present
//! consent of that edge for each port more, unless its own edges have the requests already.

use std::cell::OnceCell;

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::delegated_prefix::{WHOLE, prefixes_of};
use crate::background::yield_to_requests;
use crate::model::host_pattern::wider;
use crate::model::{Entry, HttpsEdge, Kind, Snapshot};

/// A host in its normal form, and a port.
pub(super) type Address = (String, u16);

/// Whether a source may serve a host that an edge has. Of several edges with the host, the one with the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HostConsent {
    /// The edge is its own.
    Own,
    /// The edge delegates all of its paths to the source, which can have the host on other ports, or is of a source that hands
    /// the host over.
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
            None => Self::Unowned,
            Some(_) if left_to(edge).any(|left_to| Some(left_to) == source) => Self::Given,
            Some(_) => Self::Missing,
        }
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

impl<'s> HostOwner<'s> {
    /// The edge, with the hostport that it has of a host.
    fn with_hostport(&self, host: &str) -> (&'s Entry, String) {
        (self.entry, format!("{host}:{}", self.port))
    }

    fn is_closed(&self) -> bool {
        self.consent >= HostConsent::Unowned
    }
}

/// The owners of hosts, from the view of one source.
pub(super) struct HostOwners<'s> {
    /// By host and port.
    served: HashMap<Address, HostOwner<'s>>,
    /// By host, on any port: the one with the least consent.
    hosts: HashMap<String, HostOwner<'s>>,
    /// The first host below each wildcard that is closed to the source. Made for the first wildcard that is added.
    closed_below: OnceCell<HashMap<String, String>>,
}

impl<'s> HostOwners<'s> {
    /// Indexes the hosts of a state. `standing` tells the consent of edges that are not asked for it, such as those of the source, or
    /// of none, and `uncounted` what of an edge does not count.
    pub(super) fn new(
        snapshot: &'s Snapshot,
        source: Option<&str>,
        standing: &dyn Fn(&Entry) -> Option<HostConsent>,
        uncounted: &dyn Fn(&Entry, &HttpsEdge) -> HashSet<Address>,
    ) -> Self {
        let (mut served, mut hosts) = (HashMap::new(), HashMap::new());
        // If several edges have a host, those of other sources take precedence over the source's own, and the oldest
        // one, which comes last, over others with the same consent.
        for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX) {
            yield_to_requests();
            let Some(edge) = entry.spec_as::<HttpsEdge>() else { continue };
            let consent = standing(entry).unwrap_or_else(|| HostConsent::from_entry(entry, edge, source));
            let uncounted = uncounted(entry, edge);
            for (_, _, (host, port)) in edge.addresses().filter(|(_, _, address)| !uncounted.contains(address)) {
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
        Self { served, hosts, closed_below: OnceCell::new() }
    }

    /// The edge of another source that an added hostport overlaps with, and the hostport that it has.
    pub(super) fn rival(&self, added: &Address) -> Option<(&'s Entry, String)> {
        match self.served.get(added) {
            // Whoever has the hostport has all of its requests already.
            Some(server) if server.consent == HostConsent::Own => None,
            Some(server) => Some(server.with_hostport(&added.0)),
            None => {
                let closed = self.closed_above(added).or_else(|| self.closed_below(&added.0));
                closed.map(|(server, host)| server.with_hostport(&host))
            }
        }
    }

    /// The edge that has the host of a hostport which is handed over, or a wildcard above it, and does not consent. Hosts below a
    /// wildcard were below it before.
    pub(super) fn rival_of_received(&self, received: &Address) -> Option<(&'s Entry, String)> {
        self.closed_above(received).map(|(server, host)| server.with_hostport(&host))
    }

    /// The edge that has an added host or a wildcard above it, and does not consent. All of them are asked, unless a wildcard of the
    /// source has the requests already: whoever has the closest host may have it by the consent of those above alone, who did not
    /// consent to others. An edge that no source owns is asked only if it is the closest, and hides no edge above it.
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
            is_closest = false;
        }
        None
    }

    /// The edge that has a host below an added wildcard, and does not consent.
    fn closed_below(&self, host: &str) -> Option<(&HostOwner<'s>, String)> {
        if !host.starts_with('*') {
            return None;
        }
        let first = self.closed_below.get_or_init(|| self.closed_by_wildcard()).get(host)?;
        Some((self.hosts.get(first)?, first.clone()))
    }

    /// The first host below each wildcard that is closed to the source, so that many wildcards are not compared with many hosts.
    fn closed_by_wildcard(&self) -> HashMap<String, String> {
        let mut first: HashMap<String, String> = HashMap::new();
        for (host, _) in self.hosts.iter().filter(|(_, server)| server.is_closed()) {
            for wildcard in wider(host) {
                let known = first.entry(wildcard).or_insert_with(|| host.clone());
                if *host < *known {
                    known.clone_from(host);
                }
            }
        }
        first
    }
}

/// The sources that an edge leaves its hosts to, on other ports and below its wildcards.
pub(super) fn left_to(edge: &HttpsEdge) -> impl Iterator<Item = &str> {
    let whole = edge.delegates_to.iter().filter(move |it| it.path_prefix == WHOLE && edge.required_modules.is_none());
    whole.map(|it| it.source.as_str())
}

/// Whether an edge leaves its hosts to a source other than `source`, on other ports and below its wildcards.
pub(crate) fn leaves_hosts_to_another(edge: &HttpsEdge, source: &str) -> bool {
    left_to(edge).any(|other| other != source)
}

/// Whether an edge delegates all of its paths to a source.
pub(super) fn delegates_all(edge: &HttpsEdge, source: &str) -> bool {
    prefixes_of(edge, source).contains(&WHOLE)
}

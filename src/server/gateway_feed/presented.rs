//! Which hosts present which certificates, for people: the choice that gateways make from their configuration.

use std::sync::Weak;

use super::certificates::{Candidate, CertificateValidity, Certificates};
use super::edges::{termination, tls_host};
use super::view::GatewayTermination;
use crate::model::{Entry, HttpsEdge};
use crate::server::prelude::*;

/// A hostport that terminates TLS.
pub(in crate::server) struct TlsHostport {
    /// The hostport as it was written.
    pub hostport: String,
    /// The edge.
    pub edge: Key,
    /// The certificates in order of preference: gateways present the first one that is valid.
    certificates: Vec<CertificateValidity>,
}

/// The hostports of a revision that terminate TLS, and their certificates.
#[derive(Default)]
pub(in crate::server) struct TlsHostports {
    all: Vec<TlsHostport>,
    /// By the ID of a certificate, the places of the hostports that can present it.
    by_certificate: HashMap<String, Vec<usize>>,
    /// Likewise, the place of the first hostport that has no certificate and does not present this one, because of its source.
    by_withheld: HashMap<String, usize>,
}

impl TlsHostport {
    /// Finds a hostport of an edge; none if the edge terminates no TLS there.
    pub(in crate::server) fn find(snapshot: &Snapshot, edge: &Key, hostport: &str) -> Option<Self> {
        let entry = snapshot.get(edge)?;
        Self::new(entry, entry.spec_as::<HttpsEdge>()?, hostport, &Certificates::new(snapshot))
    }

    fn new(entry: &Entry, edge: &HttpsEdge, hostport: &str, certificates: &Certificates<'_>) -> Option<Self> {
        let terminates = termination(edge) == GatewayTermination::Edge;
        let (host, _, true) = tls_host(hostport, terminates)? else { return None };
        let candidates = certificates.for_host(&host, edge, entry.claim.as_deref());
        let certificates = candidates.into_iter().map(Candidate::validity).collect();
        Some(Self { hostport: hostport.to_owned(), edge: entry.key.clone(), certificates })
    }

    /// The ID of the certificate that gateways present at a time, and whether it is valid then. If none is, it is the one that
    /// they prefer.
    pub(in crate::server) fn presented(&self, now: Timestamp) -> Option<(&str, bool)> {
        let valid = self.certificates.iter().find(|it| it.is_valid(now));
        let shown = valid.or_else(|| self.certificates.first())?;
        Some((shown.id.as_str(), valid.is_some()))
    }
}

impl TlsHostports {
    /// Finds the hostports of a revision.
    fn new(snapshot: &Snapshot) -> Self {
        let (certificates, mut found) = (Certificates::new(snapshot), Self::default());
        for entry in snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX) {
            let Some(edge) = entry.spec_as::<HttpsEdge>() else { continue };
            let hostports = edge.hostports.iter();
            found.all.extend(hostports.filter_map(|text| TlsHostport::new(entry, edge, text, &certificates)));
        }
        found.all.sort_by(|one, other| one.hostport.cmp(&other.hostport));
        for (place, hostport) in found.all.iter().enumerate() {
            for certificate in &hostport.certificates {
                found.by_certificate.entry(certificate.id.clone()).or_default().push(place);
            }
            if let (true, Some((host, ..))) = (hostport.certificates.is_empty(), tls_host(&hostport.hostport, true)) {
                for withheld in certificates.covering(&host) {
                    found.by_withheld.entry(withheld.id.to_owned()).or_insert(place);
                }
            }
        }
        found
    }

    /// The hostports that present a certificate now, and how many could present it and have a better one.
    pub(in crate::server) fn of_certificate(&self, id: &str, now: Timestamp) -> (Vec<&TlsHostport>, usize) {
        let places = self.by_certificate.get(id).into_iter().flatten();
        let can: Vec<&TlsHostport> = places.filter_map(|place| self.all.get(*place)).collect();
        let all = can.len();
        let presents =
            |it: &&TlsHostport| it.certificates.iter().find(|it| it.is_valid(now)).is_some_and(|it| it.id == id);
        let presenting: Vec<&TlsHostport> = can.into_iter().filter(presents).collect();
        let others = all - presenting.len();
        (presenting, others)
    }

    /// The first hostport without any certificate that does not present this one, although it is for its host.
    pub(in crate::server) fn withholding(&self, id: &str) -> Option<&TlsHostport> {
        self.all.get(*self.by_withheld.get(id)?)
    }

    /// The hostports of an edge.
    pub(in crate::server) fn of_edge(&self, edge: &Key) -> impl Iterator<Item = &TlsHostport> {
        self.all.iter().filter(move |it| it.edge == *edge)
    }

    /// The hostports without any certificate.
    pub(in crate::server) fn without_certificate(&self) -> impl Iterator<Item = &TlsHostport> {
        self.all.iter().filter(|it| it.certificates.is_empty())
    }
}

/// The hostports of the last revision that was asked for. Only edges and certificates make them others.
#[derive(Default)]
pub(crate) struct KnownTlsHostports(Lock<(Weak<Snapshot>, Arc<TlsHostports>)>);

impl KnownTlsHostports {
    /// Returns the hostports of a state.
    pub(in crate::server) fn at(&self, snapshot: &Arc<Snapshot>) -> Arc<TlsHostports> {
        let mut last = self.0.lock();
        let is_other = |key: &Key| matches!(key.kind, Kind::HttpsEdge | Kind::TlsCertificate);
        let is_same = last
            .0
            .upgrade()
            .is_some_and(|state| state.revision == snapshot.revision || !snapshot.changed_since(&state).any(is_other));
        if !is_same {
            last.1 = Arc::new(TlsHostports::new(snapshot));
        }
        last.0 = Arc::downgrade(snapshot);
        Arc::clone(&last.1)
    }
}

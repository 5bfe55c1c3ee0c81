//! Which certificates the gateway can present for a host of an edge.

use foldhash::{HashMap, HashMapExt as _};

use super::view::GatewayCertificate;
use crate::model::{Claim, HttpsEdge, TlsCertificate};
use crate::server::prelude::*;
use crate::syntax::x509::CertificateFacts;
use crate::tenancy::certificates::{Presentation, names, presentation, wildcard_of};

/// A certificate that can be presented.
pub(super) struct Candidate<'s> {
    pub(super) id: &'s str,
    claim: Option<&'s Claim>,
    certificate: &'s TlsCertificate,
    facts: &'s CertificateFacts,
}

/// The certificates of a revision, by the names that they are valid for, in their normal form.
pub(super) struct Certificates<'s>(HashMap<String, Vec<Candidate<'s>>>);

impl<'s> Certificates<'s> {
    /// Finds the certificates of a revision.
    pub(super) fn new(snapshot: &'s Snapshot) -> Self {
        let mut by_name: HashMap<String, Vec<Candidate<'s>>> = HashMap::new();
        for entry in snapshot.newest_first(Kind::TlsCertificate, None, u64::MAX) {
            let Some(certificate) = entry.spec_as::<TlsCertificate>() else { continue };
            let Ok(facts) = certificate.certificate_pem.read().facts() else { continue };
            for name in names(certificate) {
                let (id, claim) = (entry.key.id.as_str(), entry.claim.as_deref());
                by_name.entry(name).or_default().push(Candidate { id, claim, certificate, facts });
            }
        }
        for candidates in by_name.values_mut() {
            candidates.sort_by(|one, other| {
                other.facts.not_before.cmp(&one.facts.not_before).then_with(|| one.id.cmp(other.id))
            });
            // A certificate can repeat a name in another spelling.
            candidates.dedup_by(|one, other| one.id == other.id);
        }
        Self(by_name)
    }

    /// Returns the certificates of an edge for a host in its normal form, in order of preference. `claim` is the edge's.
    pub(super) fn for_host(&self, host: &str, edge: &HttpsEdge, claim: Option<&Claim>) -> Vec<&Candidate<'s>> {
        let all = self.covering(host);
        let presented = |wanted| {
            let is_wanted =
                move |it: &&Candidate<'_>| presentation((edge, claim), (it.certificate, it.claim)) == wanted;
            all.iter().copied().filter(is_wanted).collect::<Vec<_>>()
        };
        let chosen = presented(Presentation::Chosen);
        if chosen.is_empty() { presented(Presentation::Fallback) } else { chosen }
    }

    /// Returns the certificates for a host in its normal form, whoever may present them: those with exactly this name first.
    pub(super) fn covering(&self, host: &str) -> Vec<&Candidate<'s>> {
        let wildcard = wildcard_of(host).filter(|wildcard| wildcard != host);
        let mut found: Vec<&Candidate<'s>> = self.0.get(host).into_iter().flatten().collect();
        let exact = found.len();
        for it in wildcard.and_then(|name| self.0.get(&name)).into_iter().flatten() {
            if found.iter().take(exact).all(|known| known.id != it.id) {
                found.push(it);
            }
        }
        found
    }
}

/// When a certificate is valid, in Unix time.
pub(super) struct CertificateValidity {
    /// The ID of the certificate.
    pub(super) id: String,
    from: i64,
    until: i64,
}

impl CertificateValidity {
    /// Whether the certificate is valid at a time.
    pub(super) fn is_valid(&self, now: Timestamp) -> bool {
        (self.from..=self.until).contains(&now.as_second())
    }
}

impl Candidate<'_> {
    /// When it is valid.
    pub(super) fn validity(&self) -> CertificateValidity {
        let second = |text: &str| text.parse::<Timestamp>().map(Timestamp::as_second).unwrap_or_default();
        let (from, until) = (second(&self.facts.not_before), second(&self.facts.not_after));
        CertificateValidity { id: self.id.to_owned(), from, until }
    }

    /// The form in which gateways get it.
    pub(super) fn form(&self) -> GatewayCertificate {
        GatewayCertificate {
            id: self.id.to_owned(),
            not_before: self.facts.not_before.clone(),
            not_after: self.facts.not_after.clone(),
            certificate_pem: self.certificate.certificate_pem.as_str().to_owned(),
            private_key_pem: self.certificate.private_key_pem.clone(),
        }
    }
}

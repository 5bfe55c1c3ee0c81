//! `expired-certificate`: a certificate that has expired.
//!
//! In a chain, the leaf counts, and its issuer unless that is a root: certificates further up often serve old clients,
//! which ignore expiry. In `ca_pem`, only the certificate that expires last counts, because during a rotation the old
//! authority is listed next to the new one.

use jiff::{civil::DateTime, tz::Offset};

use super::prelude::*;
use crate::syntax::x509::Link;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "expired-certificate",
    default: Level::Deny,
    summary: "A certificate has expired.",
    why: "Clients reject an expired certificate, and an expired authority rejects every client certificate, so every connection fails.",
    cure: "Renew the certificate and use the new one. The resource is replaced, because its PEM cannot change after creation.",
    check: LintCheck::Edge(check),
};

/// The certificates of a resource.
pub(in crate::lint) struct CertificateChain<'w> {
    pub(super) key: &'w Key,
    /// The field with the certificates.
    pub(super) field: &'static str,
    pub(in crate::lint) links: &'w [Link],
}

impl CertificateChain<'_> {
    /// Returns the certificates whose expiry counts.
    pub(super) fn last_to_end(&self) -> Vec<&Link> {
        self.deciding(|links| links.iter().max_by_key(|link| link.not_after))
    }

    /// Returns the certificates whose start of validity counts.
    pub(super) fn first_to_start(&self) -> Vec<&Link> {
        self.deciding(|links| links.iter().min_by_key(|link| link.not_before))
    }

    fn deciding(&self, of_authority: impl Fn(&[Link]) -> Option<&Link>) -> Vec<&Link> {
        if self.field == "ca_pem" {
            return of_authority(self.links).into_iter().collect();
        }
        let issuer = self.links.get(1).filter(|issuer| !issuer.is_self_issued);
        self.links.first().into_iter().chain(issuer).collect()
    }
}

/// All texts with certificates; an unreadable one has none and is reported elsewhere.
pub(in crate::lint) fn chains<'w>(view: &'w EdgeView<'_>) -> impl Iterator<Item = CertificateChain<'w>> {
    let certificates = view.all::<TlsCertificate>();
    let certificates = certificates.map(|(key, it)| (key, "certificate_pem", it.certificate_pem.read().links()));
    let authorities = view.all::<CertificateAuthority>().map(|(key, it)| (key, "ca_pem", it.ca_pem.read().links()));
    certificates.chain(authorities).map(|(key, field, links)| CertificateChain { key, field, links })
}

/// The current time in UTC, the time zone of certificates.
pub(super) fn now(view: &EdgeView<'_>) -> DateTime {
    Offset::UTC.to_datetime(view.now())
}

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let now = now(view);
    for chain in chains(view) {
        for link in chain.last_to_end().into_iter().filter(|link| link.not_after < now) {
            findings.report(chain.key, [chain.field], format!("{link} expired on {}", link.not_after.date()));
        }
    }
}

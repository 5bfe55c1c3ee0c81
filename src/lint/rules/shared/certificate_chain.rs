//! The certificates of a resource, and those whose validity counts.
//!
//! In a chain, the leaf counts, and its issuer unless that is a root: certificates further up often serve old clients,
//! which ignore expiry. In `ca_pem`, only the certificate that expires last counts, because during a rotation the old
//! authority is listed next to the new one.

use jiff::{civil::DateTime, tz::Offset};

use crate::lint::view::EdgeView;
use crate::model::{CertificateAuthority, Key, TlsCertificate};
use crate::syntax::x509::Link;

/// The certificates of a resource.
pub(in crate::lint) struct CertificateChain<'w> {
    pub(in crate::lint) key: &'w Key,
    /// The field with the certificates.
    pub(in crate::lint) field: &'static str,
    pub(in crate::lint) links: &'w [Link],
}

impl CertificateChain<'_> {
    /// Returns the certificates whose expiry counts.
    pub(in crate::lint) fn last_to_end(&self) -> Vec<&Link> {
        self.deciding(|links| links.iter().max_by_key(|link| link.not_after))
    }

    /// Returns the certificates whose start of validity counts.
    pub(in crate::lint) fn first_to_start(&self) -> Vec<&Link> {
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
pub(in crate::lint) fn now(view: &EdgeView<'_>) -> DateTime {
    Offset::UTC.to_datetime(view.now())
}

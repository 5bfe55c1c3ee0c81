//! Lint: a certificate whose time is over.
//!
//! Of a chain the leaf counts, and the one behind it unless that is a root. What stands further behind is often there
//! for old clients, which do not mind. Of an authority's text the certificate counts that lasts longest: while an
//! authority is exchanged, the old one stands beside the new one.

use jiff::{civil::DateTime, tz::Offset};

use super::{Findings, Level, Lint, World};
use crate::{
    model::{
        key::Key,
        kind::{certificate_authority::CertificateAuthority, tls_certificate::TlsCertificate},
    },
    x509::Link,
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "expired-certificate",
    default: Level::Deny,
    says: "A certificate has expired.",
    why: "No client accepts it, and no client certificate of an expired authority is accepted: every connection fails.",
    example: r#"apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: shop}
spec:
  certificate_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBAzCBtqADAgECAgEBMAUGAytlcDAbMRkwFwYDVQQDDBBzaG9wLmV4YW1wbGUu
    Y29tMB4XDTAxMDEwMTAwMDAwMFoXDTAyMDEwMTAwMDAwMFowGzEZMBcGA1UEAwwQ
    c2hvcC5leGFtcGxlLmNvbTAqMAUGAytlcAMhAK/CRzLF6GOKp4X+1ibjBrHmoTig
    DHrDq3nuH2I7uG5Fox8wHTAbBgNVHREEFDASghBzaG9wLmV4YW1wbGUuY29tMAUG
    AytlcANBAMxn3e2G4krbh4HOw7uXM59biuVbaKQS14cDaB73F1U+pWn8hXDOOuOF
    HB5mFwlzaxufZ2dA/G521h3M8kgFKQ0=
    -----END CERTIFICATE-----
  private_key_pem: |
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIK46Me6+1uOQZkERVwVvKekPaZ9Xbc3uT1/smsqfL9af
    -----END PRIVATE KEY-----
"#,
    cure: "Have the certificate issued again and give the new one. Its resource is replaced, since its PEM is fixed at creation.",
    check,
};

/// The certificates of one resource.
pub(super) struct Chain<'w> {
    pub(super) key: &'w Key,
    /// The field that holds them.
    pub(super) field: &'static str,
    pub(super) links: &'w [Link],
}

impl Chain<'_> {
    /// Those whose end is the end of the whole.
    pub(super) fn last_to_end(&self) -> Vec<&Link> {
        self.deciding(|links| links.iter().max_by_key(|link| link.not_after))
    }

    /// Those whose start is the start of the whole.
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

/// Every text with certificates; one that cannot be read has none, which is reported elsewhere.
pub(super) fn chains<'w>(world: &'w World<'_>) -> impl Iterator<Item = Chain<'w>> {
    let certificates = world.all::<TlsCertificate>();
    let certificates = certificates.map(|(key, it)| (key, "certificate_pem", it.certificate_pem.read().links()));
    let authorities = world.all::<CertificateAuthority>().map(|(key, it)| (key, "ca_pem", it.ca_pem.read().links()));
    certificates.chain(authorities).map(|(key, field, links)| Chain { key, field, links })
}

/// The time as certificates have it.
pub(super) fn now(world: &World<'_>) -> DateTime {
    Offset::UTC.to_datetime(world.now)
}

fn check(world: &World<'_>, findings: &mut Findings) {
    let now = now(world);
    for chain in chains(world) {
        for link in chain.last_to_end().into_iter().filter(|link| link.not_after < now) {
            findings.report(chain.key, [chain.field], format!("{link} expired on {}", link.not_after.date()));
        }
    }
}

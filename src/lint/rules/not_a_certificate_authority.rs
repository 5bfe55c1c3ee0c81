//! `not-a-certificate-authority`: a certificate in `ca_pem`, or after the leaf in `certificate_pem`, that does not belong
//! to a certificate authority.

use super::prelude::*;
use crate::syntax::x509::{self, Link};

pub(crate) static LINT: Lint = Lint {
    name: "not-a-certificate-authority",
    default: Level::Deny,
    summary: "The basic constraints of a certificate in `ca_pem`, or of one that signed another in `certificate_pem`, lack `CA:TRUE`, or its key usage does not include signing certificates.",
    why: "No certificate can be validated with it, so mutual TLS rejects everyone, and clients reject the chain of a server. Usually a server's or client's own certificate was used instead of its issuer's.",
    cure: "Use the certificate of the authority that issues the client certificates. `openssl x509 -in FILE -noout -ext basicConstraints` must print `CA:TRUE`, and `-ext keyUsage`, if it prints anything, `Certificate Sign`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for chain in chains(view).filter(|chain| chain.field == "ca_pem") {
        for link in chain.links {
            if let Some(reason) = fault(link) {
                findings.report(chain.key, ["ca_pem"], format!("{link} is not a certificate authority: {reason}"));
            }
        }
    }
    for (key, certificate) in view.all::<TlsCertificate>() {
        let links = certificate.certificate_pem.read().links();
        if links.iter().skip(1).all(|link| fault(link).is_none()) {
            continue;
        }
        // `incomplete-chain` reports a gap. The certificates behind it may not belong to the chain.
        let Ok(gap) = x509::unsigned_link(certificate.certificate_pem.as_str()) else { continue };
        let issuers = links.iter().take(gap.map_or(links.len(), |gap| gap + 1)).skip(1);
        // A root without extensions is trusted as such, or not at all.
        for link in issuers.filter(|link| !link.is_repeated && !link.is_self_issued) {
            if let Some(reason) = fault(link) {
                let message = format!("{link} signed a certificate, but is not a certificate authority: {reason}");
                findings.report(key, ["certificate_pem"], message).help = Some(CHAIN_HELP);
            }
        }
    }
}

/// How to fix a chain.
const CHAIN_HELP: &str =
    "Have the certificate issued by a certificate authority, and use the chain that comes with it.";

/// Returns why a certificate cannot sign others.
fn fault(link: &Link) -> Option<&'static str> {
    match (link.is_authority, link.may_sign_certificates) {
        (true, true) => None,
        (false, _) => Some("its basic constraints lack `CA:TRUE`"),
        (true, false) => Some("its key usage lacks `cert-sign`"),
    }
}

//! `incomplete-chain`: a certificate chain with a gap.
//!
//! A missing issuer of the last certificate is not detectable: it may be a root in the clients' trust stores. Where a
//! signature algorithm cannot be verified, matching issuer and subject names are enough.

use super::prelude::*;
use crate::syntax::x509;

pub(crate) static LINT: Lint = Lint {
    name: "incomplete-chain",
    default: Level::Warn,
    summary: "A certificate in a chain is not signed by the next one.",
    why: "Clients follow the chain from the leaf to a trusted root. Some fetch a missing intermediate and some do not, so the site works in one browser and fails in another, or in every script.",
    cure: "Put the leaf first, then the certificate that signed it, and so on; remove unrelated certificates. `openssl crl2pkcs7 -nocrl -certfile FILE | openssl pkcs7 -print_certs` prints the subject and issuer of each.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, certificate) in view.all::<TlsCertificate>() {
        let links = certificate.certificate_pem.read().links();
        if links.len() < 2 {
            continue;
        }
        let Ok(Some(gap)) = x509::unsigned_link(certificate.certificate_pem.as_str()) else { continue };
        if let (Some(link), Some(next)) = (links.get(gap), links.get(gap + 1)) {
            // `duplicate-entry` and `leaf-is-authority` report a repeated certificate and an authority before the leaf.
            let is_reversed = gap == 0 && link.is_authority && !next.is_authority;
            if next.is_repeated || is_reversed {
                continue;
            }
            findings.report(key, ["certificate_pem"], format!("{link} is not signed by the next certificate, {next}"));
        }
    }
}

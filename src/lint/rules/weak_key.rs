//! `weak-key`: a certificate whose cryptography modern clients reject.
//!
//! Clients trust a root without checking its signature, so its digest does not matter. A self-signed leaf is not a
//! root.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "weak-key",
    default: Level::Warn,
    summary: "A certificate has an RSA key under 2048 bits or a key on an uncommon curve, or is signed with MD2, MD5 or SHA-1.",
    why: "Modern clients reject all of them: short keys can be factored, broken digests let signatures be forged, and browsers only know the curves P-256, P-384 and P-521.",
    cure: "Reissue the certificate with an ECDSA key on P-256, or an RSA key of at least 2048 bits, and a SHA-256 signature.",
    check: LintCheck::Edge(check),
};

/// The minimum size of an RSA key.
const LEAST_BITS: usize = 2048;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for chain in chains(view) {
        for link in chain.links {
            if let Some(bits) = link.rsa_bits.filter(|bits| *bits < LEAST_BITS) {
                let message = format!("{link} has an RSA key of {bits} bits, less than {LEAST_BITS}");
                findings.report(chain.key, [chain.field], message);
            }
            if let Some(curve) = &link.uncommon_curve {
                let message = format!("{link} has a key on `{curve}`, a curve that common clients do not support");
                findings.report(chain.key, [chain.field], message);
            }
            let is_leaf = link.place == 1 && chain.field == "certificate_pem";
            if let Some(digest) = link.broken_digest.filter(|_| is_leaf || !link.is_self_issued) {
                findings.report(chain.key, [chain.field], format!("{link} is signed with {digest}, a broken digest"));
            }
        }
    }
}

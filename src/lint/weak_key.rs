//! `weak-key`: a certificate whose cryptography modern clients reject.
//!
//! Clients trust a root without checking its signature, so its digest does not matter. A self-signed leaf is not a
//! root.

use super::{EdgeView, Findings, Level, Lint, LintCheck, expired_certificate::chains};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "weak-key",
    needs_whole: false,
    default: Level::Warn,
    summary: "A certificate has an RSA key under 2048 bits or a key on an uncommon curve, or is signed with MD2, MD5 or SHA-1.",
    why: "Modern clients reject all of them: short keys can be factored, broken digests let signatures be forged, and browsers only know the curves P-256, P-384 and P-521.",
    example: r#"apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: shop}
spec:
  certificate_pem: |
    -----BEGIN CERTIFICATE-----
    MIIByzCCATSgAwIBAgIBATANBgkqhkiG9w0BAQsFADAbMRkwFwYDVQQDDBBzaG9w
    LmV4YW1wbGUuY29tMB4XDTI2MDEwMTAwMDAwMFoXDTQ2MDEwMTAwMDAwMFowGzEZ
    MBcGA1UEAwwQc2hvcC5leGFtcGxlLmNvbTCBnzANBgkqhkiG9w0BAQEFAAOBjQAw
    gYkCgYEAsfnZy3eI4IbGJ3fsqr7+QuT6Bm9QB2YV9XnvaP3baXhT9Ohx716VE56s
    nVkMWkK9p/zMrz+4SrS8GkGo3Ez/bPSQ5QDd28wKfTxGYD9qEkSgkh3h1+CEH691
    ULX9CGdPbW2eDKUeVkofJ3c2S23hwvgazEw8USC6DwhRKCuzEKUCAwEAAaMfMB0w
    GwYDVR0RBBQwEoIQc2hvcC5leGFtcGxlLmNvbTANBgkqhkiG9w0BAQsFAAOBgQAP
    uCoC/yCjv1g1vdKFTkLeV23AG2kHW/giCCyGA6qzfVyWziKw4H7v1rq2H+K4lwxV
    6YwQkuOS0A2rA2axTQ84YAlzfLNPXCnlKDHHrrw2GYZ2943mfqQ2tBuhCBZjWPOp
    9LmmM0erdo5Kl/eSbeFMlEn8DoTyX3ij6CcDr9qrOA==
    -----END CERTIFICATE-----
  private_key_pem: |
    -----BEGIN PRIVATE KEY-----
    MIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBALH52ct3iOCGxid3
    7Kq+/kLk+gZvUAdmFfV572j922l4U/Toce9elROerJ1ZDFpCvaf8zK8/uEq0vBpB
    qNxM/2z0kOUA3dvMCn08RmA/ahJEoJId4dfghB+vdVC1/QhnT21tngylHlZKHyd3
    Nktt4cL4GsxMPFEgug8IUSgrsxClAgMBAAECgYEAhz1ciogisrq3CHbQmE7Z1us4
    MnuTTIv+U7J8gkOk3thYs9mN+l7c2TPR5x8ri8r7YxNuVh0NZXdBGJKcRgsca+Hw
    yWy7GMlKMS8SHe6baP4bbq5D0x9wNv38o7vu7IDkc1ARn5RZ0ctGDLCqvWsb1JjT
    g7DOim8OKPTM+7XKgWECQQDhE9KE5IhyYAIpxYAW7L0j6EoA9MrAEqK/6HSxnVMt
    VwMg/vHSI5pZc77TnwGx29KfF3EGJM3qjAK6oGf6DnW3AkEAym1tduRydX3uIdNt
    ilvmfr+zW2GXScwibhJXOR94HcuRYq4TbqDi+3HquPAA33dSE6Kw1Offq/+eUkQO
    W3nMgwJAMMq6RULBbYHwlhuRY+bYLbOKb2Chnzeq/k0nFuXTBS4qqHl79KDxMdkM
    khWTKXpM014ii0FpPiIx6UEiqSt/SwJAC7czm6rzGOu16Y1EDLru5y0PI13NlL7U
    y0wSckLo/8h1XKG4jDGRkX3xWMzDMCvGu04yL9BPuLOtpRM9RXwSIwJBALDzzZEl
    RbTVA8IAEXUN0jMcQwSe9KLogi5t2gSiZZgH4ZdHGXaTdLougs/13MSVJcrS3Ng3
    GzkwNOSWZW/MGi4=
    -----END PRIVATE KEY-----
"#,
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

//! `not-a-certificate-authority`: a certificate in `ca_pem` that does not belong to a certificate authority.

use super::{Findings, Level, Lint, World, expired_certificate::chains};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "not-a-certificate-authority",
    needs_whole: false,
    default: Level::Deny,
    summary: "The basic constraints of a certificate in `ca_pem` lack `CA:TRUE`, or its key usage does not include signing certificates.",
    why: "No client certificate can be validated with it, so mutual TLS rejects everyone. Usually a server's or client's own certificate was used instead of its issuer's.",
    example: r#"apiVersion: edgewright/v1
kind: CertificateAuthority
metadata: {name: partners}
spec:
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    MIH4MIGroAMCAQICAQEwBQYDK2VwMB0xGzAZBgNVBAMMEmNsaWVudC5leGFtcGxl
    LmNvbTAeFw0yNjAxMDEwMDAwMDBaFw00NjAxMDEwMDAwMDBaMB0xGzAZBgNVBAMM
    EmNsaWVudC5leGFtcGxlLmNvbTAqMAUGAytlcAMhACcwcMp2rHc+KrwbmxqJJXD5
    PHPTzYm50ccLebzZrJPsoxAwDjAMBgNVHRMBAf8EAjAAMAUGAytlcANBAN4EJQjS
    vEI/9k/DSM7QDup0JoMPXma0AtYcr7f+P5rj5Fx3V0RykezTupv+/t9SOe9RY/G9
    +bn+GWfEYumcbwc=
    -----END CERTIFICATE-----
"#,
    cure: "Use the certificate of the authority that issues the client certificates. `openssl x509 -in FILE -noout -ext basicConstraints` must print `CA:TRUE`, and `-ext keyUsage`, if it prints anything, `Certificate Sign`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for chain in chains(world).filter(|chain| chain.field == "ca_pem") {
        for link in chain.links {
            let reason = match (link.is_authority, link.may_sign_certificates) {
                (true, true) => continue,
                (false, _) => "its basic constraints lack `CA:TRUE`",
                (true, false) => "its key usage lacks `cert-sign`",
            };
            findings.report(chain.key, ["ca_pem"], format!("{link} is not a certificate authority: {reason}"));
        }
    }
}

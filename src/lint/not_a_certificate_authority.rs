//! Lint: an authority that is none.

use super::{Findings, Level, Lint, World, expired_certificate::chains};

/// The lint.
pub static LINT: Lint = Lint {
    name: "not-a-certificate-authority",
    default: Level::Deny,
    says: "A certificate in `ca_pem` has no `CA:TRUE` in its basic constraints.",
    why: "No client certificate can be validated with it, so mutual TLS refuses everyone. Mostly it is a server's or client's own certificate that was taken for that of its issuer.",
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
    cure: "Give the certificate of the authority that issues the client certificates. `openssl x509 -in FILE -noout -ext basicConstraints` must print `CA:TRUE`.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for chain in chains(world).filter(|chain| chain.field == "ca_pem") {
        for link in chain.links.iter().filter(|link| !link.is_authority) {
            let message = format!("{link} is no authority: its basic constraints do not say `CA:TRUE`");
            findings.report(chain.key, ["ca_pem"], message);
        }
    }
}

//! `leaf-is-authority`: a server certificate that is a certificate authority.

use super::{EdgeView, Findings, Level, Lint, LintCheck, expired_certificate::chains};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "leaf-is-authority",
    needs_whole: false,
    default: Level::Warn,
    summary: "The first certificate in `certificate_pem` is a certificate authority.",
    why: "Some clients reject a server certificate with `CA:TRUE`, and whoever gets its key can issue certificates for any name. Either the chain is in the wrong order, or the certificate is self-signed: `openssl req -x509` adds `CA:TRUE` by default.",
    example: r#"apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: shop}
spec:
  certificate_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBMzCB5qADAgECAgEBMAUGAytlcDAbMRkwFwYDVQQDDBBzaG9wLmV4YW1wbGUu
    Y29tMB4XDTI2MDEwMTAwMDAwMFoXDTQ2MDEwMTAwMDAwMFowGzEZMBcGA1UEAwwQ
    c2hvcC5leGFtcGxlLmNvbTAqMAUGAytlcAMhADvgX1p6Hg8fwsX2UQCczIkUktI4
    j37z1ypbMcBy79y+o08wTTAPBgNVHRMBAf8EBTADAQH/MBsGA1UdEQQUMBKCEHNo
    b3AuZXhhbXBsZS5jb20wHQYDVR0OBBYEFOgOuHkwegZ3yI7SpLZrfNFZCj6SMAUG
    AytlcANBAMkUFLV/M1ad3RV8p8BptxJBtEID/TTiJsPcVTRShv/hnmIaVpMh4oZG
    1jqZYMRNUyZLZi5YgUCuOLjiUMxIEws=
    -----END CERTIFICATE-----
  private_key_pem: |
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEILyWZltAqAq1VlVzDqdlYIzk5CgATuAVQuRHIJvogNvK
    -----END PRIVATE KEY-----
"#,
    cure: "Put the server's certificate first. Issue a self-signed one with `-addext basicConstraints=critical,CA:FALSE`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for chain in chains(view).filter(|chain| chain.field == "certificate_pem") {
        if let Some(leaf) = chain.links.first().filter(|leaf| leaf.is_authority) {
            let message = format!("{leaf} is a certificate authority, not a server certificate");
            findings.report(chain.key, [chain.field], message);
        }
    }
}

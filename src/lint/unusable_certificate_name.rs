//! `unusable-certificate-name`: a wildcard name in a certificate that no client accepts.

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::{model::kind::tls_certificate::TlsCertificate, syntax::text::printable};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unusable-certificate-name",
    needs_whole: false,
    default: Level::Warn,
    summary: "A subject alternative name of a certificate has a wildcard that is not its whole first label.",
    why: "Clients accept a wildcard only as the whole first label of a name, and it stands for one label (RFC 9525, \
          section 6.3). Names such as `*` and `*.*.example.com` match no host.",
    example: r#"apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: shop}
spec:
  certificate_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBJjCB2aADAgECAgEBMAUGAytlcDAbMRkwFwYDVQQDDBBzaG9wLmV4YW1wbGUu
    Y29tMB4XDTI2MDEwMTAwMDAwMFoXDTQ2MDEwMTAwMDAwMFowGzEZMBcGA1UEAwwQ
    c2hvcC5leGFtcGxlLmNvbTAqMAUGAytlcAMhACkT2GbF/8vlYE+GfJT9Rv77vfLi
    uMW2x5UlwkUdSsbJo0IwQDA+BgNVHREENzA1ggEqgg8qLiouZXhhbXBsZS5jb22C
    EHNob3AuZXhhbXBsZS5jb22CDSouZXhhbXBsZS5jb20wBQYDK2VwA0EArO0Wd3PX
    h0grd1Rz6T5YdMSH3gyit/q+kUjTxU1Mw0uuTLknQJllHsu0tYPQ9wqf+kDlGno3
    HquslA7+2fjgAA==
    -----END CERTIFICATE-----
  private_key_pem: |
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIPqVEwBbmZ4ivy0iPleIRc60KGCTyceunOY6xJqkRcBG
    -----END PRIVATE KEY-----
"#,
    cure: "Reissue the certificate with one name for each level, such as `*.example.com` and `*.shop.example.com`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, certificate) in view.all::<TlsCertificate>() {
        let Ok(facts) = certificate.certificate_pem.read().facts() else { continue };
        for name in facts.subject_alternative_names.dns_names.iter().filter(|name| is_unusable(name)) {
            let message = format!("no client accepts the subject alternative name `{}`", printable(name));
            findings.report(key, ["certificate_pem"], message);
        }
    }
}

fn is_unusable(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    rest.is_empty() || rest.contains('*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_the_whole_first_label() {
        for bad in ["*", "*.", "*.*.example.com", "shop.*.example.com", "w*.example.com"] {
            assert!(is_unusable(bad), "{bad}");
        }
        for good in ["shop.example.com", "*.example.com", "*.xn--bcher-kva.example"] {
            assert!(!is_unusable(good), "{good}");
        }
    }
}

//! `wrong-certificate-purpose`: a certificate whose extended key usage excludes what it is used for.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "wrong-certificate-purpose",
    default: Level::Warn,
    summary: "The extended key usage of a `certificate_pem` excludes servers, or that of a `ca_pem` excludes clients.",
    why: "A certificate with an extended key usage is valid only for the purposes that it lists (RFC 5280, section \
          4.2.1.12). Clients reject a server certificate without `serverAuth`, and many TLS libraries reject client \
          certificates from an authority without `clientAuth`.",
    cure: "Reissue the certificate with the purpose. `openssl x509 -in FILE -noout -ext extendedKeyUsage` prints its \
           purposes.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, certificate) in view.all::<TlsCertificate>() {
        let facts = certificate.certificate_pem.read().facts();
        if facts.is_ok_and(|facts| excludes(&facts.extended_key_usages, "server-auth")) {
            findings.report(key, ["certificate_pem"], "the certificate's extended key usage lacks `serverAuth`");
        }
    }
    for (key, authority) in view.all::<CertificateAuthority>() {
        if authority.ca_pem.read().facts().is_some_and(|facts| excludes(&facts.extended_key_usages, "client-auth")) {
            findings.report(key, ["ca_pem"], "the authority's extended key usage lacks `clientAuth`");
        }
    }
}

/// Whether a certificate is limited to other purposes. Without an extended key usage, it has every purpose.
fn excludes(usages: &[String], purpose: &str) -> bool {
    !usages.is_empty() && !usages.iter().any(|usage| usage == purpose || usage == "any")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_list_of_other_purposes_excludes_one() {
        let excludes = |usages: &[&str]| {
            let usages: Vec<String> = usages.iter().map(|usage| (*usage).to_owned()).collect();
            excludes(&usages, "server-auth")
        };
        assert!(excludes(&["client-auth"]) && excludes(&["code-signing", "1.2.3"]));
        assert!(!excludes(&[]) && !excludes(&["any"]) && !excludes(&["client-auth", "server-auth"]));
    }
}

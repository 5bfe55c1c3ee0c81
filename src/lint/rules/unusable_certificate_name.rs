//! `unusable-certificate-name`: a wildcard name in a certificate that no client accepts.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "unusable-certificate-name",
    default: Level::Warn,
    summary: "A subject alternative name of a certificate has a wildcard that is not its whole first label.",
    why: "Clients accept a wildcard only as the whole first label of a name, and it stands for one label (RFC 9525, \
          section 6.3). Names such as `*` and `*.*.example.com` match no host.",
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

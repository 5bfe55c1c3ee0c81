//! `common-name-only`: a host name that a certificate has only as its common name, or a certificate without any.

use super::{certificate_does_not_cover_hostport::Names, prelude::*};
use crate::model::diagnostics::check::parse_hostport;

pub(crate) static LINT: Lint = Lint {
    name: "common-name-only",
    default: Level::Warn,
    summary: "A certificate has no subject alternative names, or its common name is a host name that they do not \
              cover.",
    why: "Clients compare the host only with the subject alternative names (RFC 9525), so the certificate is not valid for the host in its common name.",
    cure: "Reissue the certificate with each host as a subject alternative name. If the host is not served, use \
           another common name.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, certificate) in view.all::<TlsCertificate>() {
        let Ok(facts) = certificate.certificate_pem.read().facts() else { continue };
        let common_name = facts.subject_common_name.as_str();
        let alternatives = &facts.subject_alternative_names;
        // `leaf-is-authority` reports a chain in the wrong order.
        let is_authority = certificate.certificate_pem.read().links().first().is_some_and(|leaf| leaf.is_authority);
        if alternatives.dns_names.is_empty() && alternatives.ips.is_empty() && !is_host(common_name) && !is_authority {
            let message = "the certificate has no subject alternative name, so it is valid for no host";
            findings.report(key, ["certificate_pem"], message);
            continue;
        }
        let mut names = Names::default();
        names.add(&facts.subject_alternative_names);
        if is_host(common_name) && !names.cover(&host_name(common_name)) {
            let message =
                format!("`{}` is the common name, but not a subject alternative name", printable(common_name));
            findings.report(key, ["certificate_pem"], message);
        }
    }
}

/// Whether a common name is a host, rather than the name of a person or a device.
fn is_host(name: &str) -> bool {
    name.contains('.') && parse_hostport(&format!("{name}:443")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_differ_from_other_names() {
        for host in ["shop.example.com", "*.example.com", "192.0.2.1"] {
            assert!(is_host(host), "{host}");
        }
        for other in ["", "localhost", "Example Shop Inc.", "jo@example.com", "Demo CA v1.0"] {
            assert!(!is_host(other), "{other}");
        }
    }
}

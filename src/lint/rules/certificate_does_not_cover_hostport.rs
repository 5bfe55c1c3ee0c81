//! `certificate-does-not-cover-hostport`: a hostport that no declared certificate is valid for.
//!
//! Only subject alternative names count, as in browsers, which ignore the common name. Manifests without any
//! certificate are skipped: their certificates are managed elsewhere. So are edges that pass TLS through, and port 80,
//! which is plain HTTP.

use std::net::IpAddr;

use foldhash::HashSet;

use super::prelude::*;
use crate::model::rules;
use crate::model::traffic::PLAIN_HTTP;
use crate::syntax::x509::SubjectAlternativeNames;

pub(crate) static LINT: Lint = Lint {
    name: "certificate-does-not-cover-hostport",
    default: Level::Warn,
    summary: "No certificate in the manifests covers a hostport.",
    why: "Clients reject a certificate for another name. A wildcard covers exactly one label: `*.example.com` covers \
          neither `example.com` nor `a.b.example.com`.",
    cure: "Declare a certificate whose subject alternative names include the host. If the certificate is managed elsewhere, allow this lint for the edge with an annotation.",
    check: LintCheck::Source(check),
};

/// The names that certificates are valid for.
#[derive(Default)]
pub(super) struct Names {
    /// Names in their normal form, wildcards included.
    exact: HashSet<String>,
    /// The wildcards without `*.`, so that looking one up needs no new text.
    wildcards: HashSet<String>,
}

impl Names {
    pub(super) fn add(&mut self, names: &SubjectAlternativeNames) {
        for name in names.dns_names.iter().chain(&names.ips).map(|name| host_name(name)) {
            self.wildcards.extend(name.strip_prefix("*.").map(str::to_owned));
            self.exact.insert(name);
        }
    }

    /// Whether a normalized host is one of the names, or covered by a wildcard.
    pub(super) fn cover(&self, host: &str) -> bool {
        let is_under_wildcard = || host.split_once('.').is_some_and(|(_, rest)| self.wildcards.contains(rest));
        self.exact.contains(host) || (is_under_wildcard() && host.parse::<IpAddr>().is_err())
    }
}

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let mut names = Names::default();
    let mut certificates = view.all::<TlsCertificate>().peekable();
    if !view.is_whole() || certificates.peek().is_none() {
        return;
    }
    for (_, certificate) in certificates {
        // The names of an unreadable certificate are unknown; it is reported elsewhere.
        let Ok(facts) = certificate.certificate_pem.read().facts() else { return };
        names.add(&facts.subject_alternative_names);
    }
    for (key, edge) in view.all::<HttpsEdge>().filter(|(_, edge)| !rules::passes_through(edge)) {
        for (index, text, (host, port)) in edge.addresses() {
            if port != PLAIN_HTTP && !names.cover(&host) {
                let message = format!("no certificate in the manifests covers `{}`", printable(text));
                findings.report(key, ("hostports", index), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_covers_itself_and_a_wildcard_one_label() {
        let text = |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
        let mut names = Names::default();
        let dns_names = text(&["Shop.example.com", "*.example.org"]);
        names.add(&SubjectAlternativeNames { dns_names, ips: text(&["192.0.2.7", "2001:db8::1"]) });
        let covered = ["SHOP.example.com", "a.example.org", "*.example.org", "192.0.2.7", "[2001:DB8::1]"];
        for host in covered {
            assert!(names.cover(&host_name(host)), "{host}");
        }
        let bare =
            ["a.shop.example.com", "example.com", "example.org", "a.b.example.org", "*.example.com", "192.0.2.8"];
        for host in bare {
            assert!(!names.cover(&host_name(host)), "{host}");
        }
    }
}

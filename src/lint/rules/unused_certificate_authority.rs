//! `unused-certificate-authority`: a certificate authority that no edge uses.

use foldhash::HashSet;

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "unused-certificate-authority",
    default: Level::Warn,
    summary: "No edge of this source or of another one uses a CertificateAuthority in `mutual_tls`.",
    why: "A certificate authority only validates client certificates. An unused one is a leftover, or an edge lacks \
          the `mutual_tls` that it should have.",
    cure: "Add the authority to the `certificate_authority_ids` of an edge's `mutual_tls`, or remove it.",
    check: LintCheck::Source(check),
};

fn check(view: &HostView<'_>, findings: &mut Findings) {
    if !view.is_whole() || view.all::<CertificateAuthority>().next().is_none() {
        return;
    }
    // A team that shares its authority may have no edge itself.
    let others = view.of_others::<HttpsEdge>().map(|(_, edge, _)| edge);
    let edges = view.all::<HttpsEdge>().map(|(_, edge)| edge).chain(others);
    let edges = edges.filter_map(|edge| edge.mutual_tls.as_ref());
    let named: HashSet<&str> = edges.flat_map(|tls| &tls.certificate_authority_ids).map(String::as_str).collect();
    let authorities = view.all::<CertificateAuthority>().map(|(key, _)| key);
    for key in authorities.filter(|key| !named.contains(key.id.as_str())) {
        let name = view.authority_name(key.id.as_str()).unwrap_or_default();
        findings.report(key, Path::root(), format!("no edge uses the certificate authority `{name}`")).target =
            FaultTarget::Key;
    }
}

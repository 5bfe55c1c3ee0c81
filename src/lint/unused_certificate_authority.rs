//! `unused-certificate-authority`: a certificate authority that no edge uses.

use foldhash::HashSet;

use super::{EstateView, Findings, Level, Lint, LintCheck};
use crate::model::{
    diagnostics::fault::{Aim, Path},
    kind::{certificate_authority::CertificateAuthority, https_edge::HttpsEdge},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unused-certificate-authority",
    needs_whole: true,
    default: Level::Warn,
    summary: "No edge of this source or of another one uses a CertificateAuthority in `mutual_tls`.",
    why: "A certificate authority only serves to validate client certificates. An unused one is a leftover, or an edge \
          lacks the `mutual_tls` that it is supposed to have.",
    example: "\
apiVersion: edgewright/v1
kind: CertificateAuthority
metadata: {name: partners}
spec:
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBcDCCARagAwIBAgIUNoW7bRJ41bykGyYywRk60nGCVMwwCgYIKoZIzj0EAwIw
    FTETMBEGA1UEAwwKRml4dHVyZSBDQTAgFw0yNTAxMDEwMDAwMDBaGA8yMTI1MDEw
    MTAwMDAwMFowFTETMBEGA1UEAwwKRml4dHVyZSBDQTBZMBMGByqGSM49AgEGCCqG
    SM49AwEHA0IABMNzWBSmZ7zjaQnG2k8hv4rP0zNcodSnX0W4UUub/3MS9Uwf6N4t
    GyyCvJx8Nu3YH93f1MVY5h1U0YbHZrufA2qjQjBAMA8GA1UdEwEB/wQFMAMBAf8w
    DgYDVR0PAQH/BAQDAgEGMB0GA1UdDgQWBBSmKwT8HitO3BDUY29joittEVZi5zAK
    BggqhkjOPQQDAgNIADBFAiBQxflrgA5n3+ELZ1fY1T3lKlbDRUFHEVTv0HmrqH4Q
    CQIhANk6dQ8SF/bjrZwbVkreAg030Pl8kVYiHrhfsvXcvuWC
    -----END CERTIFICATE-----
",
    cure: "Add the authority to the `certificate_authority_ids` of an edge's `mutual_tls`, or remove it.",
    check: LintCheck::Estate(check),
};

fn check(view: &EstateView<'_>, findings: &mut Findings) {
    if view.all::<CertificateAuthority>().next().is_none() {
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
        findings.report(key, Path::root(), format!("no edge uses the certificate authority `{name}`")).aim = Aim::Key;
    }
}

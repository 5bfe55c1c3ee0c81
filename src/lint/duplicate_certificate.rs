//! `duplicate-certificate`: two resources with the same certificates.

use foldhash::HashMap;

use super::{EstateView, Findings, Level, Lint, LintCheck, Subject};
use crate::model::{
    diagnostics::fault::Path,
    key::Key,
    kind::{certificate_authority::CertificateAuthority, tls_certificate::TlsCertificate},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "duplicate-certificate",
    needs_whole: false,
    default: Level::Warn,
    summary: "Two TlsCertificates or two CertificateAuthorities have the same PEM.",
    why: "The second resource adds nothing, and one of them is easily forgotten at the next renewal. Often the file of \
          another certificate was meant.",
    example: r#"apiVersion: edgewright/v1
kind: CertificateAuthority
metadata: {name: partners}
spec:
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    MIHrMIGeoAMCAQICAQEwBQYDK2VwMBUxEzARBgNVBAMMClBhcnRuZXIgQ0EwHhcN
    MjYwMTAxMDAwMDAwWhcNNDYwMTAxMDAwMDAwWjAVMRMwEQYDVQQDDApQYXJ0bmVy
    IENBMCowBQYDK2VwAyEAKRPYZsX/y+VgT4Z8lP1G/vu98uK4xbbHlSXCRR1Kxsmj
    EzARMA8GA1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EAarLI4Fuu/xi3rCiznJwj7m5i
    8zOUZsihTqOm1qExAjgWe6DDzt+jticoCi6/Ev0tDQrIDYgVkm8IByLdyNqYAA==
    -----END CERTIFICATE-----
---
apiVersion: edgewright/v1
kind: CertificateAuthority
metadata: {name: suppliers}
spec:
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    MIHrMIGeoAMCAQICAQEwBQYDK2VwMBUxEzARBgNVBAMMClBhcnRuZXIgQ0EwHhcN
    MjYwMTAxMDAwMDAwWhcNNDYwMTAxMDAwMDAwWjAVMRMwEQYDVQQDDApQYXJ0bmVy
    IENBMCowBQYDK2VwAyEAKRPYZsX/y+VgT4Z8lP1G/vu98uK4xbbHlSXCRR1Kxsmj
    EzARMA8GA1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EAarLI4Fuu/xi3rCiznJwj7m5i
    8zOUZsihTqOm1qExAjgWe6DDzt+jticoCi6/Ev0tDQrIDYgVkm8IByLdyNqYAA==
    -----END CERTIFICATE-----
"#,
    cure: "Remove one of the two resources, or use the other certificate.",
    check: LintCheck::Estate(check),
};

fn check(view: &EstateView<'_>, findings: &mut Findings) {
    let certificates = view.in_order::<TlsCertificate>().into_iter();
    repeated(certificates.map(|(key, it)| (key, it.certificate_pem.as_str())), "certificate_pem", findings);
    let authorities = view.in_order::<CertificateAuthority>().into_iter();
    repeated(authorities.map(|(key, it)| (key, it.ca_pem.as_str())), "ca_pem", findings);
}

/// Reports every text that a resource before has too.
fn repeated<'w>(texts: impl Iterator<Item = (&'w Key, &'w str)>, field: &'static str, findings: &mut Findings) {
    let mut first: HashMap<&str, &Key> = HashMap::default();
    for (key, text) in texts.filter(|(_, text)| !text.trim().is_empty()) {
        let earlier = *first.entry(text.trim()).or_insert(key);
        if earlier != key {
            let message = format!("another {} has the same `{field}`", key.kind.info().name);
            findings.report(key, [field], message).related =
                Some((Subject::Resource(earlier.clone()), Path::root().join(field), "the other one"));
        }
    }
}

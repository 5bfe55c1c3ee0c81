//! `not-yet-valid-certificate`: a certificate whose validity has not started.

use super::{
    EdgeView, Findings, Level, Lint, LintCheck,
    expired_certificate::{chains, now},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "not-yet-valid-certificate",
    needs_whole: false,
    default: Level::Warn,
    summary: "A certificate is not valid yet.",
    why: "Clients reject the certificate until its validity starts. Often the clock of the issuing machine was wrong.",
    example: r#"apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: shop}
spec:
  certificate_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBBzCBuqADAgECAgEBMAUGAytlcDAbMRkwFwYDVQQDDBBzaG9wLmV4YW1wbGUu
    Y29tMCIYDzIxOTkwMTAxMDAwMDAwWhgPMjIwMDAxMDEwMDAwMDBaMBsxGTAXBgNV
    BAMMEHNob3AuZXhhbXBsZS5jb20wKjAFBgMrZXADIQBDO6tMlDe7lTc0MbsOJQLZ
    yIfeyMzzW+xVxOimSHI7TKMfMB0wGwYDVR0RBBQwEoIQc2hvcC5leGFtcGxlLmNv
    bTAFBgMrZXADQQATNFovzFGwemEI9zKkjqc4eflWMU9eqD8F1Thw5bFucF17eyNM
    4cgISu71yMz3tz4Z9yA+ZhX2XNa5ZoDPu3wE
    -----END CERTIFICATE-----
  private_key_pem: |
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIDeTGjVUN/oi2RLznsbPt9wTL8HlR08HFKdVo+Wvow3B
    -----END PRIVATE KEY-----
"#,
    cure: "Deploy the certificate after its `not_before`, or reissue it.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let now = now(view);
    for chain in chains(view) {
        for link in chain.first_to_start().into_iter().filter(|link| link.not_before > now) {
            findings.report(chain.key, [chain.field], format!("{link} is not valid before {}", link.not_before.date()));
        }
    }
}

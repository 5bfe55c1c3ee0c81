//! `expiring-certificate`: a certificate that expires soon.
//!
//! The same certificates of a chain count as for `expired-certificate`.

use jiff::SignedDuration;

use super::{
    EdgeView, Findings, Level, Lint, LintCheck,
    expired_certificate::{chains, now},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "expiring-certificate",
    needs_whole: false,
    default: Level::Warn,
    summary: "A certificate expires within 30 days.",
    why: "Every connection that uses an expired certificate fails. Automatic renewal happens earlier than this, so it may have stopped working.",
    example: r#"apiVersion: edgewright/v1
kind: TlsCertificate
metadata: {name: shop}
spec:
  certificate_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBAzCBtqADAgECAgEBMAUGAytlcDAbMRkwFwYDVQQDDBBzaG9wLmV4YW1wbGUu
    Y29tMB4XDTI5MDEwMTAwMDAwMFoXDTMwMDExNTAwMDAwMFowGzEZMBcGA1UEAwwQ
    c2hvcC5leGFtcGxlLmNvbTAqMAUGAytlcAMhADzhlzyIGFT7rQhiQHUIHLhQykzZ
    yGPU6Lul5AEVk03zox8wHTAbBgNVHREEFDASghBzaG9wLmV4YW1wbGUuY29tMAUG
    AytlcANBAMX2jkJdx/cDyPzVTARWrv8ftBdqLOE0vL/fE7f0p/IUOBTkESUOaGtr
    D9WvFEY515hxqjsxiLovIkMyHPQRtQo=
    -----END CERTIFICATE-----
  private_key_pem: |
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIA/T9oIHmHJMk5NR2CbTtbeeY9ofM3k1sHmoQBPPHQc9
    -----END PRIVATE KEY-----
"#,
    cure: "Renew the certificate, and replace it before it expires.",
    check: LintCheck::Edge(check),
};

/// How many days before expiry the lint warns, unless the configuration file sets another number.
pub(crate) const DAYS: u32 = 30;

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let now = now(view);
    let notice = SignedDuration::from_hours(i64::from(view.expiry_days()) * 24);
    for chain in chains(view) {
        for link in chain.last_to_end() {
            let left = link.not_after.duration_since(now);
            if !left.is_negative() && left <= notice {
                let days = left.as_hours() / 24;
                let plural = if days == 1 { "" } else { "s" };
                let message = format!("{link} expires on {}, in {days} day{plural}", link.not_after.date());
                findings.report(chain.key, [chain.field], message);
            }
        }
    }
}

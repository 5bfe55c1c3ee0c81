//! `old-tls-version`: an edge that accepts a version of TLS that is no longer secure.

use super::prelude::*;
use crate::model::module::tls_termination::TlsVersion;

pub(crate) static LINT: Lint = Lint {
    name: "old-tls-version",
    default: Level::Warn,
    summary: "The `min_version` of `tls_termination` is `1.0` or `1.1`.",
    why: "TLS 1.0 and 1.1 are deprecated and must not be used (RFC 8996): they depend on SHA-1 and lack modern \
          ciphers. Every browser since 2013 supports TLS 1.2.",
    cure: "Set `min_version` to `1.2` or `1.3`, or remove it: the default is `1.2`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge) in view.all::<HttpsEdge>() {
        let version = match edge.tls_termination.as_ref().and_then(|module| module.min_version) {
            Some(TlsVersion::V1_0) => "1.0",
            Some(TlsVersion::V1_1) => "1.1",
            Some(TlsVersion::V1_2 | TlsVersion::V1_3) | None => continue,
        };
        let message = format!("TLS {version} must not be used (RFC 8996)");
        findings.report(key, ["tls_termination", "min_version"], message);
    }
}

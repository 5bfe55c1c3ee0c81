//! `expired-certificate`: a certificate that has expired.

use super::prelude::*;
use super::shared::certificate_chain::now;

pub(crate) static LINT: Lint = Lint {
    name: "expired-certificate",
    default: Level::Deny,
    summary: "A certificate has expired.",
    why: "Clients reject an expired certificate, and an expired authority rejects every client certificate, so every connection fails.",
    cure: "Renew the certificate and use the new one. The resource is replaced, because its PEM cannot change after creation.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let now = now(view);
    for chain in chains(view) {
        for link in chain.last_to_end().into_iter().filter(|link| link.not_after < now) {
            findings.report(chain.key, [chain.field], format!("{link} expired on {}", link.not_after.date()));
        }
    }
}

//! `not-yet-valid-certificate`: a certificate whose validity has not started.

use super::prelude::*;
use super::shared::certificate_chain::now;

pub(crate) static LINT: Lint = Lint {
    name: "not-yet-valid-certificate",
    default: Level::Warn,
    summary: "A certificate is not valid yet.",
    why: "Clients reject the certificate until its validity starts. Often the clock of the issuing machine was wrong.",
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

//! `expired-saml-metadata`: SAML metadata whose validity has ended.

use super::{prelude::*, saml_metadata::declared};

pub(crate) static LINT: Lint = Lint {
    name: "expired-saml-metadata",
    default: Level::Warn,
    summary: "The `validUntil` of `idp_metadata` has passed.",
    why: "A service provider must not use metadata after its `validUntil` (SAML metadata, section 2.3.1), so logins \
          fail. The identity provider may also have replaced its keys.",
    cure: "Download the metadata of the identity provider again.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, facts) in declared(view) {
        if let Some(until) = facts.valid_until.filter(|until| *until < view.now()) {
            findings.report(key, ["saml", "idp_metadata"], format!("`idp_metadata` expired at {until}"));
        }
    }
}

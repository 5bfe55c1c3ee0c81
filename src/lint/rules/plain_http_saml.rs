//! `plain-http-saml`: a SAML login at an address without encryption.

use super::{prelude::*, saml_metadata::declared};

pub(crate) static LINT: Lint = Lint {
    name: "plain-http-saml",
    default: Level::Warn,
    summary: "The `Location` of a `SingleSignOnService` in `idp_metadata` is an http URL.",
    why: "The edge sends users to this address to log in. Without encryption, anyone on the network can read their \
          passwords or replace the login page.",
    cure: "Configure an https address at the identity provider, and download its metadata again.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, _) in declared(view).filter(|(_, facts)| facts.has_plain_login_address) {
        findings.report(key, ["saml", "idp_metadata"], "the login address in `idp_metadata` is an http URL");
    }
}

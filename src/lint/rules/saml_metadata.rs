//! `saml-metadata`: SAML metadata that does not describe an identity provider.

use super::prelude::*;
use crate::syntax::xml::MetadataFacts;

pub(crate) static LINT: Lint = Lint {
    name: "saml-metadata",
    default: Level::Warn,
    summary: "`idp_metadata` is outside the SAML metadata namespace, or lacks an `entityID`, an `IDPSSODescriptor`, its `SingleSignOnService` or a key for signatures.",
    why: "The `entityID` identifies the issuer of assertions, and the `IDPSSODescriptor` has its login address and \
          keys. Nobody can log in without them. Often the metadata of a service provider was used instead.",
    cure: "Download the metadata of the identity provider again, and use it without changes.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, facts) in declared(view) {
        if let Some(gap) = facts.gap() {
            findings.report(key, ["saml", "idp_metadata"], gap);
        }
    }
}

/// Returns the facts of all metadata that could be read, with its routes.
pub(in crate::lint) fn declared<'w>(view: &'w EdgeView<'_>) -> impl Iterator<Item = (&'w Key, MetadataFacts)> {
    view.all::<HttpsEdgeRoute>()
        .filter_map(|(key, route)| Some((key, route.saml.as_ref()?.idp_metadata.read().facts()?)))
}

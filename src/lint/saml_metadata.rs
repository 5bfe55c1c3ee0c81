//! `saml-metadata`: SAML metadata that does not describe an identity provider.

use super::{Findings, Level, Lint, Scope, World};
use crate::{
    model::{key::Key, kind::https_edge_route::HttpsEdgeRoute},
    xml::MetadataFacts,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "saml-metadata",
    needs_whole: false,
    scope: Scope::Edge,
    default: Level::Warn,
    summary: "`idp_metadata` is outside the SAML metadata namespace, or lacks an `entityID`, an `IDPSSODescriptor`, its `SingleSignOnService` or a key for signatures.",
    why: "The `entityID` identifies the issuer of assertions, and the `IDPSSODescriptor` has its login address and \
          keys. Nobody can log in without them. Often the metadata of a service provider was used instead.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: account
      match_type: path_prefix
      match: /account
      backend: {backend_id: bkd_shop}
      saml:
        idp_metadata: |
          <EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://shop.example.com\">
            <SPSSODescriptor protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\"/>
          </EntityDescriptor>
",
    cure: "Download the metadata of the identity provider again, and use it without changes.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, facts) in declared(world) {
        if let Some(gap) = facts.gap() {
            findings.report(key, METADATA, gap);
        }
    }
}

/// The field of the metadata.
pub(super) const METADATA: [&str; 2] = ["saml", "idp_metadata"];

/// Returns the facts of all metadata that could be read, with its routes.
pub(super) fn declared<'w>(world: &'w World<'_>) -> impl Iterator<Item = (&'w Key, MetadataFacts)> {
    world
        .all::<HttpsEdgeRoute>()
        .filter_map(|(key, route)| Some((key, route.saml.as_ref()?.idp_metadata.read().facts()?)))
}

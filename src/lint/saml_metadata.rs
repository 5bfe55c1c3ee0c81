//! `saml-metadata`: SAML metadata that does not describe an identity provider.

use super::{Findings, Level, Lint, World};
use crate::{model::kind::https_edge_route::HttpsEdgeRoute, xml::MetadataFacts};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "saml-metadata",
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
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let metadata = route.saml.as_ref().and_then(|saml| saml.idp_metadata.read().facts());
        if let Some(gap) = metadata.and_then(MetadataFacts::gap) {
            findings.report(key, ["saml", "idp_metadata"], gap);
        }
    }
}

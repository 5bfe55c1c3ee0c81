//! `group-format`: an authorized group that no user can be in.

use std::collections::HashSet;

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::{
    model::{diagnostics::fault::Path, kind::https_edge_route::HttpsEdgeRoute},
    syntax::text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "group-format",
    needs_whole: false,
    default: Level::Warn,
    summary: "An entry of `authorized_groups` is empty, or starts or ends with white space.",
    why: "Groups are compared with those of a user as written, so such an entry matches no group. If the list has no \
          other entry, nobody can log in.",
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
        authorized_groups: ['']
        idp_metadata: |
          <EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://id.example.com\">
            <IDPSSODescriptor protocolSupportEnumeration=\"urn:oasis:names:tc:SAML:2.0:protocol\">
              <KeyDescriptor/>
              <SingleSignOnService Location=\"https://id.example.com/sso\"/>
            </IDPSSODescriptor>
          </EntityDescriptor>
",
    cure: "Write the name of a group, without white space around it, or remove the entry.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let Some(saml) = &route.saml else { continue };
        let list = Path::root().join("saml").join("authorized_groups");
        // `duplicate-entry` reports duplicates.
        let mut told = HashSet::new();
        for (index, group) in saml.authorized_groups.iter().enumerate() {
            let is_good = !group.is_empty() && group.trim() == group;
            if is_good || !told.insert(group.as_str()) {
                continue;
            }
            if group.is_empty() {
                findings.report(key, list.join(index), "the group is empty");
            } else {
                let message = format!("the group `{}` starts or ends with white space", printable(group));
                findings.report(key, list.join(index), message);
            }
        }
    }
}

//! `team-format`: a GitHub organization that is not a slug. The format of teams is a rule of the module.

use std::collections::HashSet;

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::{
    model::{diagnostics::fault::Path, kind::https_edge_route::HttpsEdgeRoute, module::oauth::is_github_slug},
    syntax::text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "team-format",
    needs_whole: false,
    default: Level::Deny,
    summary: "An entry of `organizations` under `github` of an enabled `oauth` is not a slug.",
    why: "GitHub knows organizations by their slugs. Any other text, such as a display name or a URL, matches nobody.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: console
      match_type: path_prefix
      match: /console
      backend: {backend_id: bkd_shop}
      oauth:
        provider:
          github:
            organizations: [Example Shop]
",
    cure: "Use the slug of the organization, such as `example-shop`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let oauth = route.oauth.as_ref().filter(|oauth| oauth.enabled);
        let Some(github) = oauth.and_then(|oauth| oauth.provider.github.as_ref()) else { continue };
        let path = Path::root().join("oauth").join("provider").join("github").join("organizations");
        // `duplicate-entry` reports duplicates.
        let mut told = HashSet::new();
        for (index, name) in github.organizations.iter().enumerate() {
            if !is_github_slug(name) && told.insert(name.as_str()) {
                let message = format!("`{}` is not the slug of a GitHub organization", printable(name));
                findings.report(key, path.join(index), message);
            }
        }
    }
}

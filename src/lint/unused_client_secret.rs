//! `unused-client-secret`: a client secret without a client ID.

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::model::{
    diagnostics::fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unused-client-secret",
    needs_whole: false,
    default: Level::Warn,
    summary: "An `oauth` provider has a `client_secret` but no `client_id`.",
    why: "Without `client_id`, users log in through the service's managed app, and the secret of your own app is not \
          used. Users see another app than intended, and its restrictions apply.",
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
      oauth:
        provider:
          google:
            client_secret: example-client-secret
            email_domains: [example.com]
",
    cure: "Set `client_id` to your app's ID, or remove `client_secret`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        let Some(oauth) = &route.oauth else { continue };
        for app in oauth.provider.apps() {
            if app.client_id.is_empty() && !app.client_secret.is_empty() {
                let path = Path::root().join("oauth").join("provider").join(app.provider).join("client_secret");
                findings.report(key, path, "`client_secret` has no effect without `client_id`").aim = Aim::Key;
            }
        }
    }
}

//! `scope-format`: login scopes that a provider does not understand.

use std::collections::HashSet;

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::{
    model::{diagnostics::fault::Path, key::Key, kind::https_edge_route::HttpsEdgeRoute},
    syntax::text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "scope-format",
    default: Level::Warn,
    needs_whole: false,
    summary: "An entry of `scopes` is empty or contains white space, or the scopes of `oidc` lack `openid`.",
    why: "Scopes are joined with spaces and contain none themselves (RFC 6749, section 3.3). A request without `openid` \
          is not an OpenID Connect request, so the provider returns no ID token and nobody can log in.",
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
      oidc:
        issuer: https://id.example.com
        client_id: shop
        client_secret: example-client-secret
        scopes: ['openid email']
",
    cure: "Write each scope as an entry of its own, such as `[openid, email]`.",
    check: LintCheck::Edge(check),
};

/// The scope of every OpenID Connect request.
const OPENID: &str = "openid";

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        if let Some(oauth) = &route.oauth {
            for app in oauth.provider.apps() {
                let list = || Path::root().join("oauth").join("provider").join(app.provider).join("scopes");
                check_entries(findings, key, list, app.scopes);
            }
        }
        if let Some(oidc) = &route.oidc {
            let list = || Path::root().join("oidc").join("scopes");
            check_entries(findings, key, list, &oidc.scopes);
            // An entry with several scopes is reported already. Without scopes, the edge chooses them.
            let has_openid = oidc.scopes.iter().any(|scope| scope.split_whitespace().any(|word| word == OPENID));
            if !oidc.scopes.is_empty() && !has_openid {
                let finding = findings.report(key, list(), "the scopes of `oidc` must include `openid`");
                finding.help = Some("Add `openid` to `scopes`.");
            }
        }
    }
}

fn check_entries(findings: &mut Findings, key: &Key, list: impl Fn() -> Path, scopes: &[String]) {
    // `duplicate-entry` reports duplicates.
    let mut told = HashSet::new();
    for (index, scope) in scopes.iter().enumerate() {
        let message = if scope.is_empty() {
            "the scope is empty".to_owned()
        } else if scope.contains(char::is_whitespace) {
            format!("the scope `{}` contains white space", printable(scope))
        } else {
            continue;
        };
        if told.insert(scope.as_str()) {
            findings.report(key, list().join(index), message);
        }
    }
}

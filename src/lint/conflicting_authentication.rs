//! `conflicting-authentication`: more than one login module on a route.

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{
    fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "conflicting-authentication",
    default: Level::Deny,
    summary: "More than one of `oauth`, `oidc` and `saml` is enabled on one route.",
    why: "A route can have only one login. The gateway either rejects the route or uses one of the logins, so users of the other are locked out or admitted unchecked.",
    example: r#"apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ["shop.example.com:443"]
  routes:
    - name: account
      match_type: path_prefix
      match: /account
      backend: {backend_id: bkd_shop}
      oauth: {provider: {google: {}}}
      oidc: {issuer: "https://id.example.com", client_id: shop, client_secret: example}
"#,
    cure: "Keep one of the modules, and remove the others or set `enabled: false` on them. Modules from a module set count too.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let logins = [
            ("oauth", route.oauth.as_ref().is_some_and(|login| login.enabled)),
            ("oidc", route.oidc.as_ref().is_some_and(|login| login.enabled)),
            ("saml", route.saml.as_ref().is_some_and(|login| login.enabled)),
        ];
        let mut enabled = logins.into_iter().filter(|(_, enabled)| *enabled).map(|(name, _)| name);
        let Some(first) = enabled.next() else { continue };
        for other in enabled {
            let message = format!("`{first}` and `{other}` cannot both be enabled on a route");
            let finding = findings.report(key, [other], message);
            finding.aim = Aim::Key;
            finding.related = Some((Subject::Resource(key.clone()), Path::root().join(first), "the other login"));
        }
    }
}

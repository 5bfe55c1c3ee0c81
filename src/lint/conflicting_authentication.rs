//! Lint: more than one way to log in on one route.

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{
    fault::{Aim, Path},
    kind::https_edge_route::HttpsEdgeRoute,
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "conflicting-authentication",
    default: Level::Deny,
    says: "More than one of `oauth`, `oidc` and `saml` is enabled on one route.",
    why: "A request is sent to one login only. The gateway refuses such a route when it loads it, or picks one of the logins: users of the other are locked out, or let in unasked.",
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
    cure: "Keep one of them and remove the others, or set `enabled: false` on them. Modules that come from a module set count like the route's own.",
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
            let message = format!("`{first}` and `{other}` are both enabled, and a route has one login only");
            let finding = findings.report(key, [other], message);
            finding.aim = Aim::Key;
            finding.related = Some((Subject::Resource(key.clone()), Path::root().join(first), "the other login"));
        }
    }
}

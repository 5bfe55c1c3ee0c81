//! `session-too-long`: an inactivity timeout over a year, or longer than the session.

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{
    fault::Path,
    kind::https_edge_route::HttpsEdgeRoute,
    module::{Module, oauth::Oauth, oidc::Oidc, saml::Saml},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "session-too-long",
    default: Level::Warn,
    summary: "The `inactivity_timeout` of `oauth`, `saml` or `oidc` is over a year, or longer than `maximum_duration`.",
    why: "Timeouts are in seconds, so a very large one is usually in milliseconds by mistake. A timeout longer than \
          the session never takes effect.",
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
        provider: {google: {email_domains: [example.com]}}
        inactivity_timeout: 86400
        maximum_duration: 3600
",
    cure: "Set the timeout in seconds, shorter than `maximum_duration`.",
    check,
};

/// Seconds in a year.
const YEAR: u32 = 31_536_000;

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let sessions = [
            (Oauth::SLOT, route.oauth.as_ref().map(|it| (it.inactivity_timeout, it.maximum_duration))),
            (Saml::SLOT, route.saml.as_ref().map(|it| (it.inactivity_timeout, it.maximum_duration))),
            (Oidc::SLOT, route.oidc.as_ref().map(|it| (it.inactivity_timeout, it.maximum_duration))),
        ];
        for (module, session) in sessions {
            let Some((timeout, most)) = session else { continue };
            let at = Path::root().join(module);
            if timeout > YEAR {
                let message = format!("`inactivity_timeout` is over a year ({timeout} seconds)");
                findings.report(key, at.join("inactivity_timeout"), message);
            }
            if most > 0 && timeout > most {
                let message = format!(
                    "`inactivity_timeout` ({timeout} seconds) is longer than `maximum_duration` ({most} seconds)"
                );
                let finding = findings.report(key, at.join("inactivity_timeout"), message);
                let end = at.join("maximum_duration");
                finding.related = Some((Subject::Resource(key.clone()), end, "the session's maximum duration"));
            }
        }
    }
}

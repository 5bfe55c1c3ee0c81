//! `session-too-long`: a session that outlives a year, or its own end.

use super::{Findings, Level, Lint, Subject, World};
use crate::model::{
    fault::Path,
    kind::https_edge_route::HttpsEdgeRoute,
    module::{Module, oauth::Oauth, oidc::Oidc, saml::Saml},
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "session-too-long",
    default: Level::Warn,
    says: "an inactivity_timeout of oauth, saml or oidc over a year, or longer than maximum_duration",
    why: "The timeouts are seconds, so a large one is most often milliseconds by mistake. One that is longer than the \
          whole session never takes effect.",
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
    cure: "Write the timeout in seconds, shorter than `maximum_duration`.",
    check,
};

/// Seconds of a year.
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
                let message = format!("`inactivity_timeout` of {module} is {timeout} seconds, which is over a year");
                findings.report(key, at.join("inactivity_timeout"), message);
            }
            if most > 0 && timeout > most {
                let message = format!(
                    "`inactivity_timeout` of {module} is {timeout} seconds, and the session ends after {most} anyway"
                );
                let finding = findings.report(key, at.join("inactivity_timeout"), message);
                let end = at.join("maximum_duration");
                finding.related = Some((Subject::Resource(key.clone()), end, "the session ends here"));
            }
        }
    }
}

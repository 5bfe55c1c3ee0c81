//! `unprotected-route`: a route that is open to everyone.
//!
//! Routes whose edge is not in the manifests are skipped: the edge may require client certificates.

use super::prelude::*;
use crate::model::AnyResource;

pub(crate) static LINT: Lint = Lint {
    name: "unprotected-route",
    default: Level::Allow,
    summary: "A route exposes a backend without authentication, IP restriction or policy.",
    why: "Everyone who can reach the edge can reach the backend. This is right for a public site, but exposes an \
          internal service.",
    cure: "Add `oauth`, `oidc`, `saml`, `jwt_validation`, `webhook_verification`, `ip_restriction` or `policies` to the route, or `mutual_tls` to the edge. For public routes, allow this lint with an annotation.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        if route.backend.as_ref().is_none_or(|backend| !backend.enabled) || is_protected(route) {
            continue;
        }
        if view.edge_of(key).is_none_or(|edge| is_protected(edge)) {
            continue;
        }
        let message = format!("everyone can reach the backend of `{}`", printable(&route.r#match));
        let finding = findings.report(key, ["backend"], message);
        (finding.of_whole, finding.target) = (true, FaultTarget::Key);
    }
}

pub(super) fn is_protected(host: &dyn AnyResource) -> bool {
    host.modules().any(|(_, module)| module.enabled() && module.restricts_access())
}

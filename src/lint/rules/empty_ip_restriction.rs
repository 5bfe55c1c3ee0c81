//! `empty-ip-restriction`: an IP restriction without IP policies.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "empty-ip-restriction",
    default: Level::Deny,
    summary: "An enabled `ip_restriction` module or an enforced IpRestriction has no IP policies.",
    why: "Without IP policies, a restriction admits either everyone or nobody, and neither is intended.",
    cure: "Add at least one IP policy to `ip_policy_ids`, or remove or disable the restriction.",
    check: LintCheck::Edge(check),
};

const MESSAGE: &str = "the IP restriction has no IP policies";

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, restriction) in view.all::<IpRestriction>() {
        if restriction.enforced && restriction.ip_policy_ids.is_empty() {
            findings.report(key, ["ip_policy_ids"], MESSAGE);
        }
    }
    let routes = view.all::<HttpsEdgeRoute>().map(|(key, route)| (key, &route.ip_restriction));
    let tls_edges = view.all::<TlsEdge>().map(|(key, edge)| (key, &edge.ip_restriction));
    for (key, module) in routes.chain(tls_edges) {
        if module.as_ref().is_some_and(|module| module.enabled && module.ip_policy_ids.is_empty()) {
            findings.report(key, ["ip_restriction", "ip_policy_ids"], MESSAGE);
        }
    }
}

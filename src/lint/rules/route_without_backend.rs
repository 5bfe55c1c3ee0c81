//! `route-without-backend`: a route without a backend.
//!
//! Routes of an edge without hostports are skipped: the edge serves no traffic, and its routes may be unfinished. So
//! are routes with an inbound policy whose action is not `log`, because any other action may respond by itself.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "route-without-backend",
    default: Level::Warn,
    summary: "A route has no enabled backend, and no policy that responds itself.",
    why: "Every request that matches the route fails, including those that a less specific route would have served.",
    cure: "Add or enable a `backend`, or remove the route. To reject requests on purpose, add an inbound policy with a `deny` action.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, route) in view.all::<HttpsEdgeRoute>() {
        // Nearly every route has a backend, so nothing else is looked up for it.
        if route.backend.as_ref().is_some_and(|backend| backend.enabled) {
            continue;
        }
        let serves = view.edge_of(key).is_none_or(|edge| !edge.hostports.is_empty());
        if !serves || answers(route) {
            continue;
        }
        let text = printable(&route.r#match);
        if route.backend.is_none() {
            findings.report(key, ["match"], format!("the route for `{text}` has no backend"));
        } else {
            let message = format!("the backend of the route for `{text}` is disabled");
            findings.report(key, ["backend", "enabled"], message).of_whole = true;
        }
    }
}

fn answers(route: &HttpsEdgeRoute) -> bool {
    let policies = route.policies.iter().filter(|policies| policies.enabled).flat_map(|policies| &policies.inbound);
    policies.flat_map(|policy| &policy.actions).any(|action| !action.r#type.eq_ignore_ascii_case("log"))
}

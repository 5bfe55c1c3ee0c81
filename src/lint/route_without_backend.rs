//! Lint: a route that nothing answers.
//!
//! An edge without hostports serves nothing, and its routes may be unfinished. A policy of requests whose action is any
//! other than `log` may answer by itself: which actions there are is not for this lint to know.

use super::{Findings, Level, Lint, World, unprotected_route::edge_of};
use crate::model::kind::https_edge_route::HttpsEdgeRoute;
use crate::text::printable;

/// The lint.
pub static LINT: Lint = Lint {
    name: "route-without-backend",
    default: Level::Warn,
    says: "A route has no backend, and no policy that answers by itself.",
    why: "Every request that it takes ends in an error, also those that a wider route would have served.",
    example: r#"apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ["shop.example.com:443"]
  routes:
    - name: checkout
      match_type: path_prefix
      match: /checkout
      compression: {}
"#,
    cure: "Add a `backend`, switch it on, or remove the route. To refuse requests on purpose, add an inbound policy with a `deny` action.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        let serves = edge_of(world, key).is_none_or(|edge| !edge.hostports.is_empty());
        if !serves || answers(route) {
            continue;
        }
        let text = printable(&route.r#match);
        match &route.backend {
            None => findings.report(key, ["match"], format!("the route for `{text}` has no backend")),
            Some(backend) if backend.enabled => continue,
            Some(_) => {
                let message = format!("the route for `{text}` has a backend that is switched off, and no other");
                findings.report(key, ["backend", "enabled"], message)
            }
        };
    }
}

fn answers(route: &HttpsEdgeRoute) -> bool {
    let policies = route.policies.iter().filter(|policies| policies.enabled).flat_map(|policies| &policies.inbound);
    policies.flat_map(|policy| &policy.actions).any(|action| !action.r#type.eq_ignore_ascii_case("log"))
}

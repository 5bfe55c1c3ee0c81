//! `policy-expression`: a policy that the gateway will not understand.

mod cel;

use super::{Findings, Level, Lint, World};
use crate::model::{
    fault::{Path, nearest},
    kind::{https_edge_route::HttpsEdgeRoute, tls_edge::TlsEdge},
};
use crate::text::printable;

/// The lint.
pub static LINT: Lint = Lint {
    name: "policy-expression",
    default: Level::Warn,
    says: "an expression of policies that does not parse as CEL, or an action type other than the known ones",
    why: "A gateway reads expressions and actions only when it loads them, and then refuses the whole policy.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: all
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_shop}
      policies:
        inbound:
          - name: known-methods
            expressions: [\"!(req.Method in ['GET', 'HEAD']\"]
            actions: [{type: deny}]
",
    cure: "Mend the expression by the grammar of CEL, and write a known action type, such as `log` or `deny`.",
    check,
};

/// The action types that gateways of this family know. The specification shows `log` and `deny`; any other is
/// stored as it is, so a type that is missing here costs a warning and nothing else.
const ACTIONS: &[&str] = &[
    "add-headers",
    "basic-auth",
    "circuit-breaker",
    "compress-response",
    "custom-response",
    "deny",
    "forward-internal",
    "http-request",
    "jwt-validation",
    "log",
    "oauth",
    "openid-connect",
    "rate-limit",
    "redirect",
    "remove-headers",
    "restrict-ips",
    "saml",
    "set-vars",
    "terminate-tls",
    "url-rewrite",
    "verify-webhook",
];

fn check(world: &World<'_>, findings: &mut Findings) {
    let routes = world.all::<HttpsEdgeRoute>().map(|(key, route)| (key, &route.policies));
    let tls_edges = world.all::<TlsEdge>().map(|(key, edge)| (key, &edge.policies));
    for (key, policies) in routes.chain(tls_edges) {
        let Some(policies) = policies else { continue };
        for (direction, list) in [("inbound", &policies.inbound), ("outbound", &policies.outbound)] {
            for (index, policy) in list.iter().enumerate() {
                let at = Path::root().join("policies").join(direction).join(index);
                for (index, expression) in policy.expressions.iter().enumerate() {
                    if let Err(reason) = cel::parse(expression) {
                        let message = format!("this expression is not CEL: {reason}");
                        findings.report(key, at.join("expressions").join(index), message);
                    }
                }
                for (index, action) in policy.actions.iter().enumerate() {
                    if let Some(message) = action_fault(&action.r#type) {
                        findings.report(key, at.join("actions").join(index).join("type"), message);
                    }
                }
            }
        }
    }
}

/// What is wrong with an action's type; that it is empty is an error of its own.
fn action_fault(action: &str) -> Option<String> {
    if action.is_empty() || ACTIONS.contains(&action) {
        return None;
    }
    let near = nearest(action, ACTIONS.iter().copied());
    let hint = near.map(|near| format!(", perhaps `{near}` is meant")).unwrap_or_default();
    Some(format!("`{}` is not a known action type{hint}", printable(action)))
}

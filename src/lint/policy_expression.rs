//! `policy-expression`: a policy with invalid CEL or an unknown action type.

use super::{EdgeView, Findings, Level, Lint, LintCheck};
use crate::{
    model::{
        diagnostics::{fault::Path, suggestions::Suggestions},
        kind::{https_edge_route::HttpsEdgeRoute, tls_edge::TlsEdge},
    },
    syntax::{cel, text::printable},
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "policy-expression",
    needs_whole: false,
    default: Level::Warn,
    summary: "A policy expression is not valid CEL, or an action type is unknown.",
    why: "The gateway parses expressions and actions only when it loads them, and then rejects the whole policy.",
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
    cure: "Fix the CEL syntax, and use a known action type, such as `log` or `deny`.",
    check: LintCheck::Edge(check),
};

/// The known action types. The specification shows `log` and `deny`, and any other type is accepted, so a type missing
/// from this list only causes a warning.
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

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let routes = view.all::<HttpsEdgeRoute>().map(|(key, route)| (key, &route.policies));
    let tls_edges = view.all::<TlsEdge>().map(|(key, edge)| (key, &edge.policies));
    for (key, policies) in routes.chain(tls_edges) {
        let Some(policies) = policies else { continue };
        for (direction, list) in [("inbound", &policies.inbound), ("outbound", &policies.outbound)] {
            for (index, policy) in list.iter().enumerate() {
                let at = Path::root().join("policies").join(direction).join(index);
                for (index, expression) in policy.expressions.iter().enumerate() {
                    if let Err(error) = cel::check(expression) {
                        let message = format!("the expression is not valid CEL: {}", error.message);
                        findings.report(key, at.join("expressions").join(index), message);
                    }
                }
                for (index, action) in policy.actions.iter().enumerate() {
                    if let Some(message) = action_fault(&action.r#type, &findings.suggestions) {
                        findings.report(key, at.join("actions").join(index).join("type"), message);
                    }
                }
            }
        }
    }
}

/// Returns what is wrong with an action type. An empty type is an error that a rule reports.
fn action_fault(action: &str, suggestions: &Suggestions) -> Option<String> {
    if action.is_empty() || ACTIONS.contains(&action) {
        return None;
    }
    let near = suggestions.nearest(action, ACTIONS.iter().copied());
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    Some(format!("unknown action type `{}`{hint}", printable(action)))
}

//! `unreadable-policy`: a policy that needs the request on an edge that cannot read it.
//!
//! Traffic that a `terminate-tls` action decrypts is readable, so resources with one are skipped. Unknown actions are not
//! reported.

use std::collections::HashSet;

use super::{policy_condition::uses_variable, prelude::*};
use crate::model::rules;

pub(crate) static LINT: Lint = Lint {
    name: "unreadable-policy",
    default: Level::Warn,
    summary: "A policy needs the request or response, but the edge passes TLS through.",
    why: "A TLS edge, or an edge with `terminate_at: upstream`, sees only connections. A condition on `req` or `res` never \
          holds and an action on headers has no effect, so the policy looks like protection but protects nothing.",
    cure: "Use only `conn` and actions on connections, such as `deny`, or terminate TLS at the edge.",
    check: LintCheck::Edge(check),
};

/// The action that makes traffic readable.
const DECRYPTING: &str = "terminate-tls";
/// Action types that read or change a request or response.
#[rustfmt::skip]
const OF_HTTP: &[&str] = &[
    "add-headers", "basic-auth", "compress-response", "custom-response", "jwt-validation", "oauth", "openid-connect",
    "redirect", "remove-headers", "saml", "url-rewrite", "verify-webhook",
];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let decrypts = placed_policies(view)
        .filter(|placed| placed.policy.actions.iter().any(|action| action.r#type == DECRYPTING))
        .map(|placed| placed.key);
    let decrypted: HashSet<&Key> = decrypts.collect();
    for placed in placed_policies(view) {
        if !passes_tls_through(view, placed.key) || decrypted.contains(placed.key) {
            continue;
        }
        // `policy-direction` reports `res` in inbound policies.
        let variables: &[&str] = if placed.is_outbound { &["req", "res"] } else { &["req"] };
        for (index, expression) in placed.policy.expressions.iter().enumerate() {
            if let Some(name) = variables.iter().find(|name| uses_variable(expression, name)) {
                let message = format!("`{name}` is not available on an edge that passes TLS through");
                findings.report(placed.key, placed.expression(index), message);
            }
        }
        for (index, action) in placed.policy.actions.iter().enumerate() {
            if OF_HTTP.contains(&action.r#type.as_str()) {
                let message =
                    format!("`{}` has no effect on an edge that passes TLS through", printable(&action.r#type));
                findings.report(placed.key, placed.action_type(index), message);
            }
        }
    }
}

/// Whether the traffic of a route or TLS edge is encrypted.
fn passes_tls_through(view: &EdgeView<'_>, key: &Key) -> bool {
    key.kind == Kind::TlsEdge || view.edge_of(key).is_some_and(rules::passes_through)
}

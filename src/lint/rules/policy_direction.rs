//! `policy-direction`: an action for requests in a policy for responses or the other way round, or an expression that
//! uses a response before there is one.

use super::{policy_condition::uses_variable, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "policy-direction",
    default: Level::Warn,
    summary: "An outbound policy has an action for requests, or an inbound policy has an action for responses or uses the response.",
    why: "Outbound policies run after the backend has handled the request, so a login or limit there protects nothing. \
          Inbound policies run before there is a response.",
    cure: "Move the policy to `inbound` if it acts on requests, or to `outbound` if it uses the response.",
    check: LintCheck::Edge(check),
};

/// Action types that decide whether and how a request reaches the backend.
#[rustfmt::skip]
const OF_REQUESTS: &[&str] = &[
    "basic-auth", "circuit-breaker", "forward-internal", "jwt-validation", "oauth", "openid-connect", "rate-limit",
    "restrict-ips", "saml", "terminate-tls", "url-rewrite", "verify-webhook",
];
/// Action types that change a response.
const OF_RESPONSES: &[&str] = &["compress-response"];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for placed in placed_policies(view) {
        for (index, action) in placed.policy.actions.iter().enumerate() {
            if is_misplaced(&action.r#type, placed.is_outbound) {
                let when = if placed.is_outbound { "after" } else { "before" };
                let message = format!("`{}` has no effect {when} the response", printable(&action.r#type));
                findings.report(placed.key, placed.action_type(index), message);
            }
        }
        if placed.is_outbound {
            continue;
        }
        for (index, expression) in placed.policy.expressions.iter().enumerate() {
            if uses_variable(expression, "res") {
                findings.report(placed.key, placed.expression(index), "`res` is not available before the response");
            }
        }
    }
}

/// Whether an action belongs to the other direction.
pub(super) fn is_misplaced(action: &str, is_outbound: bool) -> bool {
    if is_outbound { OF_REQUESTS.contains(&action) } else { OF_RESPONSES.contains(&action) }
}

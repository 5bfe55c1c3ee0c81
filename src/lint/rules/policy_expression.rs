//! `policy-expression`: a policy with invalid CEL or an unknown action type.

use super::prelude::*;
use crate::{model::diagnostics::suggestions::Suggestions, syntax::cel};

pub(crate) static LINT: Lint = Lint {
    name: "policy-expression",
    default: Level::Warn,
    summary: "A policy expression is not valid CEL, or an action type is unknown.",
    why: "The gateway parses expressions and actions only when it loads them, and then rejects the whole policy.",
    cure: "Fix the CEL syntax, and use a known action type, such as `log` or `deny`.",
    check: LintCheck::Edge(check),
};

/// The known action types. The specification shows `log` and `deny`, and any other type is accepted, so a type missing
/// from this list only causes a warning.
#[rustfmt::skip]
const ACTIONS: &[&str] = &[
    "add-headers", "basic-auth", "circuit-breaker", "compress-response", "custom-response", "deny", "forward-internal",
    "http-request", "jwt-validation", "log", "oauth", "openid-connect", "rate-limit", "redirect", "remove-headers",
    "restrict-ips", "saml", "set-vars", "terminate-tls", "url-rewrite", "verify-webhook",
];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for placed in placed_policies(view) {
        for (index, expression) in placed.policy.expressions.iter().enumerate() {
            if let Err(error) = cel::check(expression) {
                let message = format!("the expression is not valid CEL: {}", error.message);
                findings.report(placed.key, placed.expression(index), message);
            }
        }
        for (index, action) in placed.policy.actions.iter().enumerate() {
            if let Some(message) = action_fault(&action.r#type, &findings.suggestions) {
                findings.report(placed.key, placed.action_type(index), message);
            }
        }
    }
}

/// Returns what is wrong with an action type. An empty type is an error that a rule reports.
fn action_fault(action: &str, suggestions: &Suggestions) -> Option<String> {
    if action.is_empty() || ACTIONS.contains(&action) {
        return None;
    }
    Some(unknown_word("action type", action, suggestions.nearest(action, ACTIONS.iter().copied())))
}

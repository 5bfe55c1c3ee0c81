//! `unreachable-action`: an action behind one that ends the request.

use super::{
    EdgeView, Findings, Level, Lint, LintCheck, Subject, empty_policy::placed_policies,
    policy_condition::is_always_true, policy_direction::is_misplaced,
};
use crate::{
    model::{diagnostics::fault::Path, key::Key, module::policies::EndpointAction},
    syntax::text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "unreachable-action",
    needs_whole: false,
    default: Level::Warn,
    summary: "An action or policy follows one that ends every request.",
    why: "Actions run in order, and `deny`, `redirect` and `custom-response` end the request. A `log` after them never \
          runs, and neither do the policies after one that denies everything.",
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
          - name: refuse-trace
            expressions: [\"req.Method == 'TRACE'\"]
            actions: [{type: deny}, {type: log}]
",
    cure: "Move the action that ends the request to the end, or remove what follows it.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    // The action that ends every request before it reaches the next policy of the same list.
    let mut ended: Option<(&Key, bool, Path)> = None;
    for placed in placed_policies(view) {
        if let Some((key, is_outbound, end)) = ended.take()
            && key == placed.key
            && is_outbound == placed.is_outbound
        {
            let message = "the policy never runs, because an earlier one ends every request";
            findings.report(placed.key, placed.path, message).related =
                Some((Subject::Resource(placed.key.clone()), end, "the end"));
            continue;
        }
        let mut actions = placed.policy.actions.iter().enumerate();
        let Some((end, action)) = actions.find(|(_, action)| ends(action)) else { continue };
        let path = placed.path.join("actions");
        // `policy-direction` reports the others.
        let following = actions.find(|(_, action)| !is_misplaced(&action.r#type, placed.is_outbound));
        if let Some((next, following)) = following {
            let (following, action) = (printable(&following.r#type), printable(&action.r#type));
            let message = format!("`{following}` never runs, because `{action}` ends the request");
            findings.report(placed.key, path.join(next).join("type"), message).related =
                Some((Subject::Resource(placed.key.clone()), path.join(end), "the end"));
        }
        if placed.policy.expressions.iter().all(|expression| is_always_true(expression)) {
            ended = Some((placed.key, placed.is_outbound, path.join(end)));
        }
    }
}

/// Whether an action ends every request. A redirect with `from` ends only those whose URL it matches.
fn ends(action: &EndpointAction) -> bool {
    match action.r#type.as_str() {
        "custom-response" | "deny" => true,
        "redirect" => action.config.as_ref().is_none_or(|config| !config.contains_key("from")),
        _ => false,
    }
}

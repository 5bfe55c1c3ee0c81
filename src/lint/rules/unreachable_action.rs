//! `unreachable-action`: an action behind one that ends the request.

use super::{policy_condition::is_always_true, policy_direction::is_misplaced, prelude::*};

pub(crate) static LINT: Lint = Lint {
    name: "unreachable-action",
    default: Level::Warn,
    summary: "An action or policy follows one that ends every request.",
    why: "Actions run in order, and `deny`, `redirect` and `custom-response` end the request. A `log` after them never \
          runs, and neither do the policies after one that denies everything.",
    cure: "Move the action that ends the request to the end, or remove the actions and policies after it.",
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
            findings.report(placed.key, placed.path, message).relate(placed.key, end, "the end");
            continue;
        }
        let mut actions = placed.policy.actions.iter().enumerate();
        let Some((end, action)) = actions.find(|(_, action)| action.ends_requests()) else { continue };
        let path = placed.path.join("actions");
        // `policy-direction` reports the others.
        let following = actions.find(|(_, action)| !is_misplaced(&action.r#type, placed.is_outbound));
        if let Some((next, following)) = following {
            let (following, action) = (printable(&following.r#type), printable(&action.r#type));
            let message = format!("`{following}` never runs, because `{action}` ends the request");
            let finding = findings.report(placed.key, path.join(next).join("type"), message);
            finding.relate(placed.key, path.join(end), "the end");
        }
        if placed.policy.expressions.iter().all(|expression| is_always_true(expression)) {
            ended = Some((placed.key, placed.is_outbound, path.join(end)));
        }
    }
}

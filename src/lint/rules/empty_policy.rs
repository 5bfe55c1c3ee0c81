//! `empty-policy`: a policy without actions.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "empty-policy",
    default: Level::Warn,
    summary: "A policy has no actions.",
    why: "The expressions of a policy only select traffic; its actions do something with it. A policy that is called \
          `block-scanners` but has no actions blocks nobody.",
    cure: "Add an action, such as `{type: deny}`, or remove the policy.",
    check: LintCheck::Edge(check),
};

/// Words in the name of a policy that is meant to keep traffic out.
const BLOCKING: &[&str] =
    &["block", "denied", "deny", "disallow", "forbid", "only", "prevent", "refuse", "reject", "restrict"];

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for placed in placed_policies(view).filter(|placed| placed.policy.actions.is_empty()) {
        let name = placed.policy.name.as_str();
        let message = match is_blocking(name) {
            true => format!("`{}` has no actions, so it blocks nothing", printable(name)),
            false => "the policy has no actions, so it has no effect".to_owned(),
        };
        findings.report(placed.key, placed.path.join("actions"), message);
    }
}

fn is_blocking(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    // `blocked` and `forbidden` count, `blockchain` does not.
    words.any(|word| BLOCKING.iter().any(|it| word.strip_prefix(it).is_some_and(|rest| rest.len() <= 3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_what_a_policy_is_for() {
        for blocking in ["block-scanners", "Deny embargoed", "blocked_countries", "staff-only", "restricted"] {
            assert!(is_blocking(blocking), "{blocking}");
        }
        for other in ["", "log-admin", "banner", "blockchain-headers", "add-headers"] {
            assert!(!is_blocking(other), "{other}");
        }
    }
}

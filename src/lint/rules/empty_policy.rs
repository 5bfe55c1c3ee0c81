//! `empty-policy`: a policy without actions.

use super::prelude::*;
use crate::model::module::policies::{EndpointPolicy, Policies};

/// The lint.
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

/// A policy with its location.
pub(super) struct PlacedPolicy<'w> {
    /// The route or TLS edge.
    pub(super) key: &'w Key,
    /// Whether the policy applies to responses.
    pub(super) is_outbound: bool,
    /// The path of the policy.
    pub(super) path: Path,
    /// The policy.
    pub(super) policy: &'w EndpointPolicy,
}

impl PlacedPolicy<'_> {
    /// The path of an action's type.
    pub(super) fn action_type(&self, index: usize) -> Path {
        self.path.join("actions").join(index).join("type")
    }

    /// The path of an expression.
    pub(super) fn expression(&self, index: usize) -> Path {
        self.path.join("expressions").join(index)
    }
}

/// Returns every policy of every `policies` module, in order.
pub(super) fn placed_policies<'w>(view: &'w EdgeView<'_>) -> impl Iterator<Item = PlacedPolicy<'w>> {
    let routes = view.all::<HttpsEdgeRoute>().map(|(key, route)| (key, &route.policies));
    let tls_edges = view.all::<TlsEdge>().map(|(key, edge)| (key, &edge.policies));
    let modules = routes.chain(tls_edges).filter_map(|(key, module)| Some((key, module.as_ref()?)));
    modules.flat_map(|(key, module)| placed(key, module))
}

fn placed<'w>(key: &'w Key, module: &'w Policies) -> impl Iterator<Item = PlacedPolicy<'w>> {
    let directions = [("inbound", false, &module.inbound), ("outbound", true, &module.outbound)];
    directions.into_iter().flat_map(move |(direction, is_outbound, list)| {
        let path = Path::from(["policies", direction]);
        list.iter().enumerate().map(move |(index, policy)| PlacedPolicy {
            key,
            is_outbound,
            path: path.join(index),
            policy,
        })
    })
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

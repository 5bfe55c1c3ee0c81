//! `duplicate-restriction`: two IP restrictions of the same traffic.
//!
//! A restriction that is not enforced only warns, so a new one can be tried next to the one in force.

use super::prelude::*;
use crate::model::kind::ip_restriction::Traffic;

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "duplicate-restriction",
    default: Level::Warn,
    summary: "Two IpRestrictions of the same `type` are both enforced, or both not enforced.",
    why: "It is undefined whether an address must be in the IP policies of one restriction or of both, so the two can \
          admit more than intended, or lock everyone out.",
    cure: "Use one IpRestriction for each type of traffic, with all IP policies.",
    check: LintCheck::Source(check),
};

fn check(view: &HostView<'_>, findings: &mut Findings) {
    let mut first: Vec<(Traffic, bool, &Key)> = Vec::new();
    for (key, restriction) in view.in_order::<IpRestriction>() {
        let Some(traffic) = restriction.r#type else { continue };
        match first.iter().find(|(of, enforced, _)| (*of, *enforced) == (traffic, restriction.enforced)) {
            None => first.push((traffic, restriction.enforced, key)),
            Some((_, _, other)) => {
                let message = format!("another IpRestriction already restricts `{}`", traffic.as_str());
                findings.report(key, ["type"], message).relate(other, ["type"], "the other restriction");
            }
        }
    }
    for (other, restriction, source) in view.of_others::<IpRestriction>() {
        let same = |(traffic, enforced, _): &&(Traffic, bool, &Key)| {
            (Some(*traffic), *enforced) == (restriction.r#type, restriction.enforced)
        };
        if let Some((traffic, _, key)) = first.iter().find(same) {
            let message = format!("{other} of source `{source}` already restricts `{}`", traffic.as_str());
            findings.report(key, ["type"], message);
        }
    }
}

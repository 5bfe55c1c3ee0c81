//! `duplicate-restriction`: two IP restrictions of the same traffic.
//!
//! A restriction that is not enforced only warns, so a new one can be tried next to the one in force.

use std::collections::BTreeMap;

use super::prelude::*;
use crate::model::claim::source_in_words;
use crate::model::kind::ip_restriction::Traffic;

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
    let mut first: BTreeMap<(&str, bool), &Key> = BTreeMap::new();
    for (key, restriction) in view.in_order::<IpRestriction>() {
        let Some(traffic) = restriction.r#type.map(Traffic::as_str) else { continue };
        let other = *first.entry((traffic, restriction.enforced)).or_insert(key);
        if other != key {
            let message = format!("another IpRestriction already restricts `{traffic}`");
            findings.report(key, ["type"], message).relate(other, ["type"], "the other restriction");
        }
    }
    for (other, restriction, source) in view.of_others::<IpRestriction>() {
        let Some(traffic) = restriction.r#type.map(Traffic::as_str) else { continue };
        if let Some(key) = first.get(&(traffic, restriction.enforced)) {
            let message = format!("{other} of {} already restricts `{traffic}`", source_in_words(source));
            findings.report(key, ["type"], message);
        }
    }
}

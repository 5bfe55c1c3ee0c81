//! `expired-exemption`: an exemption of an invariant that no longer counts.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "expired-exemption",
    default: Level::Deny,
    summary: "An exemption of an Invariant has expired.",
    why: "The invariant now applies to the requests of the exemption. If it does not hold for them, changes to their \
          edge may be refused.",
    cure: "Make the invariant hold for these requests and remove the exemption, or agree on a later day with its owner.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, invariant) in view.all::<Invariant>() {
        for (index, exemption) in invariant.exemptions.iter().enumerate().filter(|(_, it)| !it.counts(view.now())) {
            let (owner, day) = (printable(&exemption.owner), printable(&exemption.expires));
            let path = Path::from(("exemptions", index)).join("expires");
            findings.report(key, path, format!("the exemption of `{owner}` expired after {day}"));
        }
    }
}

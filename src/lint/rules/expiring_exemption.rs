//! `expiring-exemption`: an exemption of an invariant that soon no longer counts.

use jiff::SignedDuration;

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "expiring-exemption",
    default: Level::Warn,
    summary: "An exemption of an Invariant expires within 30 days.",
    why: "After that, the manifests are refused. To set another number of days, use `certificate_expiry_days`, which \
          applies to this lint, too.",
    cure: "Make the invariant hold for these requests and remove the exemption, or agree on a later day with its owner.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let (now, notice) = (view.now(), SignedDuration::from_hours(i64::from(view.expiry_days()) * 24));
    for (key, invariant) in view.all::<Invariant>() {
        for (index, exemption) in invariant.exemptions.iter().enumerate() {
            if exemption.end().is_some_and(|end| now < end && end.duration_since(now) <= notice) {
                let (owner, day) = (printable(&exemption.owner), printable(&exemption.expires));
                let path = Path::from(("exemptions", index)).join("expires");
                findings.report(key, path, format!("the exemption of `{owner}` expires after {day}"));
            }
        }
    }
}

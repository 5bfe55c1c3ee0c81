//! The digest of a report, so that what stays as it was is reported once and not with every sync.

use std::io::Write;

use crate::reconcile::run::report::RunReport;

/// The digest of a report, hashed while writing because the text may be as large as the manifests.
///
/// Only what is reported counts: tables in memory have another order in each run.
pub(super) fn digest(report: &RunReport, commit: Option<&str>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let _ = match report {
        // Changes by others say nothing new about the manifests.
        RunReport::InSync { unchanged, .. } => write!(hasher, "in sync {unchanged}"),
        // Each failure is logged when it occurs.
        RunReport::Unfetched { applied, resources, .. } => {
            let revision = applied.as_ref().map(|(_, revision)| revision);
            write!(hasher, "unfetched {resources} {revision:?}")
        }
        RunReport::Invalid(planned) => write!(hasher, "invalid at {commit:?} {:?}", planned.diagnostics),
        // Changes that were applied in addition to drift are reported once, and not again when nothing is left to
        // apply.
        RunReport::Drifted { applied: _, drifted, resources, fight_until } => {
            write!(hasher, "drifted {drifted} {resources:?} {fight_until:?}")
        }
        RunReport::Failed(found) => write!(hasher, "failed at {commit:?} {found:?}"),
        RunReport::Partly(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.len());
            let reported = (&planned.diagnostics, planned.left_out_names(), changes);
            write!(hasher, "partly {reported:?}")
        }
        RunReport::Suspended(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.as_slice()).unwrap_or_default();
            let reported: Vec<_> = changes.iter().map(|change| (&change.key, change.effect)).collect();
            write!(hasher, "suspended {:?} {reported:?}", planned.diagnostics)
        }
        _ => write!(hasher, "{report:?}"),
    };
    hasher.finalize()
}

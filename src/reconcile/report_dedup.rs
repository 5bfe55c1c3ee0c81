//! The digest of a report, so that what stays as it was is reported once and not with every sync.

use std::fmt;

use super::report::RunReport;

/// The digest of a report, hashed while writing because the text may be as large as the manifests.
///
/// Only what is reported counts: tables in memory have another order in each run.
pub(super) fn digest(report: &RunReport, commit: Option<&str>) -> blake3::Hash {
    struct HashWriter(blake3::Hasher);
    impl fmt::Write for HashWriter {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.update(text.as_bytes());
            Ok(())
        }
    }
    let mut writer = HashWriter(blake3::Hasher::new());
    let _ = match report {
        // Changes by others are not news about the manifests.
        RunReport::InSync { unchanged, .. } => fmt::Write::write_fmt(&mut writer, format_args!("in sync {unchanged}")),
        // Each failure is logged when it occurs.
        RunReport::Unfetched { applied, resources, .. } => {
            let revision = applied.as_ref().map(|(_, revision)| revision);
            fmt::Write::write_fmt(&mut writer, format_args!("unfetched {resources} {revision:?}"))
        }
        RunReport::Invalid(planned) => {
            fmt::Write::write_fmt(&mut writer, format_args!("invalid at {commit:?} {:?}", planned.diagnostics))
        }
        // What was applied beside drift is news once, and not when it is no longer to be applied.
        RunReport::Drifted { applied: _, drifted, resources, fight_until } => {
            fmt::Write::write_fmt(&mut writer, format_args!("drifted {drifted} {resources:?} {fight_until:?}"))
        }
        RunReport::Failed(found) => fmt::Write::write_fmt(&mut writer, format_args!("failed at {commit:?} {found:?}")),
        RunReport::Partly(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.len());
            let news = (&planned.diagnostics, planned.left_out_names(), changes);
            fmt::Write::write_fmt(&mut writer, format_args!("partly {news:?}"))
        }
        RunReport::Suspended(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.as_slice()).unwrap_or_default();
            let news: Vec<_> = changes.iter().map(|change| (&change.key, change.effect)).collect();
            fmt::Write::write_fmt(&mut writer, format_args!("suspended {:?} {news:?}", planned.diagnostics))
        }
        _ => fmt::Write::write_fmt(&mut writer, format_args!("{report:?}")),
    };
    writer.0.finalize()
}

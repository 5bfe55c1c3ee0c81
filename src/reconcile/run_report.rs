//! What a run of the loop comes to: for the log, the condition of the loop, and the history.

use std::fmt;

use super::{Planned, health::Reason};
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name, Severity},
    },
    plan::Plan,
};

/// A report of the loop.
#[derive(Debug)]
pub enum RunReport {
    /// A plan was applied.
    Applied {
        /// The plan.
        plan: Plan,
        /// The new revision of the store.
        revision: u64,
    },
    /// The store matches the folder.
    InSync {
        /// The number of resources of the source.
        unchanged: usize,
        /// The revision of the store.
        revision: u64,
    },
    /// The manifests have errors; the store keeps its last good state.
    Invalid(Planned),
    /// Some manifests have errors; the rest is applied (D44).
    Partly(Planned),
    /// A rollback left the state that the manifests declare. They are not applied again until they change.
    RolledBack {
        /// The commit of the manifests, if they are in Git.
        commit: Option<String>,
    },
    /// The plan was refused or failed.
    Failed(Vec<Diagnostic>),
}

impl RunReport {
    /// The reason for the loop's condition (D33).
    pub(super) fn condition(&self) -> (Reason, String) {
        let errors = |planned: &Planned| {
            let count = planned.diagnostics.iter().filter(|it| it.severity == Severity::Error).count();
            format!("{count} error{} in the manifests", if count == 1 { "" } else { "s" })
        };
        match self {
            RunReport::Applied { plan, .. } => (Reason::Applied, plan.summary().to_string()),
            RunReport::InSync { unchanged, .. } => (Reason::InSync, format!("{unchanged} unchanged")),
            RunReport::Invalid(planned) => (Reason::Invalid, errors(planned)),
            RunReport::Partly(planned) => (Reason::PartlyApplied, errors(planned)),
            RunReport::RolledBack { commit } => {
                let what =
                    commit.as_ref().map_or_else(|| "the manifests".to_owned(), |commit| format!("commit {commit}"));
                (Reason::RolledBack, format!("a rollback left {what}; the manifests are not applied until they change"))
            }
            RunReport::Failed(diagnostics) => {
                let message = diagnostics.first().map(|it| it.message.clone()).unwrap_or_default();
                let reason = match diagnostics.first().map(|it| it.code) {
                    Some(Name::Code(Code::PreventDestroy | Code::TooManyDeletions)) => Reason::Refused,
                    Some(Name::Code(Code::Internal)) => Reason::Panicked,
                    _ => Reason::Failed,
                };
                (reason, message)
            }
        }
    }
}

/// The digest of a report, hashed while writing because the text may be as large as the manifests.
pub(super) fn digest(report: &RunReport) -> blake3::Hash {
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
        RunReport::Partly(planned) => {
            let changes = planned.plan.as_ref().map(|plan| plan.changes.len());
            let news = (&planned.diagnostics, planned.left_out_names(), changes);
            fmt::Write::write_fmt(&mut writer, format_args!("partly {news:?}"))
        }
        _ => fmt::Write::write_fmt(&mut writer, format_args!("{report:?}")),
    };
    writer.0.finalize()
}

//! The result of a run: its report, and what it found for the status.

use std::collections::BTreeSet;

use super::{options::Options, report::RunReport};
use crate::model::author::Author;
use crate::model::snapshot::Snapshot;
use crate::reconcile::sync_loop::status::RunFindings;

/// The result of a run.
pub(crate) struct RunResult {
    /// The report.
    pub report: RunReport,
    /// The findings, for the status.
    pub findings: RunFindings,
    /// The source, with the commit of the manifests if they are in Git.
    pub author: Author,
    /// The paths of the resources that were left as they are although the manifests differ: because of drift.
    pub left: BTreeSet<String>,
    /// The state that the manifests declare, if drift was left as it is.
    pub declared: Option<Snapshot>,
}

impl RunResult {
    /// Whether the run was cancelled before its end. Then it has no result.
    pub(in crate::reconcile) fn is_cut_short(&self, options: &Options) -> bool {
        options.cancel.is_cancelled() && matches!(self.report, RunReport::Invalid(_) | RunReport::Failed(_))
    }
}

/// The commit of the manifests, if known.
pub(in crate::reconcile) fn commit_of(author: &Author) -> Option<String> {
    match author {
        Author::Source { commit, .. } => commit.clone(),
        _ => None,
    }
}

//! What a command proposes to change, wherever it is planned and applied.

use super::api_response::SendError;
use crate::cli::prelude::*;
use crate::plan::format::json::ReportDocument;
use crate::plan::{RedactedPlan, SavedPlan};
use crate::server::operations::reconciliation::wire::{RoutingOfPlan, TraceOfPlan};

#[derive(Default)]
pub(crate) struct Proposal {
    pub report: Report,
    /// Descriptions of the skipped resources (D44).
    pub left_out: Vec<String>,
    pub saved: Option<SavedPlan>,
    /// The errors of token files that cannot be written.
    pub unwritable: Vec<Diagnostic>,
    /// The way of a request before and after the plan, if a server was asked for it.
    pub traced: Option<TraceOfPlan>,
    /// The routing before and after the plan, if a server was asked for it.
    pub routing: Option<RoutingOfPlan>,
}

/// What became of a plan that was to be applied.
pub(crate) struct AppliedPlan {
    /// The revision; none if there was nothing to change.
    pub revision: Option<u64>,
    /// The plan as a server applied it, which sees all secrets.
    pub plan: Option<RedactedPlan>,
}

impl AppliedPlan {
    pub(crate) fn as_shown(revision: u64) -> Self {
        Self { revision: Some(revision), plan: None }
    }

    /// The plan in the report from a URL of a server. Fails with the help `see` if the report does not tell what became of it. A
    /// plan that was shown without secrets may have nothing to change.
    pub(crate) fn from_report(report: ReportDocument, hid_secrets: bool, at: &str, see: &str) -> Result<Self, Failure> {
        let ReportDocument { applied: revision, plan, .. } = report;
        if revision.is_some() || (hid_secrets && plan.as_ref().is_some_and(RedactedPlan::is_empty)) {
            return Ok(Self { revision, plan });
        }
        Err(SendError::no_response(at, "it has no applied revision").failure(see))
    }
}

/// The purpose of a plan's document.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PlanFile<'a> {
    /// To save it for a review.
    ToSave,
    /// To compare it with the reviewed plan.
    LikeReviewed(&'a SavedPlan),
}

/// A store to plan against and apply to.
pub(crate) trait Target {
    /// Reads the manifests and plans without changing anything. `document` requests the plan as a document too.
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure>;

    /// The sources with resources, as far as the caller sees them.
    fn sources(&self) -> BTreeSet<String>;

    /// Applies the last proposal. `hid_secrets` if it was shown without secrets.
    fn apply(&mut self, hid_secrets: bool) -> Result<AppliedPlan, Failure>;

    /// Records in the history of a local store why the proposal is not applied. A server records no dry run.
    fn refuse(&mut self, _reason: &Diagnostic) {}
}

//! What a command proposes to change, wherever it is planned and applied.

use crate::{cli::prelude::*, plan::saved_plan::SavedPlan};

/// The result of planning.
#[derive(Default)]
pub(in crate::cli) struct Proposal {
    /// The report to show.
    pub report: Report,
    /// Descriptions of the skipped resources (D44).
    pub left_out: Vec<String>,
    /// The plan as a document, if requested.
    pub saved: Option<SavedPlan>,
    /// The errors of token files that cannot be written.
    pub unwritable: Vec<Diagnostic>,
}

/// The purpose of a plan's document.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) enum PlanFile<'a> {
    /// To save it for a review.
    ToSave,
    /// To compare it with the reviewed plan.
    LikeReviewed(&'a SavedPlan),
}

/// A store to plan against and apply to.
pub(in crate::cli) trait Target {
    /// Reads the manifests and plans without changing anything. `document` requests the plan as a document too.
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure>;

    /// Applies the last proposal and returns its revision.
    fn apply(&mut self) -> Result<u64, Failure>;

    /// Records in the history why the proposal is not applied.
    fn refuse(&mut self, _reason: &str) {}
}

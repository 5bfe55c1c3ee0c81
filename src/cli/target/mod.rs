//! The targets of `reconcile`: a local store or a server.

pub(crate) mod store_or_server;

mod change;
mod chosen;
mod client;
mod credentials;
mod destroy;
mod history;
mod keys;
mod local;
mod pages;
mod rekey;
mod rollback;
mod server;
mod transfer;
mod upload;

pub(super) use change::{ChangeTarget, StoreChange};
pub(super) use chosen::ServerArgs;
pub(super) use client::{ApiClient, foreign_response, host_of};
pub(super) use credentials::Credentials;
pub(super) use history::{each_record, entry_of, record_of};
pub(super) use keys::{ApiKeyOfServer, SEE_ROLES, create_through, delete_through, keys_of, role_through};
pub(super) use local::{Local, RunMemory};
pub(super) use pages::Pages;
pub(super) use rekey::rekey_through;
pub(super) use rollback::RollbackTarget;
pub(super) use server::ServerTarget;

use super::Failure;
use crate::{
    model::diagnostics::diagnostic::Diagnostic,
    plan::{Plan, report::Report, saved::SavedPlan},
};

/// The result of planning.
pub(super) struct Proposal {
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
pub(super) enum PlanFile<'a> {
    /// To save it for a review.
    ToSave,
    /// To compare it with the reviewed plan.
    LikeReviewed(&'a SavedPlan),
}

/// A store to plan against and apply to.
pub(super) trait Target {
    /// Reads the manifests and plans without changing anything. `document` requests the plan as a document too.
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure>;

    /// Returns the plan of the last proposal if it was made by this process; a server sends only its outline.
    fn plan(&self) -> Option<&Plan> {
        None
    }

    /// Applies the last proposal and returns its revision.
    fn apply(&mut self) -> Result<u64, Failure>;

    /// Records in the history why the proposal is not applied.
    fn refuse(&mut self, _reason: &str) {}
}

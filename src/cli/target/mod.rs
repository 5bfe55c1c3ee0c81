//! The targets of commands: a local store or a server. `reconcile` has a `Target` for each, in `store.rs` and `server.rs`;
//! `client.rs` is the client of a server, and `server_args.rs` chooses the server.

pub(crate) mod store_or_server;

mod client;
mod credentials;
mod history;
mod keys;
mod pages;
mod server;
mod server_args;
mod store;
mod upload;

pub(super) use client::{
    ApiClient, RequestEffect, SendError, foreign_response, no_response, parse_report, parse_response, parse_server_url,
};
pub(super) use credentials::{Credentials, TOKEN};
pub(super) use history::{each_record, get_entry, to_record};
pub(super) use keys::{ListedKey, create_key, delete_key, list_keys, owner_role, set_owner_role};
pub(super) use server::ServerTarget;
pub(super) use server_args::ServerArgs;
pub(super) use store::{RunMemory, StoreTarget};

use super::Failure;
use crate::{
    model::Diagnostic,
    plan::{Plan, report::Report, saved::SavedPlan},
};

/// The result of planning.
#[derive(Default)]
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

    /// Returns the plan of the last proposal if it was made by this process; a server sends only a redacted plan.
    fn plan(&self) -> Option<&Plan> {
        None
    }

    /// Applies the last proposal and returns its revision.
    fn apply(&mut self) -> Result<u64, Failure>;

    /// Records in the history why the proposal is not applied.
    fn refuse(&mut self, _reason: &str) {}
}

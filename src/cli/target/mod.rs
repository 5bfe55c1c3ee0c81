//! Where `reconcile` plans and applies: a store of this machine, or a server.

mod local;
mod server;

pub use local::Local;
pub use server::{Server, ServerArgs};

use super::Failure;
use crate::{
    model::diagnostic::Diagnostic,
    plan::{report::Report, saved::SavedPlan},
};

/// What came of planning.
pub struct Proposal {
    /// What there is to tell.
    pub report: Report,
    /// What was set aside, for a person (D44).
    pub left_out: Vec<String>,
    /// The plan as a document, where one was asked for.
    pub saved: Option<SavedPlan>,
    /// Why the tokens of new keys cannot be written on this machine.
    pub unwritable: Vec<Diagnostic>,
}

/// Something that plans and applies.
pub trait Target {
    /// Reads the manifests and plans. Changes nothing. `document` asks for the plan as a document too.
    fn propose(&mut self, document: bool) -> Result<Proposal, Failure>;

    /// Applies what was proposed last, as the revision that is returned.
    fn apply(&mut self) -> Result<u64, Failure>;

    /// Records that what was proposed is not applied, and why.
    fn refuse(&mut self, _reason: &str) {}
}

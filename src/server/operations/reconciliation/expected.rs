//! Plans as documents, and those that a client expects: with the secrets of the source, or without them if whoever reviewed
//! the plan does not see them (D59, D101).

use super::ReconciliationJob;
use crate::{
    model::{
        diagnostics::{
            code::Code,
            diagnostic::{Diagnostic, Severity},
        },
        json::JsonError,
        key::Key,
    },
    plan::{
        Effect, Plan,
        saved::{Guard, Pin, SavedPlan},
    },
    reconcile::Planned,
};

impl ReconciliationJob<'_> {
    /// The plan as a document; none for one that cannot be applied.
    pub(super) fn saved(&self, planned: &Planned) -> Result<Option<SavedPlan>, JsonError> {
        self.document(planned, |plan, pin| SavedPlan::new(plan, planned.desired.values(), pin))
    }

    /// The plan of a caller who does not see the secrets of the source, so that the digest confirms no guess.
    pub(super) fn masked(&self, planned: &Planned) -> Result<Option<SavedPlan>, JsonError> {
        self.document(planned, |plan, pin| SavedPlan::masked(plan, planned.desired.values(), pin))
    }

    fn document(
        &self,
        planned: &Planned,
        write: impl Fn(&Plan, &Pin<'_>) -> Result<SavedPlan, JsonError>,
    ) -> Result<Option<SavedPlan>, JsonError> {
        if self.options.tree.assumes_values() {
            return Ok(None);
        }
        let guard = Guard::Store(self.app.served.store.root_secret());
        let pin = Pin { guard, source: &self.options.source, commit: self.options.tree.commit() };
        planned.plan.as_ref().map(|plan| write(plan, &pin)).transpose()
    }
}

/// A plan's outcome; empty without a plan.
pub(super) fn outcome(saved: Option<&SavedPlan>) -> Result<String, JsonError> {
    saved.map_or_else(|| Ok(String::new()), SavedPlan::outcome)
}

/// Whether a plan creates and deletes the same resources as the one without secrets, which shows all other changes.
pub(in crate::server) fn differs_in_secrets_only(plan: &Plan, masked: &Plan) -> bool {
    let moved = |plan: &Plan| -> Vec<(Key, Effect)> {
        let moves = |effect: Effect| matches!(effect, Effect::Create | Effect::Replace | Effect::Delete);
        let changes = plan.changes.iter().filter(|change| moves(change.effect));
        changes.map(|change| (change.key.clone(), change.effect)).collect()
    };
    moved(plan) == moved(masked)
}

/// Warns that the reviewer of a plan has not seen the secrets.
pub(in crate::server) fn tell_unreviewed(planned: &mut Planned) {
    if planned.plan.as_ref().is_none_or(Plan::is_empty) {
        return;
    }
    let message = "the plan was reviewed without the values of secrets, which may have changed";
    let warning = Diagnostic::error(Code::UnreviewedSecrets, message);
    let warning = warning.help("to cover them, review the plan with an API key that may apply the source");
    planned.diagnostics.push(Diagnostic { severity: Severity::Warning, ..warning });
}

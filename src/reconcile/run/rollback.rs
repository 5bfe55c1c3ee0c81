//! A rollback: the state of an earlier revision as a new one, through the same checks as any plan (D78).

use super::{apply::apply_current, apply_error::ApplyError, plan_result::PlanResult, token::TokenFiles};
use crate::model::author::RejectedManifests;
use crate::model::{Author, Id, JsonError, Snapshot};
use crate::plan::{DeletionBudget, revert};
use crate::reconcile::sources::secret_visibility::{uncompared_by_rollback, with_secrets_of_state};
use crate::reconcile::sync_loop::known_condition::synced_manifests;
use crate::store::{CommitError, Store, StoreError};

/// The target of a rollback.
#[derive(Debug, Clone)]
pub(crate) struct Rollback {
    /// The revision.
    pub to: u64,
    /// The source that it is limited to, if any.
    pub source: Option<String>,
    /// The deletion limit (D41).
    pub budget: DeletionBudget,
}

impl Rollback {
    /// Plans the changes from `current` to `target`, the state of the revision. Changes nothing.
    pub(crate) fn plan(&self, current: &Snapshot, target: &Snapshot) -> PlanResult {
        PlanResult::without_manifests(current, revert(current, target, self.source.as_deref(), self.budget))
    }

    /// Plans for a reader who does not see the secrets of both states: the plan changes none, and a warning says which
    /// resources have some.
    pub(crate) fn masked_plan(&self, current: &Snapshot, target: &Snapshot) -> Result<PlanResult, JsonError> {
        let mut planned = self.plan(&with_secrets_of_state(current, target)?, target);
        planned.diagnostics.extend(uncompared_by_rollback(current, target, self.source.as_deref()));
        Ok(planned)
    }

    /// Plans on the current revision, and applies the plan if `accept` returns it. `caller` is the API key of the request
    /// and its owner. Returns the plan and its revision, or no revision if there was nothing to do.
    pub(crate) fn apply<E: From<ApplyError>>(
        &self,
        store: &Store,
        target: &Snapshot,
        caller: Option<&(Id, Id)>,
        accept: impl FnMut(&Snapshot, PlanResult) -> Result<PlanResult, E>,
    ) -> Result<(PlanResult, Option<u64>), E> {
        let plan = |current: &Snapshot| self.plan(current, target);
        let author = |current: &Snapshot| -> Result<Author, ApplyError> {
            let rejected = manifests_left(store, current, target, self.source.as_deref());
            let rejected = rejected.map_err(|error| ApplyError::Commit(CommitError::Failed(error)))?;
            Ok(Author::Rollback { to: self.to, source: self.source.clone(), rejected, through: caller.cloned() })
        };
        apply_current(store, plan, author, &mut TokenFiles::default(), accept, || Ok(()))
    }

    /// The author of attempts that changed nothing.
    pub(crate) fn attempted(&self, caller: Option<&(Id, Id)>) -> Author {
        Author::Rollback { to: self.to, source: self.source.clone(), rejected: Vec::new(), through: caller.cloned() }
    }
}

/// Returns the manifests that a rollback from one state to another leaves, of each source or of one.
pub(crate) fn manifests_left(
    store: &Store,
    current: &Snapshot,
    target: &Snapshot,
    source: Option<&str>,
) -> Result<Vec<RejectedManifests>, StoreError> {
    store.left_by(current, target, source, &synced_manifests(store))
}

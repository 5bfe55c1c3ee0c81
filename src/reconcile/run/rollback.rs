//! A rollback: the state of an earlier revision as a new one, through the same checks as any plan (D78).

use super::{apply_error::ApplyError, plan_result::PlanResult, planned_change::PlannedChange};
use crate::model::JsonError;
use crate::model::author::RejectedManifests;
use crate::plan::{DeletionBudget, revert};
use crate::reconcile::prelude::*;
use crate::reconcile::sources::secret_visibility::{uncompared_by_rollback, with_secrets_of_state};
use crate::reconcile::sync_loop::known_condition::synced_manifests;

/// A rollback to the state of an earlier revision.
#[derive(Debug, Clone)]
pub(crate) struct Rollback {
    /// The state of the revision.
    pub target: Arc<Snapshot>,
    /// The source that it is limited to, if any.
    pub source: Option<String>,
    /// The deletion limit (D41).
    pub budget: DeletionBudget,
}

impl Rollback {
    /// Plans for a reader who does not see the secrets of both states: the plan changes none, and a warning says which
    /// resources have some.
    pub(crate) fn masked_plan(&self, current: &Snapshot) -> Result<PlanResult, JsonError> {
        let mut planned = self.plan(&with_secrets_of_state(current, &self.target)?);
        planned.diagnostics.extend(uncompared_by_rollback(current, &self.target, self.source.as_deref()));
        Ok(planned)
    }
}

impl PlannedChange for Rollback {
    fn plan(&self, current: &Snapshot) -> PlanResult {
        PlanResult::without_manifests(current, revert(current, &self.target, self.source.as_deref(), self.budget))
    }

    fn author_on(&self, store: &Store, current: &Snapshot, mut author: Author) -> Result<Author, ApplyError> {
        if let Author::Rollback { rejected, .. } = &mut author {
            *rejected = manifests_left(store, current, &self.target, self.source.as_deref())
                .map_err(|error| ApplyError::Commit(CommitError::Failed(error)))?;
        }
        Ok(author)
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

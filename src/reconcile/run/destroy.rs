//! Destroying a source: everything that it owns is deleted in one revision, through the same checks as any plan (D108).

use super::plan_result::PlanResult;
use super::planned_change::PlannedChange;
use crate::model::Snapshot;
use crate::plan::{DeletionBudget, destroy};

/// The source to destroy.
#[derive(Debug, Clone)]
pub(crate) struct Destroy {
    /// The name of the source.
    pub source: String,
    /// The deletion limit (D41); the default limits nothing.
    pub budget: DeletionBudget,
}

impl PlannedChange for Destroy {
    fn plan(&self, current: &Snapshot) -> PlanResult {
        PlanResult::without_manifests(current, destroy(current, &self.source, self.budget))
    }
}

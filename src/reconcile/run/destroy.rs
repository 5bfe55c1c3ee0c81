//! Destroying a source: everything that it owns is deleted in one revision, through the same checks as any plan (D108).

use super::{apply::apply_current, apply_error::ApplyError, plan_result::PlanResult, token::TokenFiles};
use crate::plan::{DeletionBudget, destroy};
use crate::reconcile::prelude::*;

/// The source to destroy.
#[derive(Debug, Clone)]
pub(crate) struct Destroy {
    /// The name of the source.
    pub source: String,
    /// The deletion limit (D41); the default limits nothing.
    pub budget: DeletionBudget,
}

impl Destroy {
    /// Plans the deletions. Changes nothing.
    pub(crate) fn plan(&self, current: &Snapshot) -> PlanResult {
        PlanResult::without_manifests(current, destroy(current, &self.source, self.budget))
    }

    /// Plans on the current revision, and applies the plan if `accept` returns it. `caller` is the API key of the request
    /// and its owner. Returns the plan and its revision, or no revision if there was nothing to do.
    pub(crate) fn apply<E: From<ApplyError>>(
        &self,
        store: &Store,
        caller: Option<&(Id, Id)>,
        accept: impl FnMut(&Snapshot, PlanResult) -> Result<PlanResult, E>,
    ) -> Result<(PlanResult, Option<u64>), E> {
        let plan = |current: &Snapshot| self.plan(current);
        let author = |_: &Snapshot| Ok(self.author(caller));
        apply_current(store, plan, author, &mut TokenFiles::default(), accept, || Ok(()))
    }

    /// The author of the revision, and of attempts that changed nothing.
    pub(crate) fn author(&self, caller: Option<&(Id, Id)>) -> Author {
        let author = Author::destroy_of(&self.source);
        match caller {
            Some((key, owner)) => author.with_api_key(key.clone(), owner.clone()),
            None => author,
        }
    }
}

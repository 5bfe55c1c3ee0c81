//! A change that is planned from the store and not from manifests: a rollback, a transfer, destroying a source. It takes the
//! same checks as any plan.

use super::{apply::apply_current, apply_error::ApplyError, plan_result::PlanResult, token::TokenFiles};
use crate::reconcile::prelude::*;

/// A change of the store without manifests.
pub(crate) trait PlannedChange {
    /// Plans the change of a state. Changes nothing.
    fn plan(&self, current: &Snapshot) -> PlanResult;

    /// The author of the revision that changes a state. `author` is that of attempts that changed nothing.
    fn author_on(&self, _store: &Store, _current: &Snapshot, author: Author) -> Result<Author, ApplyError> {
        Ok(author)
    }

    /// Plans on the current revision, and applies the plan if `accept` returns it. Returns the plan and its revision, or no
    /// revision if there was nothing to do.
    fn apply<E: From<ApplyError>>(
        &self,
        store: &Store,
        author: &Author,
        accept: impl FnMut(&Snapshot, PlanResult) -> Result<PlanResult, E>,
    ) -> Result<(PlanResult, Option<u64>), E> {
        let plan = |current: &Snapshot| self.plan(current);
        let author = |current: &Snapshot| self.author_on(store, current, author.clone());
        apply_current(store, plan, author, &mut TokenFiles::default(), accept, || Ok(()))
    }
}

//! Applies a plan to a Snapshot without a commit.

use crate::reconcile::prelude::*;
use crate::store::CommitRefusals;

/// Tries a plan on the Snapshot, to report now what a commit would refuse, what the plan opens, and what it takes
/// from others.
pub(crate) fn apply_speculatively(
    snapshot: &Snapshot,
    plan: &mut Plan,
) -> Result<Option<Arc<SpeculativeCommit>>, CommitRefusals> {
    plan.opened = plan.lost_protections();
    plan.behaviour = None;
    plan.lost_certificates.clear();
    if !plan.refusals.is_empty() || plan.is_empty() {
        return Ok(None);
    }
    let tried = SpeculativeCommit::new(snapshot, &plan.each_operation())?;
    plan.note_effects(snapshot, tried.after());
    Ok(Some(Arc::new(tried)))
}

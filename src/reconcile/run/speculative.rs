//! Applies a plan to a Snapshot without a commit.

use crate::plan::{BehaviourDiff, PlanEffects};
use crate::reconcile::prelude::*;
use crate::routing::invariant::broken_behind_others;
use crate::store::CommitRefusals;

/// Tries a plan on the Snapshot, to report now what a commit would refuse, what the plan opens or weakens, and what it
/// takes from others.
pub(crate) fn apply_speculatively(
    snapshot: &Snapshot,
    plan: &mut Plan,
) -> Result<Option<Arc<SpeculativeCommit>>, CommitRefusals> {
    plan.effects = PlanEffects::default();
    if !plan.refusals.is_empty() || plan.is_empty() {
        return Ok(None);
    }
    let tried = SpeculativeCommit::new(snapshot, &plan.each_operation())?;
    plan.note_effects(snapshot, tried.after());
    plan.effects.broken_behind_others = broken_behind_others(snapshot, tried.after(), tried.changed(), clock::now());
    Ok(Some(Arc::new(tried)))
}

/// Notes how a plan treats requests differently. What a plan does that was refused before it was tried is unknown.
pub(crate) fn note_behaviour(plan: &mut Plan, tried: Option<&SpeculativeCommit>) {
    match tried {
        Some(tried) => plan.note_behaviour(tried.before(), tried.after()),
        None if plan.is_empty() => plan.effects.behaviour = Some(BehaviourDiff::default()),
        None => {}
    }
}

/// Notes how a plan that invariants refuse would treat requests differently: whoever has to correct it needs that most. Returns
/// false if anything else refuses it, so that nobody knows what it would do.
pub(crate) fn note_refused_behaviour(plan: &mut Plan, snapshot: &Snapshot) -> bool {
    let Ok((after, _)) = snapshot.apply(&plan.each_operation(), clock::now()) else { return false };
    plan.note_behaviour(snapshot, &after);
    true
}

//! Resources that a rollback took from a source, and that a command gave to it again: its manifests may declare them, although
//! they are still those that the rollback left (D78).

use crate::{
    model::{operation::Operation, snapshot::Snapshot},
    plan::{Change, Plan},
};

/// Whether a plan changes nothing but claims on resources that were transferred to the source since the rollback. Anything
/// else that the rollback undid stays undone.
pub(super) fn only_declares(plan: &Plan, current: &Snapshot, source: &str) -> bool {
    let moved = current.moved_again(source);
    let declares = |operation: &Operation| match operation {
        Operation::Claim { claim: Some(claim), .. } => claim.source == source && !claim.is_promised(),
        _ => false,
    };
    let is_given = |change: &Change| {
        let held = current.get(&change.key).and_then(|entry| entry.claim.as_deref());
        held.is_some_and(|held| held.source == source && held.awaits_manifest())
            && moved.contains(change.key.path().as_str())
    };
    let completes = |change: &Change| change.operations.iter().all(declares) && is_given(change);
    !moved.is_empty() && plan.changes.iter().all(completes)
}

//! Tells drift from pending changes, and leaves drift out of a plan (D85).
//!
//! # The problem
//!
//! A plan only shows that manifests and store differ. Whether the manifests changed (pending), somebody changed the
//! store by hand (drift), or both (conflict) needs a third state: what the source applied last. Storing it would double
//! every resource.
//!
//! # The idea
//!
//! The third state is computed: it is the present state with the writes of others undone, back to the last write of the
//! source to the field. The history has these writes with the values before them (`store::history::external_writes`).
//! Fields are compared one by one, by digests for secrets, which outlive their data keys.
//!
//! For example, the source applied `description: Products`, and a key set `Sale`. Undoing that write gives `Products`.
//! If the manifest still says so, the field drifted; if it says `All products`, it is a conflict, and the manifest
//! wins.
//!
//! [`find_drift`] only annotates a plan: what it does stays the same, so a saved plan and its digest do not depend on
//! drift. [`hold`] is for the policies `warn` and `off`: it removes the operations that would revert drift, and then
//! whatever depends on a resource that others have deleted, which it finds by trying the rest on the state.
//!
//! # What it never does
//!
//! It reads the history only for the resources that a plan changes, and of each commit only the header and the entry of
//! the resource. A write that is not found within bounds counts as pending: the plan is still applied, and only its
//! label is missing. It tells nobody whether a secret that they do not see is as a manifest guesses.

use crate::background::yield_to_requests;
use crate::model::drift::{DriftFields, ExternalWrite, only_others_changed};
use crate::model::secrets::serialization_mode::without_digests;
use crate::model::{AnyResource, Claim, DriftState, DriftedResource, Entry, Kind};
use crate::plan::Effect;
use crate::reconcile::prelude::*;
use crate::reconcile::run::fault_message::fault_message;
use crate::reconcile::run::plan_result::PlanResult;
use crate::reconcile::run::speculative::apply_speculatively;
use crate::reconcile::sources::secret_visibility::SecretFilter;

/// The most changes of a plan whose drift is looked up.
const MOST_LOOKUPS: usize = 500;
/// The most changes that are left out because they depend on what drifted and has not changed hands in the plan.
const MOST_TRIES: usize = 50;

/// The changes that were left out of a plan.
#[derive(Debug, Default)]
pub(crate) struct HeldChanges {
    /// The number of resources that drifted and stay as they are.
    pub drifted: usize,
    /// The number of changes that cannot be applied without reverting drift.
    pub waiting: usize,
}

impl HeldChanges {
    /// Whether the whole plan is applied.
    pub(crate) fn is_empty(&self) -> bool {
        self.drifted + self.waiting == 0
    }
}

/// Looks up what others have changed of the resources that a plan changes, and where they declare what uses the ones
/// that it keeps, and adds it to the plan. Does not change what the plan does. Secrets that the reader of the plan does
/// not see, if `sees` tells them, are not compared.
pub(crate) fn find_drift(
    store: &Store,
    source: &str,
    snapshot: &Snapshot,
    planned: &mut PlanResult,
    sees: Option<&SecretFilter>,
) -> Result<(), StoreError> {
    planned.locate_users_of_kept(store, source);
    let Some(plan) = &planned.plan else { return Ok(()) };
    let replaced = plan.replaced();
    // The changes of others are in the history of the deleted resource.
    let written = |change: &Change| replaced.get(&change.key).map_or_else(|| change.key.clone(), |old| (*old).clone());
    // The replaced resource has the history, unless another source has handed it over.
    let is_owned = |it: &Change| snapshot.get(&written(it)).is_some_and(|entry| entry.is_owned_by(source));
    let can_drift = |it: &Change| {
        yield_to_requests();
        can_drift(it, source, snapshot) && (it.effect != Effect::Replace || is_owned(it))
    };
    let drifting = plan.changes.iter().filter(|it| can_drift(it));
    let mut keys: Vec<Key> = drifting.map(written).collect();
    let unknown = keys.len().saturating_sub(MOST_LOOKUPS);
    keys.truncate(MOST_LOOKUPS);
    let writes = store.external_writes(&keys, source, snapshot.revision)?;
    let mut found = Vec::new();
    for (at, change) in plan.changes.iter().enumerate() {
        yield_to_requests();
        // The deletion of a replaced resource has its drift at the resource that replaces it.
        if change.effect == Effect::Replaced {
            continue;
        }
        let key = written(change);
        let Some(writes) = writes.get(&key) else { continue };
        let Some((wanted, claim)) = wanted(planned, &change.key) else { continue };
        let entry = snapshot.get(&key);
        let digested = |entry: &Arc<Entry>| store.digested(&key, entry.spec(), entry.claim.as_deref());
        let mut live = entry.map(digested).transpose()?;
        let mut declared = store.digested(&key, &wanted, claim.as_deref())?;
        // The store no longer knows the owner of a deleted resource's secrets.
        let drift = match sees.is_none_or(|sees| entry.is_some_and(|entry| sees(entry))) {
            true => Drift::detect(source, live.as_ref(), &declared, writes),
            false => {
                live.iter_mut().for_each(hide_secrets);
                hide_secrets(&mut declared);
                Drift::detect(source, live.as_ref(), &declared, &without_secrets(writes))
            }
        };
        let drift = if change.effect == Effect::Replace { drift.map(Drift::into_conflict) } else { drift };
        found.extend(drift.map(|drift| (at, drift)));
    }
    let Some(plan) = &mut planned.plan else { return Ok(()) };
    plan.unexamined_drift = if found.is_empty() { 0 } else { unknown };
    for (at, drift) in found {
        if let Some(change) = plan.changes.get_mut(at) {
            change.drift = Some(drift);
        }
    }
    Ok(())
}

/// Replaces the digests of secrets, which would tell whether a guess in a manifest is right.
fn hide_secrets(fields: &mut DriftFields) {
    fields.values_mut().for_each(without_digests);
}

/// Removes the digests of secrets from writes.
fn without_secrets(writes: &[ExternalWrite]) -> Vec<ExternalWrite> {
    let mut writes = writes.to_vec();
    for write in &mut writes {
        write.before.iter_mut().chain(&mut write.after).for_each(without_digests);
    }
    writes
}

/// Whether a change may revert something: the source owns the resource, or the resource does not exist.
fn can_drift(change: &Change, source: &str, snapshot: &Snapshot) -> bool {
    match change.effect {
        Effect::Create => snapshot.get(&change.key).is_none(),
        Effect::Replace => true,
        Effect::Change => snapshot.get(&change.key).is_some_and(|entry| entry.is_owned_by(source)),
        _ => false,
    }
}

/// A Spec, and the claim of the source that owns it.
type ClaimedSpec = (Arc<dyn AnyResource>, Option<Arc<Claim>>);

/// The Spec and the claim that a resource has once the plan is applied.
fn wanted(planned: &PlanResult, key: &Key) -> Option<ClaimedSpec> {
    if let Some(entry) = planned.tried.as_ref().and_then(|tried| tried.after().get(key)) {
        return Some((Arc::clone(entry.spec()), entry.claim.clone()));
    }
    // A refused plan was not tried. The owner of a key may not be in its manifest.
    let desired = planned.desired.get(key).filter(|_| key.kind != Kind::ApiKey);
    desired.map(|desired| (Arc::clone(&desired.spec), Some(Arc::clone(&desired.claim))))
}

/// Whether a change does nothing but revert what others have changed. If the manifests have changed as well, it is pending.
pub(super) fn is_drift_alone(change: &Change) -> bool {
    change.drift.as_ref().is_some_and(|drift| only_others_changed(&drift.fields))
}

/// The resources of a plan that others have changed.
pub(super) fn drifted(plan: &Plan) -> impl Iterator<Item = DriftedResource> {
    let drifted = |change: &Change| {
        let drift = change.drift.as_ref()?;
        Some(DriftedResource::new(&change.key, change.name.clone(), drift))
    };
    plan.changes.iter().filter_map(drifted)
}

/// Leaves out of a plan what would revert drift. What both the manifests and others have changed stays in it. What was judged
/// of the whole plan has to be judged again.
pub(crate) fn hold(snapshot: &Snapshot, planned: &mut PlanResult) -> Result<HeldChanges, Vec<Diagnostic>> {
    let mut held = HeldChanges::default();
    let Some(plan) = &mut planned.plan else { return Ok(held) };
    let mut gone: BTreeSet<Key> = BTreeSet::new();
    let mut kept = Vec::new();
    for mut change in std::mem::take(&mut plan.changes) {
        let is_created = change.effect == Effect::Create;
        if is_created && change.drift.as_ref().is_some_and(|it| it.is_deletion() && it.state == DriftState::Drift) {
            gone.insert(change.key.clone());
            held.drifted += 1;
        } else if is_created && change.key.parent_key().is_some_and(|parent| gone.contains(&parent)) {
            gone.insert(change.key.clone());
            held.waiting += 1;
        } else {
            held.drifted += usize::from(leave_drift(&mut change));
            if !change.operations.is_empty() {
                kept.push(change);
            }
        }
    }
    plan.changes = kept;
    if held.is_empty() {
        return Ok(held);
    }
    // A change that is left out may refer to a deleted resource.
    for _ in 0..MOST_TRIES {
        let refusal = match apply_speculatively(snapshot, plan) {
            Ok(tried) => {
                planned.tried = tried;
                return Ok(held);
            }
            Err(refusals) => refusals.into_one(),
        };
        let before = plan.changes.len();
        plan.changes.retain(|change| change.key != refusal.key);
        if plan.changes.len() == before {
            let faults = refusal.faults.iter();
            return Err(faults
                .map(|fault| Diagnostic::error(fault.code, fault_message(&refusal.key, fault)))
                .collect());
        }
        held.waiting += before - plan.changes.len();
    }
    held.waiting += plan.changes.len();
    plan.changes.clear();
    plan.opened.clear();
    plan.weakened.clear();
    planned.tried = None;
    Ok(held)
}

/// Removes the operations that would revert drift. Returns whether there were any.
fn leave_drift(change: &mut Change) -> bool {
    let Some(drift) = change.drift.as_ref().filter(|drift| !drift.is_deletion()) else { return false };
    let units = drift.units();
    if units.is_empty() {
        return false;
    }
    let kept = std::mem::take(&mut change.operations).into_iter().filter_map(|operation| match operation {
        Operation::Patch { key, spec, mut fields } => {
            fields.retain(|field| !units.contains(field.as_str()));
            (!fields.is_empty()).then_some(Operation::Patch { key, spec, fields })
        }
        Operation::PutModule { slot, .. } | Operation::DeleteModule { slot, .. } if units.contains(slot.name) => None,
        other => Some(other),
    });
    let kept: Vec<Operation> = kept.collect();
    change.operations = kept;
    // Applying other changes does not repair the fields that are left as is.
    change.drift = None;
    true
}

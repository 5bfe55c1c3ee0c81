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
//! source to the field, or to the last sync that found what the manifests declare. The history has these writes with the
//! values before them (`store::history::external_writes`).
//! Fields are compared one by one, by digests for secrets, which outlive their data keys.
//!
//! For example, the source applied `description: Products`, and a key set `Sale`. Undoing that write gives `Products`.
//! If the manifest still says so, the field drifted; if it says `All products`, it is a conflict, and the manifest
//! wins.
//!
//! [`find_drift`] only annotates a plan: what it does stays the same, so a saved plan and its digest do not depend on
//! drift. [`hold`] is for the policies `warn` and `off`: it removes the operations that would revert drift, but for what is
//! put back in any case (`put_back`), and then whatever depends on a resource that others have deleted, which it finds by
//! trying the rest on the state. Of a replacement, it leaves both parts in the plan or none: a source never has two resources of
//! one name because of drift.
//!
//! # What it never does
//!
//! It reads the history only for the resources that a plan changes, and of each commit only the header and the entry of
//! the resource. A write that is not found within bounds counts as pending: the plan is still applied, and only its
//! label is missing. It tells nobody whether a secret that they do not see is as a manifest guesses.

use super::known_condition::baseline;
use super::put_back::PutBack;
use crate::background::yield_to_requests;
use crate::model::drift::{DriftFields, ExternalWrite, FieldDrift};
use crate::model::secrets::serialization_mode::without_digests;
use crate::model::{AnyResource, Claim, DriftState, DriftedResource, Kind};
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
    /// The resources that drifted and stay as they are, without what is put back of them.
    pub drifted: Vec<DriftedResource>,
    /// The number of changes that cannot be applied without reverting drift.
    pub waiting: usize,
    /// The paths of the resources that are left as they are although the manifests differ.
    pub left: BTreeSet<String>,
    /// The result of the plan before anything was left out of it, if something was.
    pub whole: Option<Arc<SpeculativeCommit>>,
}

impl HeldChanges {
    /// Whether the whole plan is applied.
    pub(crate) fn is_empty(&self) -> bool {
        self.drifted.is_empty() && self.waiting == 0
    }
}

/// Adds to a plan what others have changed of its resources, and where they declare the users of the resources that it
/// keeps. Does not change what the plan does. `sees` tells which secrets the reader of the plan sees: others are not
/// compared. Without it, all are.
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
    let drifting: Vec<&Change> = plan.changes.iter().filter(|it| can_drift(it)).collect();
    let unknown = drifting.len().saturating_sub(MOST_LOOKUPS);
    // Others may have deleted the resource that replaces another one, and brought that one back.
    let both = drifting.into_iter().take(MOST_LOOKUPS).flat_map(|change| [written(change), change.key.clone()]);
    let keys: Vec<Key> = both.collect::<BTreeSet<Key>>().into_iter().collect();
    let writes = store.external_writes(&keys, source, snapshot.revision, || baseline(store, source))?;
    let search = DriftSearch { store, source, snapshot, writes: &writes, sees };
    let mut found = Vec::new();
    for (at, change) in plan.changes.iter().enumerate() {
        yield_to_requests();
        // The deletion of a replaced resource has its drift at the resource that replaces it.
        if change.effect == Effect::Replaced {
            continue;
        }
        if let Some((wanted, claim)) = wanted(planned, &change.key) {
            let drift = search.drift_of(change, &written(change), &wanted, claim.as_deref())?;
            found.extend(drift.map(|drift| (at, drift)));
        }
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

/// What the drift of a change is found with.
struct DriftSearch<'s> {
    store: &'s Store,
    source: &'s str,
    snapshot: &'s Snapshot,
    /// What others have written.
    writes: &'s HashMap<Key, Vec<ExternalWrite>>,
    /// The secrets that are compared, if not all are.
    sees: Option<&'s SecretFilter>,
}

impl DriftSearch<'_> {
    /// Returns what others have changed of a resource that the manifests want to have this Spec. `key` is the resource that exists:
    /// another one if the change replaces it.
    fn drift_of(
        &self,
        change: &Change,
        key: &Key,
        wanted: &Arc<dyn AnyResource>,
        claim: Option<&Claim>,
    ) -> Result<Option<Drift>, StoreError> {
        let Some(old) = self.writes.get(key) else { return Ok(None) };
        let entry = self.snapshot.get(key);
        // The store no longer knows the owner of a deleted resource's secrets.
        let sees_secrets = self.sees.is_none_or(|sees| entry.is_some_and(|entry| sees(entry)));
        let shown = |mut fields: DriftFields| {
            // The digests of secrets would tell whether a guess in a manifest is right.
            if !sees_secrets {
                fields.values_mut().for_each(without_digests);
            }
            fields
        };
        let detect = |live: Option<&DriftFields>, key: &Key, writes: &[ExternalWrite]| {
            // The digests of secrets are those of one resource.
            let declared = shown(self.store.digested(key, wanted, claim)?);
            Ok::<_, StoreError>(match sees_secrets {
                true => Drift::detect(self.source, live, &declared, writes),
                false => Drift::detect(self.source, live, &declared, &without_secrets(writes)),
            })
        };
        let live = entry.map(|it| self.store.digested(key, it.spec(), it.claim.as_deref())).transpose()?.map(shown);
        if change.effect != Effect::Replace {
            return detect(live.as_ref(), key, old);
        }
        // If others have undone the replacement, that is drift, and a conflict otherwise.
        if let Some(new) = self.writes.get(&change.key).filter(|new| is_undone(new, old))
            && let Some(drift) = detect(None, &change.key, new)?.filter(|drift| drift.state == DriftState::Drift)
        {
            return Ok(Some(drift));
        }
        Ok(detect(live.as_ref(), key, old)?.map(Drift::into_conflict))
    }
}

/// Removes the digests of secrets from writes.
fn without_secrets(writes: &[ExternalWrite]) -> Vec<ExternalWrite> {
    let mut writes = writes.to_vec();
    for write in &mut writes {
        write.before.iter_mut().chain(&mut write.after).for_each(without_digests);
    }
    writes
}

/// Whether others have undone a replacement, as a rollback does: they have deleted the new resource, and brought the old one back
/// at the same time. The arguments are what they have written to the new and to the old one.
fn is_undone(new: &[ExternalWrite], old: &[ExternalWrite]) -> bool {
    let Some(deletion) = new.first().filter(|write| write.after.is_none()) else { return false };
    old.iter().any(|write| write.before.is_none() && write.revision == deletion.revision)
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

/// The resources of a plan that others have changed.
pub(super) fn drifted(plan: &Plan) -> impl Iterator<Item = DriftedResource> {
    plan.changes.iter().filter_map(drifted_resource)
}

/// The resource of a change, if others have changed it.
fn drifted_resource(change: &Change) -> Option<DriftedResource> {
    let drift = change.drift.as_ref()?;
    Some(DriftedResource::new(&change.key, change.name.clone(), drift))
}

/// Leaves out of a plan what would revert drift. What both the manifests and others have changed stays in it. What was judged
/// of the whole plan has to be judged again.
pub(crate) fn hold(snapshot: &Snapshot, planned: &mut PlanResult) -> Result<HeldChanges, Vec<Diagnostic>> {
    let (differing, whole) = (changed_paths(planned), planned.tried.clone());
    let mut held = leave_drifted(snapshot, planned)?;
    held.whole = whole.filter(|_| !held.is_empty());
    // A change that is applied may leave a part of its resource.
    let drifted = held.drifted.iter().map(|drifted| drifted.path.clone());
    held.left = differing.difference(&changed_paths(planned)).cloned().chain(drifted).collect();
    Ok(held)
}

/// The paths of the resources that a plan changes.
fn changed_paths(planned: &PlanResult) -> BTreeSet<String> {
    planned.plan.iter().flat_map(|plan| &plan.changes).map(|change| change.key.path()).collect()
}

/// Takes out of a plan what drifted, and what depends on that.
fn leave_drifted(snapshot: &Snapshot, planned: &mut PlanResult) -> Result<HeldChanges, Vec<Diagnostic>> {
    let mut held = HeldChanges::default();
    let whole = planned.tried.clone();
    let Some(plan) = &mut planned.plan else { return Ok(held) };
    let replacements = Replacements::of_plan(plan);
    let changes = std::mem::take(&mut plan.changes);
    let left: BTreeSet<Key> = changes.iter().filter(|it| is_left_deleted(it)).map(|it| it.key.clone()).collect();
    let mut put_back = PutBack::new(snapshot, whole, replacements.replaced(&left));
    let mut gone: BTreeSet<Key> = BTreeSet::new();
    let mut kept = Vec::new();
    for mut change in changes {
        if left.contains(&change.key) {
            gone.insert(change.key.clone());
            held.drifted.extend(drifted_resource(&change));
        } else if is_created(&change) && change.key.parent_key().is_some_and(|parent| gone.contains(&parent)) {
            gone.insert(change.key.clone());
            held.waiting += 1;
        } else if change.effect != Effect::Replaced || !replacements.is_of_any(&change.key, &gone) {
            let modules = put_back.modules(&change);
            let drifted = leave_drift(&mut change, &modules);
            if drifted.as_ref().is_some_and(leaves_requirement) {
                put_back.leave_requirement(change.key.clone());
            }
            held.drifted.extend(drifted);
            if !change.operations.is_empty() {
                kept.push(change);
            }
        }
    }
    plan.changes = kept;
    if held.is_empty() {
        return Ok(held);
    }
    held.waiting += leave_dependents(snapshot, planned, &replacements)?;
    Ok(held)
}

/// Takes out of a plan what depends on what was left out of it, until the rest can be applied. Returns the number of changes that
/// this takes out.
fn leave_dependents(
    snapshot: &Snapshot,
    planned: &mut PlanResult,
    replacements: &Replacements,
) -> Result<usize, Vec<Diagnostic>> {
    let Some(plan) = &mut planned.plan else { return Ok(0) };
    let mut waiting = 0;
    // A change that is left out may refer to a deleted resource.
    for _ in 0..MOST_TRIES {
        let refusal = match apply_speculatively(snapshot, plan) {
            Ok(tried) => {
                planned.tried = tried;
                return Ok(waiting);
            }
            Err(refusals) => refusals.into_one(),
        };
        let is_refused = |it: &Change| it.key == refusal.key || replacements.are_one(&it.key, &refusal.key);
        let (refused, rest): (Vec<Change>, Vec<Change>) =
            std::mem::take(&mut plan.changes).into_iter().partition(is_refused);
        plan.changes = rest;
        if refused.is_empty() {
            let faults = refusal.faults.iter();
            return Err(faults
                .map(|fault| Diagnostic::error(fault.code, fault_message(&refusal.key, fault)))
                .collect());
        }
        waiting += counted(&refused);
    }
    waiting += counted(&plan.changes);
    plan.changes.clear();
    planned.tried = None;
    Ok(waiting)
}

/// The number of changes. A replacement is one.
fn counted(changes: &[Change]) -> usize {
    changes.iter().filter(|change| change.effect != Effect::Replaced).count()
}

/// The replacements of a plan: the keys of the new resources, by those of the old ones.
struct Replacements(BTreeMap<Key, Key>);

impl Replacements {
    fn of_plan(plan: &Plan) -> Self {
        Self(plan.replaced().into_iter().map(|(new, old)| (old.clone(), new.clone())).collect())
    }

    /// The resources that are replaced, unless the new one is among those that are left out.
    fn replaced(&self, left: &BTreeSet<Key>) -> BTreeSet<Key> {
        self.0.iter().filter(|(_, new)| !left.contains(*new)).map(|(old, _)| old.clone()).collect()
    }

    /// Whether a resource is replaced by any of some new ones.
    fn is_of_any(&self, old: &Key, new: &BTreeSet<Key>) -> bool {
        self.0.get(old).is_some_and(|it| new.contains(it))
    }

    /// Whether one of two resources replaces the other one.
    fn are_one(&self, one: &Key, other: &Key) -> bool {
        self.0.get(one) == Some(other) || self.0.get(other) == Some(one)
    }
}

fn is_created(change: &Change) -> bool {
    matches!(change.effect, Effect::Create | Effect::Replace)
}

/// Whether a change does nothing but bring back a resource that others have deleted.
fn is_left_deleted(change: &Change) -> bool {
    let is_drift = |drift: &Drift| drift.is_deletion() && drift.state == DriftState::Drift;
    is_created(change) && change.drift.as_ref().is_some_and(is_drift)
}

/// Whether the drift of a resource is about the modules that an edge requires of its routes.
fn leaves_requirement(drifted: &DriftedResource) -> bool {
    let is_left = |field: &FieldDrift| field.state == DriftState::Drift && field.unit() == Some("required_modules");
    drifted.fields.iter().any(is_left)
}

/// Removes the operations that would revert drift, but for modules that are put back. Returns the drift that stays, if there is
/// any.
fn leave_drift(change: &mut Change, put_back: &BTreeSet<&'static str>) -> Option<DriftedResource> {
    let drift = change.drift.as_ref().filter(|drift| !drift.is_deletion())?;
    let mut units = drift.units();
    units.retain(|unit| !put_back.contains(*unit));
    if units.is_empty() {
        return None;
    }
    let kept = std::mem::take(&mut change.operations).into_iter().filter_map(|operation| match operation {
        Operation::Patch { key, spec, mut fields } => {
            fields.retain(|field| !units.contains(field.as_str()));
            (!fields.is_empty()).then_some(Operation::Patch { key, spec, fields })
        }
        Operation::PutModule { slot, .. } | Operation::DeleteModule { slot, .. } if units.contains(slot.name) => None,
        other => Some(other),
    });
    change.operations = kept.collect();
    let is_left = |field: &FieldDrift| field.unit().is_some_and(|unit| units.contains(unit));
    let mut drifted = DriftedResource::new(&change.key, change.name.clone(), drift);
    drifted.fields.retain(|field| field.state != DriftState::Drift || is_left(field));
    // Applying other changes does not repair the fields that are left as is.
    let repaired = drift.of_fields(|field| !is_left(field));
    change.drift = repaired;
    Some(drifted)
}

//! The difference between a snapshot and the desired state, expressed in API operations.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::calls::{changes, deletion};
use super::change::{Change, Plan, named};
use super::deletion_budget::{BudgetSetting, DeletionBudget};
use super::effect::Effect;
use super::kept_resources::{KeptResource, used_by_others};
use crate::background::yield_to_requests;
use crate::model::required_secrets::{SET_IN_ANY_CASE, lacks_record, without_incomparable};
use crate::model::{AnyResource, ApiKey, Claim, Code, Desired, Entry, Id, Key, Kind, Operation, Owner, Snapshot};

/// The hint at a deletion that may be half of a move (D104).
const MOVE_INSTEAD: &str = "to move it to another source instead, set `transfer_to` first";

/// The note at a new API key without an owner (D27).
const APPLIER_OWNS: &str = "owned by whoever applies the plan";
const SOURCE_BOT_OWNS: &str = "owned by the bot of the source";
const OWNER_IS_CREATED: &str = "creates its owner with the role `editor`";

/// The most resources that a core compares at once, so that no core waits long for the last piece of another.
const MOST_AT_ONCE: usize = 1024;

/// Computes the plan that brings `source`'s part of the store to the desired state. With `prune`, owned resources that
/// are no longer declared are deleted. Keys that name no owner get `key_owner`, or the source's bot. Creations and changes
/// go forward through the kinds and deletions backward, so that every prefix of the plan keeps references valid.
pub(crate) fn diff(
    snapshot: &Snapshot,
    desired: &BTreeMap<Key, Desired>,
    source: &str,
    prune: bool,
    budget: DeletionBudget,
    key_owner: Option<&Id>,
    only: Option<&BTreeSet<Key>>,
) -> Plan {
    let plan = Plan { base: snapshot.revision, ..Plan::default() };
    let mut planner = Planner { snapshot, desired, source, prune, key_owner, owners: HashSet::new(), plan };
    let all: Vec<&Desired> = match only {
        Some(keys) => keys.iter().filter_map(|key| desired.get(key)).collect(),
        None => desired.values().collect(),
    };
    let mut wanted = differing(snapshot, desired, all);
    planner.plan.unchanged = desired.len() - wanted.len();
    let replaced: BTreeSet<&Key> = wanted.iter().filter_map(|it| it.wanted.replaces.as_ref()).collect();
    planner.plan.changes.reserve(wanted.len());
    // Most of a large plan creates, and what only creates depends on nothing else in the plan.
    let is_creation = |it: &Differing<'_>| it.found == StoredState::Nothing && is_plain(it.wanted);
    for together in wanted.chunk_by_mut(|one, other| is_creation(one) == is_creation(other)) {
        if together.first().is_some_and(is_creation) {
            let create = |it: &mut Differing<'_>| {
                yield_to_requests();
                creation(it.wanted, Arc::clone(&it.wanted.spec), std::mem::take(&mut it.name))
            };
            planner.plan.changes.par_extend(together.par_iter_mut().with_min_len(256).map(create));
            continue;
        }
        for it in together {
            planner.settle(it.wanted, it.found, std::mem::take(&mut it.name));
        }
    }
    if prune {
        match only {
            Some(keys) => planner.prune(keys.iter().filter_map(|key| snapshot.get(key)).collect()),
            // If so many are the same as declared, nothing else is in the store.
            None if planner.plan.unchanged == snapshot.len() => {}
            None => planner.prune(snapshot.iter().collect()),
        }
    }
    let replaced: Vec<&Arc<Entry>> = replaced.into_iter().filter_map(|key| snapshot.get(key)).collect();
    planner.replace(&replaced);
    planner.mark_replacements();
    // A plan without deletions needs no count.
    let owned = || {
        let taken = replaced.iter().filter(|entry| !entry.is_owned_by(source)).count();
        taken + snapshot.iter().filter(|entry| entry.is_owned_by(source)).count()
    };
    let check = "check that the manifests are complete and belong to this source";
    planner.plan.limit_deletions(owned, budget, "the source", check, BudgetSetting::OfRunOrSource);
    planner.plan
}

/// A resource that is not the same as a whole in the store.
struct Differing<'d> {
    wanted: &'d Desired,
    found: StoredState,
    name: String,
}

fn differing<'d>(snapshot: &Snapshot, desired: &BTreeMap<Key, Desired>, all: Vec<&'d Desired>) -> Vec<Differing<'d>> {
    let difference = |wanted: &'d Desired| {
        yield_to_requests();
        let found = match snapshot.get(&wanted.key) {
            None => StoredState::Nothing,
            Some(entry) if !entry.lazy_spec.same(&wanted.spec) => StoredState::OtherSpec,
            Some(entry) if entry.claim.as_deref() != Some(&wanted.claim) => StoredState::SameSpec,
            Some(_) => return None,
        };
        Some(Differing { wanted, found, name: full_name(snapshot, desired, &wanted.key, &wanted.claim) })
    };
    let all = all.into_par_iter().with_min_len(256).with_max_len(MOST_AT_ONCE);
    let mut differing: Vec<Differing<'d>> = all.filter_map(difference).collect();
    // Sorted by name within a kind, because ids mean nothing to a reader.
    differing.par_sort_by(|one, other| (one.wanted.key.kind, &one.name).cmp(&(other.wanted.key.kind, &other.name)));
    differing
}

/// The stored state of a resource that a plan changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoredState {
    Nothing,
    /// An equal Spec with another claim.
    SameSpec,
    OtherSpec,
}

/// Whether a new resource takes one call that is the same in every plan: neither an owner (D23) nor several calls (D34).
fn is_plain(wanted: &Desired) -> bool {
    wanted.key.kind != Kind::ApiKey && !wanted.key.kind.info().implicit
}

/// The creation of a resource with one call.
fn creation(wanted: &Desired, spec: Arc<dyn AnyResource>, name: String) -> Change {
    let (key, claim) = (wanted.key.clone(), Some(wanted.claim.clone()));
    change(wanted, name, Effect::Create, None, vec![Operation::Create { key, spec, claim, token: None }])
}

fn change(
    wanted: &Desired,
    name: String,
    effect: Effect,
    before: Option<&Entry>,
    operations: Vec<Operation>,
) -> Change {
    let token_file = wanted.token_file.clone();
    Change { token_file, ..Change::new(wanted.key.clone(), name, effect, before, operations) }
}

struct Planner<'a> {
    snapshot: &'a Snapshot,
    desired: &'a BTreeMap<Key, Desired>,
    source: &'a str,
    prune: bool,
    key_owner: Option<&'a Id>,
    /// The owners that the plan creates so far.
    owners: HashSet<Key>,
    plan: Plan,
}

impl Planner<'_> {
    /// Plans the creation or change of a resource.
    fn settle(&mut self, wanted: &Desired, found: StoredState, name: String) {
        let Some(entry) = self.snapshot.get(&wanted.key) else { return self.create(wanted, name) };
        let (spec, _) = self.with_owner(wanted);
        let comparable = comparable(self.snapshot, entry, wanted);
        let operations = match &comparable {
            None if found == StoredState::SameSpec => Ok(Vec::new()),
            None => changes(&wanted.key, entry.spec().as_ref(), &spec),
            Some(before) => changes(&wanted.key, before.as_ref(), &spec),
        };
        let mut operations = match operations {
            Ok(operations) => operations,
            Err(error) => return self.plan.refusals.push(error.into()),
        };
        let mut effect = Effect::Change;
        let info = wanted.key.kind.info();
        // An implicit resource exists only while it has a module, so an empty one cannot be claimed (D34).
        let vanishes = info.implicit && info.slots.iter().all(|slot| spec.module(slot).is_none());
        if entry.claim.as_deref() != Some(&wanted.claim) && !vanishes {
            if operations.is_empty() {
                effect = claim_effect(entry.claim.as_deref(), &wanted.claim);
            }
            operations.push(Operation::Claim { key: wanted.key.clone(), claim: Some(wanted.claim.clone()) });
        }
        if operations.is_empty() {
            self.plan.unchanged += 1;
            return;
        }
        if vanishes && let Some(claim) = &entry.claim {
            let name = self.full_name(&wanted.key, claim);
            self.refuse_if_protected(entry, claim, &name);
            self.refuse_if_full(entry, &name);
            effect = Effect::Delete;
        }
        let mut change = change(wanted, name, effect, Some(entry), operations);
        if let Some(before) = comparable {
            change.before = Some(before);
            change.notes.push(SET_IN_ANY_CASE.to_owned());
        }
        if let Some(old) = &entry.claim {
            if old.name != wanted.claim.name {
                change.notes.push(format!("renamed from `{}`", old.name));
            } else if is_renamed(old, &wanted.claim) {
                let over = wanted.claim.renamed_from.is_none();
                let note = if over { "name swap ended" } else { "swaps its name" };
                change.notes.push(note.into());
            }
            change.notes.extend(protection_note(old, &wanted.claim));
            change.notes.extend(transfer_notes(old, &wanted.claim));
        }
        self.plan.changes.push(change);
    }

    fn create(&mut self, wanted: &Desired, name: String) {
        let key = &wanted.key;
        let (spec, owner) = self.with_owner(wanted);
        let info = key.kind.info();
        if !info.implicit {
            let mut change = creation(wanted, spec, name);
            if self.plan.unnamed_owners.contains(key) {
                let note = if self.key_owner.is_some() { APPLIER_OWNS } else { SOURCE_BOT_OWNS };
                change.notes.push(note.to_owned());
            }
            if let Some(owner) = owner {
                change.operations.insert(0, owner);
                change.notes.push(OWNER_IS_CREATED.to_owned());
            }
            return self.plan.changes.push(change);
        }
        let mut operations = match changes(key, (info.empty)().as_ref(), &spec) {
            Ok(operations) => operations,
            Err(error) => return self.plan.refusals.push(error.into()),
        };
        // Without a module it does not exist (D34).
        if !operations.is_empty() {
            operations.push(Operation::Claim { key: key.clone(), claim: Some(wanted.claim.clone()) });
            self.plan.changes.push(change(wanted, name, Effect::Create, None, operations));
        }
    }

    /// Sets the owner of an API key if the manifest names none (D27), and returns the operation that
    /// creates the owner if it does not exist yet (D23).
    fn with_owner(&mut self, wanted: &Desired) -> (Arc<dyn AnyResource>, Option<Operation>) {
        let Some(key) = wanted.spec_as::<ApiKey>() else { return (Arc::clone(&wanted.spec), None) };
        let mut key = key.clone();
        if key.owner_id.is_empty() {
            let existing = self.snapshot.get(&wanted.key).and_then(|entry| entry.spec_as::<ApiKey>());
            let existing = existing.filter(|key| !key.owner_id.is_empty());
            key.owner_id = match existing {
                Some(existing) => existing.owner_id.clone(),
                None => {
                    self.plan.unnamed_owners.insert(wanted.key.clone());
                    match self.key_owner {
                        Some(owner) => owner.to_string(),
                        None => Id::bot_of(self.source).to_string(),
                    }
                }
            };
        }
        let owner = Key::new(Kind::Owner, Id::new(&key.owner_id));
        let is_new = self.snapshot.get(&owner).is_none() && self.owners.insert(owner.clone());
        let create = is_new.then(|| Operation::create(owner, Arc::new(Owner::default())));
        (Arc::new(key), create)
    }

    /// Plans the deletion of what the source owns and no longer declares, without what other sources still use.
    fn prune(&mut self, entries: Vec<&Arc<Entry>>) {
        let (source, desired) = (self.source, self.desired);
        let is_gone = |entry: &&Arc<Entry>| {
            entry.is_owned_by(source)
                && !desired.contains_key(&entry.key)
                // A transfer keeps these until their new source declares them (D104).
                && !entry.claim.as_deref().is_some_and(Claim::is_promised)
        };
        // All cores wait for the memory of the claims and keys.
        let undeclared: Vec<&Arc<Entry>> = entries.into_par_iter().with_min_len(1024).filter(is_gone).collect();
        let mut gone: Vec<(&Arc<Entry>, &Claim, String)> = undeclared
            .into_iter()
            .filter_map(|entry| entry.claim.as_deref().map(|claim| (entry, claim, self.full_name(&entry.key, claim))))
            .collect();
        gone.sort_by(|a, b| b.0.key.kind.cmp(&a.0.key.kind).then_with(|| a.2.cmp(&b.2)));
        // Where teams share a store, a manifest that disappears may have moved to the folder of another.
        let is_foreign = |entry: &Arc<Entry>| entry.claim.as_deref().is_some_and(|claim| claim.source != self.source);
        let may_move = !gone.is_empty() && self.snapshot.iter().any(is_foreign);
        let entries: Vec<&Arc<Entry>> = gone.iter().map(|(entry, ..)| *entry).collect();
        let used = used_by_others(self.snapshot, self.desired, self.source, &entries);
        for (entry, claim, name) in gone {
            let key = &entry.key;
            self.refuse_if_protected(entry, claim, &name);
            if let Some(users) = used.get(key) {
                self.keep(key, claim, name, users);
                continue;
            }
            self.refuse_if_full(entry, &name);
            let hint = (may_move && key.parent.is_none()).then(|| MOVE_INSTEAD.to_owned());
            let change = Change::new(key.clone(), name, Effect::Delete, Some(entry), deletion(entry));
            self.plan.changes.push(Change { notes: hint.into_iter().collect(), ..change });
        }
    }

    /// Plans the deletion of resources that change hands or are kept for a transfer, and that declared ones replace. Without
    /// pruning, and if other sources still use them, they become what any such predecessor is: undeclared resources of the
    /// source.
    fn replace(&mut self, replaced: &[&Arc<Entry>]) {
        for entry in replaced {
            let is_moved = |claim: &&Claim| claim.source != self.source || claim.is_promised();
            let Some(old) = entry.claim.as_deref().filter(is_moved) else { continue };
            if self.desired.contains_key(&entry.key) {
                continue;
            }
            let (key, name) = (entry.key.clone(), self.full_name(&entry.key, old));
            if self.prune {
                self.refuse_if_protected(entry, old, &name);
            }
            let used = used_by_others(self.snapshot, self.desired, self.source, &[*entry]);
            let users = used.get(&key).filter(|_| self.prune);
            if let Some(users) = users {
                self.keep(&key, old, name.clone(), users);
            }
            let change = if self.prune && users.is_none() {
                self.refuse_if_full(entry, &name);
                Change::new(key, name, Effect::Delete, Some(entry), deletion(entry))
            } else {
                let claim = Claim { source: self.source.to_owned(), transfer_to: None, returned: false, ..old.clone() };
                let effect = claim_effect(Some(old), &claim);
                let notes = transfer_notes(old, &claim);
                let operations = vec![Operation::Claim { key: key.clone(), claim: Some(Arc::new(claim)) }];
                Change { notes, ..Change::new(key, name, effect, Some(entry), operations) }
            };
            self.plan.changes.push(change);
        }
    }

    /// Keeps a resource that is in use by others.
    fn keep(&mut self, key: &Key, claim: &Claim, name: String, users: &[Key]) {
        let kept = KeptResource::new(self.snapshot, self.desired, (key, claim, name), users);
        self.plan.kept_resources.push(kept);
    }

    /// Refuses to delete a resource with `prevent_destroy`.
    fn refuse_if_protected(&mut self, entry: &Entry, claim: &Claim, name: &str) {
        let key = &entry.key;
        if claim.prevent_destroy {
            let declared = |wanted: &&Desired| wanted.key.kind == key.kind && wanted.key.parent == key.parent;
            let mut declared = self.desired.values().filter(declared);
            let (fate, cure) = match declared.any(|wanted| wanted.claim.name == claim.name) {
                true => ("replaced, because the change is to an immutable field", "revert the change"),
                false => ("deleted", "restore its manifest"),
            };
            let message = format!("{} has `prevent_destroy` and would be {fate}", named(key, name));
            let help = format!("{cure}, or remove `prevent_destroy` in a separate change first");
            self.plan.refuse(Code::PreventDestroy, message, help);
        }
    }

    /// Refuses to delete an edge with routes that are not deleted with it: without a source, or promised to another one (D35).
    fn refuse_if_full(&mut self, entry: &Entry, name: &str) {
        let key = &entry.key;
        let stays = |claim: &Claim| claim.source != self.source || claim.is_promised();
        let children = self.snapshot.children(key);
        let others = children.filter(|child| child.claim.as_deref().is_none_or(stays)).map(|child| child.key.clone());
        let others: Vec<Key> = others.collect();
        if !others.is_empty() {
            let (named, others) = (named(key, name), self.snapshot.names_of(&others));
            let message = format!("{named} would be deleted, but contains resources of other owners: {others}");
            self.plan.refuse(Code::InUse, message, "delete or move these resources first, or keep this one");
        }
    }

    /// Marks a deletion and a creation with the same kind, parent and name as one replacement.
    fn mark_replacements(&mut self) {
        let identity = |change: &Change| {
            let (kind, parent, name) = change.identity();
            (kind, parent.cloned(), name.to_owned())
        };
        let mut gone: HashMap<_, Vec<usize>> = HashMap::new();
        for (at, change) in self.plan.changes.iter().enumerate().filter(|(_, change)| change.effect == Effect::Delete) {
            gone.entry(identity(change)).or_default().push(at);
        }
        if gone.is_empty() {
            return;
        }
        let mut replaced = Vec::new();
        for change in self.plan.changes.iter_mut().filter(|change| change.effect == Effect::Create) {
            if let Some(at) = gone.get_mut(&identity(change)).and_then(Vec::pop) {
                change.effect = Effect::Replace;
                replaced.push((at, change.key.clone()));
            }
        }
        for (at, key) in replaced {
            let Some(change) = self.plan.changes.get_mut(at) else { continue };
            change.effect = Effect::Replaced;
            // The new resource is shown as its difference from this one.
            let pair = self.snapshot.get(&change.key).zip(self.desired.get(&key));
            if let Some(before) = pair.and_then(|(entry, wanted)| comparable(self.snapshot, entry, wanted)) {
                change.before = Some(before);
            }
        }
    }

    fn full_name(&self, key: &Key, claim: &Claim) -> String {
        full_name(self.snapshot, self.desired, key, claim)
    }
}

/// The Spec with which a desired one is compared, if not all secrets of the stored one can be (D103).
fn comparable(snapshot: &Snapshot, entry: &Entry, wanted: &Desired) -> Option<Arc<dyn AnyResource>> {
    without_incomparable(entry, lacks_record(snapshot, entry), wanted.spec.as_ref(), Some(&wanted.claim))
}

/// The name in the manifests, prefixed with the parent's name.
pub(crate) fn full_name(snapshot: &Snapshot, desired: &BTreeMap<Key, Desired>, key: &Key, claim: &Claim) -> String {
    key.full_name(&claim.name, |parent| {
        let declared = desired.get(parent).map(|parent| &*parent.claim);
        let claim = declared.or_else(|| snapshot.get(parent)?.claim.as_deref());
        claim.map(|claim| claim.name.as_str())
    })
}

/// The note about a resource that `prevent_destroy` protects from then on, or no longer.
pub(super) fn protection_note(old: &Claim, new: &Claim) -> Option<String> {
    match (old.prevent_destroy, new.prevent_destroy) {
        (true, false) => Some("no longer protected by `prevent_destroy`".into()),
        (false, true) => Some("now protected by `prevent_destroy`".into()),
        _ => None,
    }
}

/// The notes about a resource that changes hands, or that will.
pub(super) fn transfer_notes(old: &Claim, new: &Claim) -> Vec<String> {
    let mut notes = Vec::new();
    if old.source != new.source {
        notes.push(format!("transferred from source `{}`", old.source));
    }
    notes.extend(handover_note(old, new));
    let is_kept = old.is_promised() && old.receiver().is_none();
    if is_kept && !new.is_promised() && !old.returned {
        notes.push("now declared by its new source".into());
    }
    if old.returned && !new.returned && old.source == new.source {
        notes.push("declared by its source again, after a rollback".into());
    }
    notes
}

/// The note about a resource that is offered to another source, or no longer.
pub(super) fn handover_note(old: &Claim, new: &Claim) -> Option<String> {
    match (old.receiver(), new.receiver()) {
        (was, Some(to)) if was != Some(to) => Some(format!("handed over to source `{to}` when it takes over")),
        (Some(to), None) if old.source == new.source => Some(format!("no longer handed over to source `{to}`")),
        _ => None,
    }
}

/// The effect of a plan that changes nothing of a resource but its claim.
pub(super) fn claim_effect(old: Option<&Claim>, new: &Claim) -> Effect {
    match old.filter(|old| old.source == new.source) {
        None => Effect::Adopt,
        Some(old) if is_renamed(old, new) => Effect::Rename,
        Some(_) => Effect::Protect,
    }
}

/// Whether the names in a resource's claim change.
fn is_renamed(old: &Claim, new: &Claim) -> bool {
    old.name != new.name || old.renamed_from != new.renamed_from
}

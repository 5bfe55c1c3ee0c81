//! The plan that brings back the state of an earlier revision (D78).
//!
//! A rollback does not move the store back. It is a plan from the current state to the earlier one, and the next
//! revision: it is shown, limited and refused like any plan, the history keeps what it undid, and another rollback can
//! undo it.
//!
//! ```text
//! revision 4   edge a: "one"
//! revision 5   edge a: "two", edge b
//! revision 6   rollback to 4: change a to "one", delete b
//! ```
//!
//! It is about a source's resources at either time, or about all resources but API keys and their owners: a revoked key
//! must not work again. It refuses to take a resource from another source, and to bring one back without its secrets. A route
//! gets the secrets that the edge of another source then requires, and not those that it had (D103).
//! `owners` decides which claims come back with the resources.

mod owners;

use std::sync::Arc;

use super::calls::changes;
use super::change::{Change, Plan, named};
use super::deletion_budget::{BudgetSetting, DeletionBudget};
use super::diff::{claim_effect, handover_note, protection_note};
use super::effect::Effect;
use super::near_source::near_source;
use crate::model::required_secrets::{SET_IN_ANY_CASE, brought_back, lacks_record, without_incomparable};
use crate::model::{AnyResource, Claim, Code, Entry, Key, Kind, Operation, Snapshot};
use owners::FormerOwners;

/// Computes the plan that brings back the resources of `target`: those of a source, or all but API keys and their owners.
/// Like any plan, it creates and changes forward through the kinds, and deletes backward.
pub(crate) fn revert(current: &Snapshot, target: &Snapshot, source: Option<&str>, budget: DeletionBudget) -> Plan {
    let plan = Plan { base: current.revision, ..Plan::default() };
    let owners = FormerOwners::new(current, target, source);
    let mut planner = RevertPlanner { current, target, source, owners, plan };
    let mut wanted: Vec<&Arc<Entry>> = target.iter().filter(|entry| planner.concerns(&entry.key)).collect();
    let before = wanted.len();
    wanted.retain(|entry| !planner.is_same(entry));
    planner.plan.unchanged = before - wanted.len();
    let mut gone: Vec<&Arc<Entry>> =
        current.iter().filter(|entry| planner.concerns(&entry.key) && target.get(&entry.key).is_none()).collect();
    if before + gone.len() == 0
        && let Some(source) = source
    {
        let message = format!("source `{source}` owned nothing at revision {}, and owns nothing now", target.revision);
        let help = near_source(&[current, target], source, "check the name of the source");
        planner.plan.refuse(Code::NotFound, message, help);
    }
    wanted.sort_by_cached_key(|entry| (entry.key.kind, planner.name(entry)));
    gone.sort_by_cached_key(|entry| (std::cmp::Reverse(entry.key.kind), planner.name(entry)));
    for entry in wanted {
        planner.refuse_without_secrets(entry);
        planner.restore(entry);
    }
    for entry in gone {
        planner.delete(entry);
    }
    let owned = current.iter().filter(|entry| planner.concerns(&entry.key)).count();
    let owner = if source.is_some() { "the source" } else { "the store" };
    planner.plan.limit_deletions(|| owned, budget, owner, "check the revision", BudgetSetting::OfRun);
    planner.plan
}

struct RevertPlanner<'a> {
    current: &'a Snapshot,
    target: &'a Snapshot,
    source: Option<&'a str>,
    owners: FormerOwners<'a>,
    plan: Plan,
}

impl RevertPlanner<'_> {
    /// Whether the rollback is about a resource. A key that was revoked must not work again, and a rollback must not
    /// lock out its user, so owners and their keys stay as they are.
    fn concerns(&self, key: &Key) -> bool {
        if matches!(key.kind, Kind::Owner | Kind::ApiKey) {
            return false;
        }
        let Some(source) = self.source else { return true };
        [self.current, self.target].iter().any(|state| state.get(key).is_some_and(|entry| entry.is_owned_by(source)))
    }

    fn is_same(&self, then: &Arc<Entry>) -> bool {
        self.current.get(&then.key).is_some_and(|now| {
            let is_same = || {
                let (spec, claim) = self.restored(then);
                now.claim == claim
                    && now.lazy_spec.same(&spec)
                    && self.comparable(now, then, spec.as_ref(), claim.as_deref()).is_none()
            };
            Arc::ptr_eq(now, then) || is_same()
        })
    }

    /// The Spec and the claim with which an earlier resource is brought back: its own, but for the secrets that the edge of
    /// another source requires. As in a sync, these are those of the edge as it will be (D103).
    fn restored(&self, then: &Entry) -> (Arc<dyn AnyResource>, Option<Arc<Claim>>) {
        let claim = self.owners.claim(then);
        let edge = then.key.parent_key().and_then(|edge| match self.concerns(&edge) {
            true => self.target.get(&edge),
            false => self.current.get(&edge),
        });
        match (edge, claim) {
            (Some(edge), Some(claim)) if !edge.is_owned_by(&claim.source) => {
                let (spec, claim) = brought_back(edge, then.spec(), claim);
                (spec, Some(claim))
            }
            (_, claim) => (Arc::clone(then.spec()), claim),
        }
    }

    /// The Spec with which a restored one is compared, if not all secrets of the present one can be (D103).
    fn comparable(
        &self,
        now: &Entry,
        then: &Entry,
        restored: &dyn AnyResource,
        claim: Option<&Claim>,
    ) -> Option<Arc<dyn AnyResource>> {
        let lacks_record = lacks_record(self.current, now) || lacks_record(self.target, then);
        without_incomparable(now, lacks_record, restored, claim)
    }

    /// Refuses to bring back a resource without its secrets.
    fn refuse_without_secrets(&mut self, then: &Entry) {
        if then.lazy_spec.has_lost_secrets() {
            let (named, revision) = (named(&then.key, &self.name(then)), self.target.revision);
            let message = format!("{named} cannot be rolled back: its secrets at revision {revision} were destroyed");
            self.plan.refuse(Code::SecretsGone, message, Code::SecretsGone.info().cure);
        }
    }

    /// Refuses to take a resource from another source.
    fn refuse_if_taken(&mut self, now: Option<&Arc<Entry>>, then: Option<&Arc<Entry>>) {
        let Some(source) = self.source else { return };
        let owner_of = |entry: Option<&Arc<Entry>>| entry.and_then(|entry| entry.claim.clone());
        let other = |claim: Option<Arc<Claim>>| claim.filter(|claim| claim.source != source);
        let (when, claim) = match (other(owner_of(now)), other(owner_of(then))) {
            (Some(claim), _) => ("is now".to_owned(), claim),
            (None, Some(claim)) => (format!("at revision {} was", self.target.revision), claim),
            (None, None) => return,
        };
        let Some(entry) = now.or(then) else { return };
        let named = named(&entry.key, &self.name(entry));
        let message = format!("{named} {when} owned by source `{}`", claim.source);
        let help = "roll back the whole store, or move the resource with `edgewright transfer` first";
        self.plan.refuse(Code::OwnerConflict, message, help);
    }

    /// Plans the creation or change of a resource.
    fn restore(&mut self, then: &Arc<Entry>) {
        let now = self.current.get(&then.key).cloned();
        self.refuse_if_taken(now.as_ref(), Some(then));
        match now {
            Some(now) => self.change(&now, then),
            None => self.create(then),
        }
    }

    fn create(&mut self, then: &Arc<Entry>) {
        let (key, info) = (&then.key, then.key.kind.info());
        let mut operations = Vec::new();
        if !info.implicit {
            let (spec, claim) = self.restored(then);
            operations.push(Operation::Create { key: key.clone(), spec, claim, token: None });
        } else if !info.slots.is_empty() {
            match changes(key, (info.empty)().as_ref(), then.spec()) {
                Ok(modules) => operations.extend(modules),
                Err(error) => return self.plan.refusals.push(error.into()),
            }
            let claim = self.owners.claim(then).map(Some);
            operations.extend(claim.map(|claim| Operation::Claim { key: key.clone(), claim }));
        }
        self.push(then, Effect::Create, Vec::new(), operations, None);
    }

    fn change(&mut self, now: &Arc<Entry>, then: &Arc<Entry>) {
        let (spec, claim) = self.restored(then);
        let comparable = self.comparable(now, then, spec.as_ref(), claim.as_deref());
        let before = comparable.as_ref().unwrap_or_else(|| now.spec());
        let mut operations = match changes(&then.key, before.as_ref(), &spec) {
            Ok(operations) => operations,
            Err(error) => return self.plan.refusals.push(error.into()),
        };
        let (mut effect, mut notes) = (Effect::Change, Vec::new());
        notes.extend(comparable.is_some().then(|| SET_IN_ANY_CASE.to_owned()));
        if now.claim != claim {
            if let Some(new) = claim.as_deref().filter(|_| operations.is_empty()) {
                effect = claim_effect(now.claim.as_deref(), new);
            }
            operations.push(Operation::Claim { key: then.key.clone(), claim: claim.clone() });
            match (&now.claim, &claim) {
                (Some(old), None) => notes.push(format!("no longer owned by source `{}`", old.source)),
                (old, Some(new)) if old.as_ref().is_none_or(|old| old.source != new.source) => {
                    notes.push(format!("owned by source `{}`", new.source));
                    if new.is_kept_by_rollback() {
                        notes.push("kept until its source declares it".into());
                    }
                }
                (Some(old), Some(new)) => {
                    if old.name != new.name {
                        notes.push(format!("renamed from `{}`", old.name));
                    }
                    notes.extend(protection_note(old, new).into_iter().chain(promise_note(old, new)));
                }
                (None, _) => {}
            }
        }
        self.push(then, effect, notes, operations, comparable);
    }

    fn delete(&mut self, now: &Arc<Entry>) {
        self.refuse_if_taken(Some(now), None);
        let name = self.name(now);
        self.plan.delete(now, name, "keep it, or remove `prevent_destroy` in a separate change first");
    }

    /// Adds the operations on a resource, and the Spec that it is compared with, unless that is the present one. An implicit
    /// resource without modules comes and goes with its children (D34).
    fn push(
        &mut self,
        entry: &Entry,
        effect: Effect,
        notes: Vec<String>,
        operations: Vec<Operation>,
        comparable: Option<Arc<dyn AnyResource>>,
    ) {
        if operations.is_empty() {
            return;
        }
        let before = self.current.get(&entry.key).map(AsRef::as_ref);
        let change = Change::new(entry.key.clone(), self.name(entry), effect, before, operations);
        let before = comparable.or_else(|| change.before.clone());
        self.plan.changes.push(Change { notes, before, ..change });
    }

    /// The name in the manifests or the ID, prefixed with that of the parent.
    fn name(&self, entry: &Entry) -> String {
        let has_parent = |state: &Snapshot| entry.key.parent_key().is_some_and(|parent| state.get(&parent).is_some());
        if has_parent(self.target) { self.target.full_name(entry) } else { self.current.full_name(entry) }
    }
}

/// Returns the notes about promises of a resource that stays with its source (D104).
fn promise_note(old: &Claim, new: &Claim) -> Option<String> {
    let is_kept = |claim: &Claim| claim.is_kept_by_rollback() || claim.awaits_manifest();
    handover_note(old, new).or_else(|| match (is_kept(old), is_kept(new)) {
        (false, true) => Some("kept until its source declares it".into()),
        (true, false) => Some("no longer kept if its source does not declare it".into()),
        _ => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::plan::tests::{after, calls, claim, codes, create_edge, edge, protected, state};

    #[test]
    fn a_source_is_rolled_back_and_the_others_stay() {
        let then = state(&[create_edge("a", claim("shop", "a")), create_edge("free", None)]);
        let delete = Operation::Delete { key: edge("free"), with_children: false };
        let more = [create_edge("b", claim("shop", "b")), create_edge("c", claim("docs", "c")), delete];
        let now = after(&then, &more);
        let plan = revert(&now, &then, Some("shop"), DeletionBudget::Normal);
        assert_eq!((calls(&plan), plan.unchanged), (vec!["DELETE /edges/https/edghts_b".to_owned()], 1));
        let all = revert(&now, &then, None, DeletionBudget::Percent(100.0));
        assert_eq!(all.changes.len(), 3);
        assert!(revert(&now, &now, None, DeletionBudget::Normal).is_empty());
    }

    #[test]
    fn a_rollback_has_the_safety_of_every_plan() {
        let then = state(&[create_edge("a", claim("shop", "a"))]);
        let kept = after(&then, &[create_edge("b", protected("shop", "b"))]);
        assert_eq!(codes(&revert(&kept, &then, None, DeletionBudget::Normal)), ["ERR_EDGEWRIGHT_PREVENT_DESTROY"]);
        let many: Vec<Operation> = (0..9).map(|at| create_edge(&format!("m{at}"), None)).collect();
        let grown = after(&then, &many);
        assert_eq!(codes(&revert(&grown, &then, None, DeletionBudget::Normal)), ["ERR_EDGEWRIGHT_TOO_MANY_DELETIONS"]);
        assert!(revert(&grown, &then, None, DeletionBudget::Count(9)).refusals.is_empty());
        let taken = Operation::Claim { key: edge("a"), claim: claim("docs", "a") };
        let taken = after(&then, &[taken]);
        assert_eq!(
            codes(&revert(&taken, &then, Some("shop"), DeletionBudget::Normal)),
            ["ERR_EDGEWRIGHT_OWNER_CONFLICT"]
        );
        assert!(revert(&taken, &then, None, DeletionBudget::Normal).refusals.is_empty());
        assert_eq!(codes(&revert(&then, &then, Some("none"), DeletionBudget::Normal)), ["ERR_EDGEWRIGHT_NOT_FOUND"]);
    }

    #[test]
    fn what_changed_hands_comes_back_with_a_promise_and_stays_so() {
        let then = state(&[create_edge("a", protected("shop", "a"))]);
        let taken = Operation::Claim { key: edge("a"), claim: claim("docs", "b") };
        let now = after(&then, &[taken]);
        let plan = revert(&now, &then, None, DeletionBudget::Normal);
        let back = after(&now, &plan.operations());
        let held = back.get(&edge("a")).and_then(|entry| entry.claim.clone()).unwrap();
        assert!(held.is_kept_by_rollback() && held.is_returned_by("docs") && held.prevent_destroy);
        assert_eq!((held.source.as_str(), held.name.as_str()), ("shop", "a"));
        assert_eq!((held.transferred_from.as_deref(), held.transferred_as.as_deref()), (Some("docs"), Some("b")));
        assert!(revert(&back, &then, None, DeletionBudget::Normal).is_empty());
        // An offer stays what it was.
        let offer = claim("shop", "a")
            .map(|claim| Arc::new(Claim { transfer_to: Some("docs".into()), ..Claim::clone(&claim) }));
        let offered = after(&then, &[Operation::Claim { key: edge("a"), claim: offer }]);
        let notes = |now: &Snapshot, then: &Snapshot| {
            let changes = revert(now, then, None, DeletionBudget::Normal).changes.into_iter();
            changes.flat_map(|change| change.notes).collect::<Vec<String>>()
        };
        let (loses_protection, gains_protection) =
            ("no longer protected by `prevent_destroy`", "now protected by `prevent_destroy`");
        assert_eq!(notes(&then, &offered), [loses_protection, "handed over to source `docs` when it takes over"]);
        assert_eq!(notes(&offered, &then), [gains_protection, "no longer handed over to source `docs`"]);
        // A command has moved it, and its source has not declared it yet.
        let moved = protected("shop", "a")
            .map(|claim| Arc::new(Claim { transfer_to: Some("shop".into()), ..Claim::clone(&claim) }));
        let moved = after(&then, &[Operation::Claim { key: edge("a"), claim: moved }]);
        assert_eq!(notes(&moved, &then), ["no longer kept if its source does not declare it"]);
        assert_eq!(notes(&then, &moved), ["kept until its source declares it"]);
    }

    #[test]
    fn an_offer_comes_back_unless_it_was_taken() {
        let offer = |to: &str| Some(Arc::new(Claim { transfer_to: Some(to.into()), ..Claim::new("shop", "a") }));
        for (to, receiver) in [("docs", None), ("pay", Some("pay"))] {
            let then = state(&[create_edge("a", offer(to))]);
            let taken = Operation::Claim { key: edge("a"), claim: claim("docs", "a") };
            let now = after(&then, &[taken]);
            let back = after(&now, &revert(&now, &then, None, DeletionBudget::Normal).operations());
            let held = back.get(&edge("a")).and_then(|entry| entry.claim.clone()).unwrap();
            assert_eq!((held.source.as_str(), held.receiver()), ("shop", receiver), "{to}");
            assert_eq!((held.is_kept_by_rollback(), held.is_returned_by("docs")), (receiver.is_none(), true), "{to}");
            assert!(revert(&back, &then, None, DeletionBudget::Normal).is_empty(), "{to}");
        }
    }
}

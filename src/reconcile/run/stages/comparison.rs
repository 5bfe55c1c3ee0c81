//! Compares two sets of manifests without a store.
//!
//! # The problem
//!
//! Without a store, surrounding manifests stand for it (D107). A part of that state is a guess: on which edge a route is, for example,
//! if several edges have the name. Where the guess is wrong, a plan that seems to change nothing opens a path.
//!
//! # The idea
//!
//! What keeps an invariant from being proven ([`Unseen`]) is what a behaviour diff depends on, as far as it is about the edges and
//! routes that change. Such a plan is never called a refactoring.
//!
//! For example, a route with `edge: shop` loses `oidc`, and two surrounding folders have an edge `shop`. The diff tells of the
//! requests of one of the two, and depends on which of them has the route.

use super::{Options, PlanResult, Prepared};
use crate::manifest::resolve::surrounding::SurroundingState;
use crate::plan::DeletionBudget;
use crate::reconcile::prelude::*;
use crate::routing::invariant::Unseen;

/// Plans the changes from one set of manifests to another, without a store.
pub(crate) fn compare(old: &Options, new: &Options) -> PlanResult {
    let lenient =
        |options: &Options| Options { budget: DeletionBudget::Percent(100.0), recreate_ids: true, ..options.clone() };
    // The older manifests only have to be readable.
    let former = Prepared::load(Options { behaviour: false, ..lenient(old) }).without_tests();
    let around = former.loaded.resolve_surrounding(&Snapshot::default(), &old.source);
    let mut before = former.plan(&around.state);
    let Some(first) = before.plan.take() else { return before };
    match around.state.apply(&first.operations(), clock::now()) {
        Ok((snapshot, _)) => {
            let current = Prepared::load(lenient(new));
            let around_now = current.loaded.resolve_surrounding(&snapshot, &new.source);
            let mut after = current.plan(&around_now.state);
            let unseen = || around.unseen(&snapshot, &before.origins);
            note_unseen(&mut after, unseen, &snapshot, &around_now);
            after.files.splice(0..0, before.files);
            after
        }
        Err(refusal) => PlanResult {
            diagnostics: refusal.faults.into_iter().map(|fault| Diagnostic::error(fault.code, fault.message)).collect(),
            ..before
        },
    }
}

/// Notes what the effect of a plan on requests depends on, before it and after it, if that effect was asked for.
fn note_unseen(
    planned: &mut PlanResult,
    unseen_before: impl FnOnce() -> Vec<Unseen>,
    before: &Snapshot,
    around: &SurroundingState,
) {
    let Some(plan) = planned.plan.as_mut().or(planned.refused.as_mut()) else { return };
    let changed = plan.changed_keys();
    let Some(diff) = plan.effects.behaviour.as_mut().filter(|_| !changed.is_empty()) else { return };
    let operations: Vec<_> = plan.changes.iter().flat_map(|change| &change.operations).collect();
    let Ok((after, _)) = around.state.apply(&operations, clock::now()) else { return };
    let mut unseen = unseen_before();
    unseen.extend(around.unseen(&after, &planned.origins));
    let states = [before, &after];
    let concerned = unseen.iter().filter(|it| changed.iter().any(|key| it.is_about(key, &states)));
    diff.unseen = Unseen::clauses(concerned);
}

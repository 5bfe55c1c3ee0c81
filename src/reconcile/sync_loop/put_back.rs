//! What a sync puts back whatever the drift policy is (D85, D103).
//!
//! `warn` and `off` leave the changes of others. Two of these are no choice of the source that leaves them:
//!
//! - **A module that an edge requires of its routes.** A rollback of the whole store takes a login away from the edge of one
//!   source and from the route of another. Once the edge requires it again, the route must not stay open because the policy of
//!   its source leaves drift.
//! - **A reference to a resource that the plan replaces.** As long as it stays, the old resource cannot be deleted, and the
//!   source would have two resources of one name.
//!
//! # What it never does
//!
//! It compares no secret that a route has from the edge of another source: such a module is put back in any case.

use crate::model::required_secrets::required_modules;
use crate::model::{AnyModule, Claim};
use crate::reconcile::prelude::*;

/// What is put back of a plan that leaves drift.
pub(super) struct PutBack<'s> {
    before: &'s Snapshot,
    /// The state after the whole plan.
    whole: Option<Arc<SpeculativeCommit>>,
    /// The resources that the plan replaces.
    replaced: BTreeSet<Key>,
    /// The edges that require what they do in the store, because a change of that is drift that is left.
    left_edges: BTreeSet<Key>,
}

impl<'s> PutBack<'s> {
    /// Prepares to judge the changes of a plan, which replaces some resources. Edges are judged before their routes.
    pub(super) fn new(before: &'s Snapshot, whole: Option<Arc<SpeculativeCommit>>, replaced: BTreeSet<Key>) -> Self {
        Self { before, whole, replaced, left_edges: BTreeSet::new() }
    }

    /// Notes that the drift of what an edge requires is left.
    pub(super) fn leave_requirement(&mut self, edge: Key) {
        self.left_edges.insert(edge);
    }

    /// The modules of a resource that are put back.
    pub(super) fn modules(&self, change: &Change) -> BTreeSet<&'static str> {
        let mut modules = self.required(change);
        modules.extend(self.referring(change));
        modules
    }

    /// The modules that the edge of a route requires and that a change sets.
    fn required(&self, change: &Change) -> BTreeSet<&'static str> {
        let Some(edge) = change.key.parent_key() else { return BTreeSet::new() };
        let is_left = self.left_edges.contains(&edge);
        let whole = self.whole.as_ref().filter(|_| !is_left).map(|whole| whole.after());
        let edge = whole.unwrap_or(self.before).get(&edge);
        let Some(required) = edge.and_then(|edge| required_modules(edge)) else { return BTreeSet::new() };
        let present = self.before.get(&change.key).map(|route| route.spec().as_ref());
        let is_put_back = |operation: &Operation| match operation {
            Operation::PutModule { slot, .. } => {
                let required = required.module(slot)?;
                // The source has left both as others have set them: the route may be as its edge requires already.
                let left = present.and_then(|route| route.module(slot)).filter(|_| is_left);
                left.is_none_or(|left| !left.same(required)).then_some(slot.name)
            }
            _ => None,
        };
        change.operations.iter().filter_map(is_put_back).collect()
    }

    /// The modules of a resource that refer to one that the plan replaces.
    fn referring(&self, change: &Change) -> Vec<&'static str> {
        let present = self.before.get(&change.key).filter(|_| !self.replaced.is_empty());
        let Some(present) = present else { return Vec::new() };
        let refers = |module: &dyn AnyModule| {
            let mut found = false;
            module.references(&mut |reference| found |= self.replaced.contains(&reference.target));
            found
        };
        present.spec().modules().filter(|(_, module)| refers(*module)).map(|(slot, _)| slot.name).collect()
    }
}

/// Whether a plan does nothing but put modules into routes of a source that the edges of other sources require. A rollback that
/// left the manifests of the source did not lift what these edges require by now.
pub(crate) fn only_puts_required(plan: &Plan, current: &Snapshot, source: &str) -> bool {
    let puts_required = |change: &Change| {
        let edge = change.key.parent_key().and_then(|edge| current.get(&edge));
        let required = edge.filter(|edge| !edge.is_owned_by(source)).and_then(|edge| required_modules(edge));
        let (Some(required), Some(route)) = (required, current.get(&change.key)) else { return false };
        change.operations.iter().all(|operation| match operation {
            Operation::PutModule { slot, .. } => required.module(slot).is_some(),
            // The record of whose secrets the modules have.
            Operation::Claim { claim: Some(claim), .. } => {
                route.claim.as_ref().is_some_and(|held| without_record(held) == without_record(claim))
            }
            _ => false,
        })
    };
    !plan.is_empty() && plan.changes.iter().all(puts_required)
}

fn without_record(claim: &Claim) -> Claim {
    Claim { required_secrets: None, ..claim.clone() }
}

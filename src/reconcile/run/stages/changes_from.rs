//! Plans the changes between two sets of manifests of one source, among everything else that a store has (D111).
//!
//! # The problem
//!
//! A team that has only its own folder gets errors for every name of another team. An export of all other sources would
//! have the wrong owners, no IDs and no secrets, and would send 100,000 routes to check one folder.
//!
//! # The idea
//!
//! The server has all that already, at one revision. So the older manifests take the place of the source in the
//! snapshot, and the newer ones are planned on that. What the source really has in the store gives its resources their
//! IDs and nothing else, so the same range has the same difference before and after it is applied.
//!
//! # What it never does
//!
//! The difference has no outcome, and cannot be applied. No value of the store becomes one of either side: a difference
//! between a guess and the stored secret would confirm the guess.

use super::{Options, PlanResult, Prepared, judge};
use crate::manifest::resolve::resolve;
use crate::manifest::{self, with_source};
use crate::model::Snapshot;
use crate::plan::diff;
use crate::reconcile::run::lint_stage::judge_exposure;
use crate::reconcile::run::speculative::apply_speculatively;

impl Prepared {
    /// Reads manifests to compare them with others: no value of the store becomes theirs.
    pub(crate) fn load_to_compare(options: Options) -> Self {
        let loaded = manifest::load(options.tree.as_ref()).without_stored_values();
        Self::new(options, loaded)
    }

    /// Plans the changes from older manifests of the source to these. Findings are those of a plan on `snapshot`. What the
    /// source has there counts only for the identity of its resources.
    pub(crate) fn changes_from(&self, older: &Self, snapshot: &Snapshot) -> PlanResult {
        let before = older.declared(snapshot);
        if before.has_errors() {
            return before;
        }
        let mut planned = self.plan(snapshot);
        if planned.plan.is_some() || planned.refused.is_some() {
            let options = &self.options;
            let state = with_source(snapshot, &options.source, &before.desired);
            let (source, prune, owner) = (&options.source, options.prune, options.key_owner.as_ref());
            let mut plan = diff(&state, &planned.desired, source, prune, options.budget, owner, None);
            let after = match apply_speculatively(&state, &mut plan) {
                Ok(tried) => tried.map(|tried| tried.after().clone()),
                // It may refer to what a commit would refuse, and yet does something to requests.
                Err(_) => {
                    let after = with_source(snapshot, source, &planned.desired);
                    plan.note_effects(&state, &after);
                    Some(after)
                }
            };
            judge_exposure(&planned.origins, &options.lints, &mut plan);
            if let Some(after) = after.filter(|_| options.behaviour) {
                plan.note_behaviour(&state, &after);
            }
            let shown = if planned.plan.is_some() { &mut planned.plan } else { &mut planned.refused };
            *shown = Some(plan);
            // The outcome belongs to the plan that was replaced.
            planned.tried = None;
        }
        planned
    }

    /// Returns the declared state, with all findings and without a plan.
    fn declared(&self, snapshot: &Snapshot) -> PlanResult {
        let (loaded, options) = (self.loaded.as_ref(), &self.options);
        let resolved = resolve(loaded, snapshot, options.resolving());
        judge(loaded, resolved, &options.lints, None, self.clock.time()).capped().planned(loaded, None)
    }
}

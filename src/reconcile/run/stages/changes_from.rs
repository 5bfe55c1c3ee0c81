//! Plans the changes between two sets of manifests of one source, among everything else that a store has (D111).

use super::{Options, Planned, Prepared, judge};
use crate::{
    manifest::{self, resolve::resolve, with_source},
    model::snapshot::Snapshot,
    plan::diff,
};

impl Prepared {
    /// Reads manifests to compare them with others: no value of the store becomes theirs.
    pub(crate) fn load_to_compare(options: Options) -> Self {
        let loaded = manifest::load(options.tree.as_ref()).without_stored_values();
        Self::new(options, loaded)
    }

    /// Plans the changes from older manifests of the source to these. Findings are those of a plan on `snapshot`. What the
    /// source has there counts only for the identity of its resources.
    pub(crate) fn changes_from(&self, older: &Self, snapshot: &Snapshot) -> Planned {
        let before = older.declared(snapshot);
        if before.has_errors() {
            return before;
        }
        let mut planned = self.plan(snapshot);
        if planned.plan.is_some() {
            let options = &self.options;
            let state = with_source(snapshot, &options.source, &before.desired);
            let (source, prune, owner) = (&options.source, options.prune, options.key_owner.as_ref());
            planned.plan = Some(diff(&state, &planned.desired, source, prune, options.budget, owner, None));
            // It is the outcome of the plan that was replaced.
            planned.tried = None;
        }
        planned
    }

    /// What the manifests declare, with all findings and without a plan.
    fn declared(&self, snapshot: &Snapshot) -> Planned {
        let (loaded, options) = (self.loaded.as_ref(), &self.options);
        let resolved = resolve(loaded, snapshot, options.resolving());
        judge(loaded, resolved, &options.lints, None, self.clock.time()).capped().planned(loaded, None)
    }
}

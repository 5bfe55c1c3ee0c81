//! The state that a store would have once the plan of manifests is applied, for commands that show what becomes of requests.

use super::review::SurroundingArgs;
use super::source_args::{Loading, Ownership};
use crate::cli::output::diagnostics;
use crate::cli::prelude::*;
use crate::cli::target::StoreOrServer;
use crate::manifest::tree::{StopCheck, UnsetValues};
use crate::reconcile::Prepared;
use crate::store::CommitError;

/// The options of a plan whose effect on requests is shown, and the store or server that has them.
#[derive(Debug, clap::Args)]
pub(crate) struct PlannedArgs {
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    surrounding: SurroundingArgs,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    pub place: StoreOrServer,
}

impl PlannedArgs {
    /// The options of the plan of the manifests at these paths.
    pub(crate) fn options(&self, paths: &[PathBuf], lints: LintLevels) -> Options {
        let tree = self.loading.tree(paths, &self.surrounding.with, UnsetValues::Require, &StopCheck::default());
        Options { tree, lints, ..self.ownership.options() }
    }
}

/// Returns a copy of a state with the plan of manifests applied, also if invariants refuse the plan: what it would do to requests
/// is what somebody wants to see. Without a state, only the surrounding manifests are there.
pub(crate) fn planned_state(options: Options, state: Option<&Snapshot>) -> Result<Snapshot, Failure> {
    // What a test fails on may be what somebody wants to see.
    let prepared = Prepared::load(options).without_tests();
    let snapshot = state.map_or_else(|| prepared.surrounding_state(), Snapshot::clone);
    let planned = prepared.plan(&snapshot);
    if planned.has_errors() {
        diagnostics::diagnostics(&planned.diagnostics);
    }
    let refused = planned.is_refused_by_invariants().then(|| prepared.unjudged_changes(&snapshot)).flatten();
    let Some(plan) = planned.plan.or(refused) else {
        return Err(Failure::new(Vec::new(), Exit::Invalid));
    };
    if !plan.refusals.is_empty() {
        return Err(Failure::new(plan.refusals, Exit::Refused));
    }
    let applied = snapshot.apply(&plan.operations(), clock::now());
    Ok(applied.map_err(|refusal| ApplyError::Commit(CommitError::Refused(refusal)))?.0)
}

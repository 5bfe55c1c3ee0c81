//! `edgewright reconcile` and `edgewright plan`.

use std::io::Write;

use super::{
    Exit, Failure, Outcome, StoreArgs, show, snapshot_of,
    source::{Manifests, Ownership},
};
use crate::{
    plan::{Plan, render},
    reconcile::{ApplyError, Planned, apply, plan},
    store::{CommitError, SledStore, Store},
};

/// Validate manifests, show the plan, and apply it as one revision.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show the plan and change nothing.
    #[arg(long, env = "EDGEWRIGHT_DRY_RUN")]
    dry_run: bool,
    #[command(flatten)]
    plan: PlanArgs,
}

/// Show what `reconcile` would do: the same as `reconcile --dry-run`.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// Exit with 2 when changes are pending.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.plan.reconcile(self.dry_run)
    }
}

impl PlanArgs {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        self.reconcile(true)
    }

    fn reconcile(self, dry_run: bool) -> Outcome {
        let options = self.ownership.options(self.manifests.load_options());
        // A store is only made once there is something good to put into it.
        let store = self.store.open_if_there()?;
        let planned = plan(&options, &snapshot_of(store.as_ref()));
        show::diagnostics(&planned.diagnostics);
        let Planned { plan: Some(plan), .. } = planned else {
            show::count(&planned.diagnostics, planned.files);
            return Ok(Exit::Invalid);
        };
        let mut stdout = anstream::stdout().lock();
        // A closed pipe is the reader's way of saying that it has seen enough.
        let _ = stdout.write_all(render::text(&plan).as_bytes()).and_then(|()| stdout.flush());
        if !plan.refusals.is_empty() {
            return Err(Failure { diagnostics: plan.refusals, exit: Exit::Refused });
        }
        if dry_run {
            return Ok(if self.detailed_exitcode && !plan.is_empty() { Exit::Pending } else { Exit::Done });
        }
        if plan.is_empty() {
            return Ok(Exit::Done);
        }
        let store = match store {
            Some(store) => store,
            None => self.store.open()?,
        };
        self.apply(&store, &plan, &options.source)
    }

    fn apply(&self, store: &SledStore, plan: &Plan, source: &str) -> Outcome {
        match apply(store, plan, source) {
            Ok(()) => {
                let _ = writeln!(anstream::stderr(), "Applied as revision {}.", store.snapshot().revision);
                Ok(Exit::Done)
            }
            Err(error) => {
                let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
                let exit = if stale { Exit::Stale } else { Exit::Error };
                Err(Failure { diagnostics: vec![error.diagnostic()], exit })
            }
        }
    }
}

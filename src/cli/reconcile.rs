//! `edgewright reconcile` and `edgewright plan`.

use std::{fs, io::Write, path::PathBuf};

use super::{
    Exit, Failure, Outcome, StoreArgs,
    output::Output,
    progress::during,
    show, snapshot_of,
    source::{Manifests, Ownership},
};
use crate::{
    manifest::tree::commit_of,
    model::{code::Code, diagnostic::Diagnostic},
    plan::{
        Plan,
        report::Report,
        saved::{Pin, SavedPlan},
    },
    reconcile::{ApplyError, LintLevels, Options, Planned, apply, plan},
    store::{CommitError, SledStore, Store},
};

/// Validate manifests, show the plan, and apply it as one revision.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Show the plan and change nothing.
    #[arg(long, env = "EDGEWRIGHT_DRY_RUN")]
    dry_run: bool,
    /// Apply only if what would run is what this saved plan says.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_PLAN", conflicts_with = "out")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    common: PlanArgs,
}

/// Show what `reconcile` would do: the same as `reconcile --dry-run`.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// Exit with 2 when changes are pending.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    /// Save the plan, so that `reconcile --plan` applies just what was reviewed.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_OUT")]
    out: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub fn run(self, lints: LintLevels) -> Outcome {
        self.common.reconcile(self.dry_run, self.plan, lints)
    }
}

impl PlanArgs {
    /// Runs the command.
    pub fn run(self, lints: LintLevels) -> Outcome {
        self.reconcile(true, None, lints)
    }

    fn reconcile(self, dry_run: bool, reviewed: Option<PathBuf>, lints: LintLevels) -> Outcome {
        let reviewed = reviewed.map(|file| read_plan(&file)).transpose()?;
        let options = self.ownership.options(self.manifests.tree(), lints);
        // A store is only made once there is something good to put into it.
        let store = self.store.open_if_there()?;
        let snapshot = snapshot_of(store.as_ref());
        let mut planned = during("Planning", || plan(&options, &snapshot));
        let verb = if dry_run { "plan" } else { "reconcile" };
        self.output.announce(&report(verb, &planned, None));
        let mut applied = None;
        let exit = match self.decide(&planned, dry_run, reviewed, store, &options) {
            Ok((exit, revision)) => {
                applied = revision;
                exit
            }
            Err(failure) => {
                show::diagnostics(&failure.diagnostics);
                // What the plan was refused for is part of the plan.
                if failure.exit != Exit::Refused {
                    planned.diagnostics.extend(failure.diagnostics);
                }
                failure.exit
            }
        };
        self.output.conclude(&report(verb, &planned, applied))?;
        let whole = planned.plan.is_none() || !planned.has_errors();
        if whole {
            return Ok(exit);
        }
        for left_out in &planned.left_out {
            let _ = writeln!(anstream::stderr(), "Left out: {} {}", left_out.key, left_out.claim.name);
        }
        Ok(if exit == Exit::Done || exit == Exit::Pending { Exit::Error } else { exit })
    }

    /// What becomes of a plan: the exit code, and the revision that it was applied as.
    fn decide(
        &self,
        planned: &Planned,
        dry_run: bool,
        reviewed: Option<SavedPlan>,
        store: Option<SledStore>,
        options: &Options,
    ) -> Result<(Exit, Option<u64>), Failure> {
        let Some(plan) = &planned.plan else { return Ok((Exit::Invalid, None)) };
        if reviewed.is_some() || self.out.is_some() {
            let commit = self.manifests.first().and_then(commit_of);
            let root_secret = store.as_ref().map(Store::root_secret);
            let pin = Pin { root_secret, source: &options.source, commit };
            let now = SavedPlan::new(plan, planned.desired.values(), &pin);
            if let Some(reviewed) = reviewed {
                same(&reviewed, &now)?;
            }
            if let Some(file) = &self.out {
                fs::write(file, now.text()).map_err(|error| unusable(file, &error.to_string()))?;
            }
        }
        if !plan.refusals.is_empty() {
            return Err(Failure { diagnostics: plan.refusals.clone(), exit: Exit::Refused });
        }
        if dry_run {
            let pending = self.detailed_exitcode && !plan.is_empty();
            return Ok((if pending { Exit::Pending } else { Exit::Done }, None));
        }
        if plan.is_empty() {
            return Ok((Exit::Done, None));
        }
        let store = match store {
            Some(store) => store,
            None => self.store.open()?,
        };
        let revision = commit(&store, plan, &options.source)?;
        Ok((Exit::Done, Some(revision)))
    }
}

fn report<'a>(command: &'static str, planned: &'a Planned, applied: Option<u64>) -> Report<'a> {
    Report {
        command,
        diagnostics: &planned.diagnostics,
        plan: planned.plan.as_ref(),
        files: planned.files.len(),
        applied,
    }
}

fn commit(store: &SledStore, plan: &Plan, source: &str) -> Result<u64, Failure> {
    match during("Applying", || apply(store, plan, source)) {
        Ok(()) => {
            let revision = store.snapshot().revision;
            let _ = writeln!(anstream::stderr(), "Applied as revision {revision}.");
            Ok(revision)
        }
        Err(error) => {
            let stale = matches!(error, ApplyError::Commit(CommitError::Stale { .. }));
            let exit = if stale { Exit::Stale } else { Exit::Error };
            Err(Failure { diagnostics: vec![error.diagnostic()], exit })
        }
    }
}

fn unusable(file: &std::path::Path, reason: &str) -> Failure {
    Diagnostic::error(Code::Unreadable, format!("the plan {} cannot be used: {reason}", file.display())).into()
}

fn read_plan(file: &std::path::Path) -> Result<SavedPlan, Failure> {
    let text = fs::read_to_string(file).map_err(|error| unusable(file, &error.to_string()))?;
    SavedPlan::read(&text).map_err(|reason| unusable(file, &reason))
}

/// Refuses to run anything but what was reviewed, and shows how the two differ.
fn same(reviewed: &SavedPlan, now: &SavedPlan) -> Result<(), Failure> {
    let reasons = reviewed.differences(now);
    if reasons.is_empty() {
        return Ok(());
    }
    let diff = reviewed.diff(now);
    if !diff.trim().is_empty() {
        let _ = writeln!(anstream::stderr(), "{diff}");
    }
    let stale =
        Diagnostic::error(Code::Stale, format!("this is not the plan that was reviewed: {}", reasons.join("; ")));
    Err(Failure {
        diagnostics: vec![stale.help("plan again with --out, and have the new plan reviewed")],
        exit: Exit::Stale,
    })
}

//! `edgewright reconcile` and `edgewright plan`.

use std::io::{Read, Write};

use super::base_findings::BaseArgs;
use super::behaviour_args::BehaviourArgs;
use super::review::ReviewArgs;
use super::source_args::{Manifests, Ownership};
use crate::cli::command_prelude::*;
use crate::cli::output::{destination, unless_closed};
use crate::cli::serve::huge_pages;
use crate::cli::target::{AppliedPlan, PlanFile, Proposal, StoreTarget, Target};
use crate::model::misspelt;
use crate::plan::{Effect, RedactedPlan, SavedPlan};

/// The line after a plan that is not applied.
const UNCHANGED: &str = "Nothing was applied.";
/// The line after an apply that found nothing to change in secrets that the plan did not compare.
const SAME_SECRETS: &str = "Nothing was applied: the secrets that were not compared are the same.";
/// No saved plan is larger.
const MOST_PLAN_BYTES: u64 = 1 << 30;

/// Show the plan, and apply it as one revision.
///
/// Validates the manifests first, and applies nothing if they have an error. Does not ask for confirmation; to see the
/// plan first, run `edgewright plan`.
///
/// An `ApiKey` without `owner_id` belongs to whoever applies it: with --server, to the owner of the token, and
/// otherwise to a bot of the source.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Show the plan without applying it.
    #[arg(long, env = "EDGEWRIGHT_DRY_RUN")]
    pub(crate) dry_run: bool,
    /// Apply only if the plan still matches this saved plan.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_PLAN", conflicts_with = "out")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: PlanArgs,
}

/// Show what `reconcile` would do; same as `reconcile --dry-run`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// Exit with code 2 if changes are pending.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    /// Save the plan, so that `reconcile --plan` applies exactly what was reviewed.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_OUT")]
    out: Option<PathBuf>,
    /// Create resources whose `metadata.id` is not in the store, with that ID: rebuilds a lost store from an export.
    #[arg(long, env = "EDGEWRIGHT_RECREATE_IDS")]
    recreate_ids: bool,
    /// Plan again, even if nothing has changed since a run without changes.
    #[arg(long, env = "EDGEWRIGHT_NO_CACHE")]
    no_cache: bool,
    #[command(flatten)]
    behaviour: BehaviourArgs,
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    review: ReviewArgs,
    #[command(flatten)]
    pub place: StoreOrServer,
    #[command(flatten)]
    retention: RetentionArgs,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        self.common.reconcile(self.dry_run, self.plan, lints)
    }
}

impl PlanArgs {
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        self.reconcile(true, None, lints)
    }

    fn reconcile(self, dry_run: bool, reviewed: Option<PathBuf>, lints: LintLevels) -> CommandResult {
        self.review.check(!dry_run, self.out.is_some() || reviewed.is_some())?;
        self.check_folders()?;
        if !dry_run {
            // A first apply needs twice the memory of its plan.
            huge_pages::turn_off();
        }
        let reviewed = reviewed.map(|file| read_plan(&file)).transpose()?;
        let lints = self.behaviour.levels(lints)?;
        let mut target = self.target(lints.clone(), dry_run, reviewed.is_some())?;
        let document = match &reviewed {
            Some(reviewed) => Some(PlanFile::LikeReviewed(reviewed)),
            None => self.out.as_ref().map(|_| PlanFile::ToSave),
        };
        let Proposal { mut report, left_out, saved, unwritable, .. } = target.propose(document)?;
        report.command = if dry_run { "plan" } else { "reconcile" };
        self.base.remove_known(&mut report, &self.review, &self.manifests, &lints, &self.ownership.source)?;
        if let (Some(source), Some(meant)) = (&report.source, meant_source(&report, target.as_ref())) {
            say(&format!("Source {source} is new; did you mean {meant}?"));
        }
        let unchanged = (!dry_run).then_some(UNCHANGED);
        self.output.announce(&report).inspect_err(|_| unchanged.into_iter().for_each(say))?;
        let isolated = report.plan.is_some() && report.has_errors();
        if !dry_run
            && report.plan.is_none()
            && let Some(first) = report.diagnostics.iter().find(|it| it.is_error())
        {
            target.refuse(first);
        }
        // A plan without changes may hide those of secrets.
        let may_change = report.plan.as_ref().is_some_and(|plan| !plan.is_empty() || report.hides_secrets());
        let leaves = (dry_run || !may_change).then(|| exit_without_changes(&report, self.detailed_exitcode));
        let decided = self.decide(&report, unwritable, saved.as_ref(), reviewed.as_ref()).map(|()| leaves);
        if let Err(failure) = &decided
            && !dry_run
            && let Some(first) = failure.diagnostics.first()
        {
            target.refuse(first);
        }
        let exit = carry_out(&self.output, &mut report, unchanged, decided, |hid_secrets| target.apply(hid_secrets))?;
        if let Some(page) = &report.page {
            say(&format!("Page: {page}"));
        }
        // The end of the process frees it faster.
        std::mem::forget(report);
        if !isolated {
            return Ok(exit);
        }
        for name in &left_out {
            say(&format!("Skipped: {name}"));
        }
        say("No resource is deleted until these errors are fixed.");
        Ok(if exit == Exit::Done || exit == Exit::Pending { Exit::Error } else { exit })
    }

    /// Fails if the folder of a file to write does not exist, before the plan is made.
    fn check_folders(&self) -> Result<(), Diagnostic> {
        self.out.as_ref().map_or(Ok(()), |file| destination::check_folder(file, "cannot save the plan"))?;
        self.output.check_folder()
    }

    fn target(&self, lints: LintLevels, dry_run: bool, reviewed: bool) -> Result<Box<dyn Target>, Failure> {
        let tree = self.review.tree(&self.manifests.paths, &self.manifests.loading);
        let (recreate_ids, behaviour) = (self.recreate_ids, self.behaviour.shows);
        let mut options = Options { tree, lints, recreate_ids, behaviour, ..self.ownership.options() };
        if reviewed && self.ownership.max_deletes.is_none() {
            // Only the reviewed plan can run, and it was within the limit when it was saved.
            options.budget = DeletionBudget::Percent(100.0);
        }
        Ok(match self.place.server.url() {
            Some(url) => {
                let mut target = ServerTarget::new(url, &self.place.server, options)?;
                target.applies = !dry_run;
                target.asked.page = dry_run;
                Box::new(target)
            }
            None => {
                let store = (self.place.store.clone(), self.retention.clone());
                Box::new(StoreTarget::new(options, store, dry_run, !self.no_cache, self.output.detail())?)
            }
        })
    }

    /// Checks whether a plan may run, and saves it for `--out`.
    fn decide(
        &self,
        report: &Report,
        unwritable: Vec<Diagnostic>,
        now: Option<&SavedPlan>,
        reviewed: Option<&SavedPlan>,
    ) -> Result<(), Failure> {
        if report.plan.is_none() {
            return Ok(());
        }
        if now.is_none() && (reviewed.is_some() || self.out.is_some()) {
            return Err(Diagnostic::error(Code::Internal, "the server sent no plan to save").into());
        }
        if let (Some(now), Some(reviewed)) = (now, reviewed) {
            check_reviewed(reviewed, now)?;
        }
        if !report.refusals.is_empty() {
            return Err(Failure::new(report.refusals.clone(), Exit::Refused));
        }
        // A plan that would fail must not pass a review, nor be saved for one.
        if !unwritable.is_empty() {
            return Err(Failure::new(unwritable, Exit::Error));
        }
        if let (Some(now), Some(file)) = (now, &self.out) {
            let text = now.text()?;
            let written = destination::create(file).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(|error| {
                Diagnostic::error(Code::Unreadable, format!("cannot save the plan {}: {error}", file.display()))
            })?;
        }
        Ok(())
    }
}

/// The source that may be meant in place of a new one.
fn meant_source(report: &Report, target: &dyn Target) -> Option<String> {
    let (source, plan) = (report.source.as_deref()?, report.plan.as_ref()?);
    // A source that has applied something before seldom only creates.
    if plan.is_empty() || !plan.changes.iter().all(|change| matches!(change.effect, Effect::Create)) {
        return None;
    }
    let known = target.sources();
    let is_new = !known.contains(source);
    misspelt(source, known.iter().map(String::as_str)).filter(|_| is_new).map(str::to_owned)
}

/// The exit code of a run that changes nothing.
pub(super) fn exit_without_changes(report: &Report, detailed_exitcode: bool) -> Exit {
    match &report.plan {
        None => Exit::Invalid,
        Some(plan) if detailed_exitcode && !plan.is_empty() => Exit::Pending,
        Some(_) => Exit::Done,
    }
}

/// Applies a plan that was shown, unless it was decided to leave it with an exit code or because of a failure, and writes the
/// report. `unchanged` is said if nothing is applied against the will of the caller.
pub(crate) fn carry_out(
    output: &Output,
    report: &mut Report,
    unchanged: Option<&str>,
    decided: Result<Option<Exit>, Failure>,
    apply: impl FnOnce(bool) -> Result<AppliedPlan, Failure>,
) -> CommandResult {
    let say_unchanged = || unchanged.into_iter().for_each(say);
    let exit = match decided {
        Ok(Some(exit)) => exit,
        Err(failure) => {
            let exit = failed(report, failure);
            say_unchanged();
            exit
        }
        Ok(None) => {
            let started = output.start(report).inspect_err(|_| say_unchanged())?;
            let exit = match apply(report.hides_secrets()) {
                Ok(AppliedPlan { revision, plan }) => {
                    report.applied = revision;
                    let shown = show_hidden(output, report, plan);
                    let line = revision.map(|revision| format!("Applied as revision {revision}."));
                    // If stderr cannot be written, at least the exit code differs from that of a success.
                    let said = unless_closed(diagnostics::say_all(line.as_deref().unwrap_or(SAME_SECRETS)));
                    shown.and(said).map_or_else(|failure| failure.exit, |()| Exit::Done)
                }
                Err(failure) => {
                    let is_unchanged = failure.has_code(Code::StoreUnavailable);
                    let exit = failed(report, failure);
                    if is_unchanged {
                        say_unchanged();
                    }
                    exit
                }
            };
            output.finish(started, report)?;
            return Ok(exit);
        }
    };
    output.conclude(report)?;
    Ok(exit)
}

/// Shows the plan that was applied, if it has more than the one that was shown without secrets that its reader does not see.
fn show_hidden(output: &Output, report: &mut Report, applied: Option<RedactedPlan>) -> Result<(), Failure> {
    let Some(plan) = applied.filter(|_| report.hides_secrets()) else { return Ok(()) };
    let shown = report.plan.take().unwrap_or_default();
    if shown.changes == plan.changes {
        report.plan = Some(shown);
        return Ok(());
    }
    output.show(report.plan.insert(RedactedPlan { behaviour: shown.behaviour, ..plan }))
}

/// Shows a failure and adds it to the report.
fn failed(report: &mut Report, failure: Failure) -> Exit {
    diagnostics::diagnostics(&failure.diagnostics);
    match failure.exit {
        // They are part of the plan already.
        Exit::Refused if !report.refusals.is_empty() => {}
        Exit::Refused => report.refusals.extend(failure.diagnostics),
        _ => report.diagnostics.extend(failure.diagnostics),
    }
    failure.exit
}

fn unusable(file: &Path, reason: &str) -> Diagnostic {
    Diagnostic::error(Code::Unreadable, format!("cannot use the plan {}: {reason}", file.display()))
}

fn read_plan(file: &Path) -> Result<SavedPlan, Failure> {
    let read = fs::File::open(file).and_then(|file| {
        let mut text = String::new();
        file.take(MOST_PLAN_BYTES).read_to_string(&mut text).map(|_| text)
    });
    let saved = read.map_err(|error| error.to_string()).and_then(|text| SavedPlan::read(&text));
    saved.map_err(|reason| {
        let help = "name a file that `edgewright plan PATH --out FILE` saved; pass manifests as PATH";
        unusable(file, &reason).help(help).into()
    })
}

/// Fails unless the plan is the reviewed one, and shows the difference.
fn check_reviewed(reviewed: &SavedPlan, now: &SavedPlan) -> Result<(), Failure> {
    let reasons = reviewed.differences(now);
    if reasons.is_empty() {
        return Ok(());
    }
    diagnostics::difference(&reviewed.diff(now));
    let stale =
        Diagnostic::error(Code::Stale, format!("the plan differs from the reviewed plan: {}", reasons.join("; ")));
    let stale = stale.help("run `edgewright plan` again with --out, and review the new plan");
    Err(Failure::new(vec![stale], Exit::Stale))
}

//! `edgewright rollback`: brings back the state of an earlier revision (D78).

use super::{
    CommandResult, Exit, leave,
    output::Output,
    reconcile::{applied, failed},
    revision::revision_name,
    show::{self, say},
    source::source_name,
    store_or_server::StoreOrServer,
    target::RollbackTarget,
};
use crate::{
    model::{
        code::Code,
        diagnostic::{Diagnostic, Name},
    },
    plan::{outline::Outline, safety::Budget},
    reconcile::rollback::Rollback,
    store::commits::RevisionName,
};

/// Bring back the state of an earlier revision as a new one.
///
/// Shows the plan and applies it, with the same checks as `reconcile`. API keys and their owners stay as they are. A server
/// that follows the manifests does not apply them again until they change.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Revision to bring back, or a Git commit for the newest revision that was applied from it; `edgewright history`
    /// lists both.
    #[arg(long, value_name = "REVISION|COMMIT", env = "EDGEWRIGHT_TO", value_parser = revision_name)]
    to: RevisionName,
    /// Roll back only the resources that this source owns.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_ROLLBACK_SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Show the plan without applying it.
    #[arg(long, env = "EDGEWRIGHT_DRY_RUN")]
    dry_run: bool,
    /// Exit with code 2 if changes are pending.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    /// Maximum number of resources that the rollback may delete, or a percentage of the resources, such as 50% (default:
    /// 3, or 25% up to 100 resources, but never all of them).
    #[arg(long, value_name = "N|P%", env = "EDGEWRIGHT_MAX_DELETES")]
    max_deletes: Option<Budget>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    pub place: StoreOrServer,
}

impl Args {
    /// Whether the plan is only shown.
    pub(super) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        let budget = self.max_deletes.unwrap_or_default();
        let mut target = match self.place.client()? {
            Some(client) => RollbackTarget::through(client),
            None => RollbackTarget::open(&self.place.store, self.dry_run)?,
        };
        let rollback = Rollback { to: target.revision(&self.to)?, source: self.source.clone(), budget };
        let nothing = || {
            if !self.dry_run {
                say("Nothing was applied.");
            }
        };
        let mut report = target.propose(&rollback, self.output.detail())?;
        self.output.announce(&report, target.plan()).inspect_err(|_| nothing())?;
        let mut started = None;
        let is_empty = report.plan.as_ref().is_none_or(Outline::is_empty);
        let exit = if report.has_errors() {
            nothing();
            Exit::Error
        } else if !report.refusals.is_empty() {
            if let Some(first) = report.refusals.first().filter(|_| !self.dry_run) {
                target.refuse(&rollback, &first.message);
            }
            show::diagnostics(&report.refusals);
            nothing();
            // A source that owns nothing is a mistake in the arguments, and no plan that a limit refuses (D31).
            let is_mistake = |refusal: &Diagnostic| refusal.code == Name::Code(Code::NotFound);
            if report.refusals.iter().any(is_mistake) { Exit::Error } else { Exit::Refused }
        } else if is_empty {
            Exit::Done
        } else if self.dry_run {
            if self.detailed_exitcode { Exit::Pending } else { Exit::Done }
        } else {
            started = Some(self.output.start(&report).inspect_err(|_| nothing())?);
            match target.apply(&rollback) {
                Ok(revision) => {
                    report.applied = Some(revision);
                    let exit = applied(revision);
                    say(
                        "A server that follows the manifests does not apply what this undid until the manifests change.",
                    );
                    exit
                }
                Err(failure) => failed(&mut report, failure),
            }
        };
        match started {
            Some(started) => self.output.finish(started, &report)?,
            None => self.output.conclude(&report)?,
        }
        leave(report);
        Ok(exit)
    }
}

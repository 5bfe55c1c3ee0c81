//! `edgewright rollback`: brings back the state of an earlier revision (D78).

use super::{revision::revision_name, store_change::ChangeCommand};
use crate::{
    cli::{
        CommandResult, Failure,
        input::prompt::{self, Confirmation},
        manifests::source_args::source_name,
        output::Output,
        target::{RollbackTarget, store_or_server::StoreOrServer},
    },
    model::diagnostics::{code::Code, diagnostic::Diagnostic},
    plan::safety::Budget,
    reconcile::run::rollback::Rollback,
    store::history::commits::RevisionName,
};

/// Bring back the state of an earlier revision as a new one.
///
/// Shows the plan, asks on a terminal, and applies it, with the same checks as `reconcile`. API keys and their owners stay
/// as they are. A server that follows the manifests does not apply them again until they change.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Revision to bring back, or a Git commit for the newest revision that was applied from it; `edgewright history`
    /// lists both.
    #[arg(long, value_name = "REVISION|COMMIT", env = "EDGEWRIGHT_TO", value_parser = revision_name)]
    to: RevisionName,
    /// Roll back only the resources that this source owns.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_ROLLBACK_SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Apply the plan without asking. Nothing is asked without a terminal.
    #[arg(long)]
    yes: bool,
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
    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run
    }

    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        let budget = self.max_deletes.unwrap_or_default();
        let target = RollbackTarget::at(&self.place, self.dry_run)?;
        let rollback = Rollback { to: target.revision(&self.to)?, source: self.source, budget };
        let (dry_run, detailed_exitcode, is_confirmed) = (self.dry_run, self.detailed_exitcode, self.yes);
        let command = ChangeCommand { change: &rollback, target, output: &self.output, dry_run, detailed_exitcode };
        command.run(None, || if is_confirmed { Ok(()) } else { confirmed(rollback.to) })
    }
}

/// Asks whether to apply the plan, if there is a terminal to ask on.
fn confirmed(to: u64) -> Result<(), Failure> {
    let question = format!("Type `yes` to roll back to revision {to}: ");
    let reason = match prompt::ask(&question, "yes") {
        Confirmation::Expected | Confirmation::NoTerminal => return Ok(()),
        Confirmation::Other => "the rollback was not confirmed",
        Confirmation::Unseen => "the question cannot be written to standard error",
    };
    Err(Diagnostic::error(Code::NotConfirmed, reason).help("type `yes`, or set --yes").into())
}

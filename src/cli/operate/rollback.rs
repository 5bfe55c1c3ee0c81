//! `edgewright rollback`: brings back the state of an earlier revision (D78).

use super::revision::{revision_failure, revision_name};
use super::store_change::{ChangeOptions, ChangeTarget, StoreChange};
use crate::cli::command_prelude::*;
use crate::cli::input::prompt::{self, Confirmation};
use crate::reconcile::run::rollback::Rollback;
use crate::server::operations::rollback::RollbackRequest;
use crate::syntax::text::shell_word;

/// Bring back the state of an earlier revision as a new one.
///
/// Shows the plan, asks on a terminal, and applies it, with the same checks as `reconcile`. API keys and their owners stay
/// as they are. A server that follows manifests does not apply those that the rollback undid until they change.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Revision to bring back, or a Git commit for the newest revision that was applied from it; `edgewright history`
    /// lists both.
    #[arg(long, value_name = "REVISION|COMMIT", env = "EDGEWRIGHT_TO", value_parser = revision_name)]
    to: RevisionName,
    /// Roll back only the resources that this source owns.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_ROLLBACK_SOURCE", value_parser = source_name)]
    source: Option<String>,
    /// Apply the plan without asking. Without a terminal, the command never asks.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub options: ChangeOptions,
    /// Maximum number of resources that the rollback may delete, or a percentage of the resources, such as 50% (default:
    /// 3, or 25% up to 100 resources, but never all of them).
    #[arg(long, value_name = "N|P%", env = "EDGEWRIGHT_MAX_DELETES")]
    max_deletes: Option<DeletionBudget>,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        let target = ChangeTarget::<RollbackRequest>::open(&self.options)?;
        let to = target.revision(&self.to, self.source.as_deref())?;
        let (source, max_deletes) = (self.source.unwrap_or_default(), self.max_deletes.unwrap_or_default());
        let rollback = RollbackRequest { to, source, dry_run: true, behaviour: false, max_deletes, expect: None };
        target.run(&rollback, &self.options, None, || if self.yes { Ok(()) } else { confirmed(to) })
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

impl StoreChange for RollbackRequest {
    const COMMAND: &'static str = "rollback";

    type Change = Rollback;

    fn remarks(&self, applied: u64) -> Vec<String> {
        let before = applied.saturating_sub(1);
        // Without it, the command would also undo what other sources have changed.
        let source = self.source().map(|source| format!(" --source {}", shell_word(source)));
        let source = source.unwrap_or_default();
        vec![
            "Sources that a server follows do not apply the undone manifests again until they change; for others, your next \
             `reconcile` does."
                .to_owned(),
            format!("To undo this rollback, run `edgewright rollback --to {before}{source}`."),
        ]
    }

    fn path(&self) -> String {
        "/rollbacks".to_owned()
    }

    fn request(&self, behaviour: bool, expect: Option<String>) -> impl Serialize {
        RollbackRequest { dry_run: expect.is_none(), behaviour, expect, ..self.clone() }
    }

    fn in_store(&self, store: &Store) -> Result<Rollback, Failure> {
        let target = during("Reading", || store.snapshot_at(self.to)).map_err(revision_failure)?;
        Ok(Rollback { target, source: self.source().map(str::to_owned), budget: self.max_deletes })
    }

    fn author(&self) -> Author {
        Author::rollback_to(self.to, self.source().map(str::to_owned))
    }
}

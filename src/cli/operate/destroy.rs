//! `edgewright destroy`: deletes everything that a source owns (D108).

use super::store_change::{ChangeOptions, ChangeTarget, StoreChange};
use crate::cli::command_prelude::*;
use crate::cli::config::Config;
use crate::cli::config::location::config_path;
use crate::cli::input::prompt::{self, Confirmation};
use crate::cli::target::source_action;
use crate::reconcile::run::destroy::Destroy;
use crate::server::operations::sources::destroy::DestroyRequest;

const DETAILED: &str = "Exit with code 2 if the source owns resources (only with --dry-run)";

/// Delete everything that a source owns, as one revision.
///
/// Shows the plan, asks for the name of the source, and applies the plan. Refuses if a resource is protected with
/// `prevent_destroy`, if other sources use one, or if a server follows the source. Resources without a source stay, and so do
/// the owners of API keys. `edgewright rollback` restores everything except API keys.
#[derive(Debug, clap::Args)]
#[command(mut_args(|it| if it.get_id().as_str() == "detailed_exitcode" { it.help(DETAILED) } else { it }))]
pub(crate) struct Args {
    /// Source whose resources to delete.
    #[arg(long, value_name = "NAME", value_parser = source_name)]
    source: String,
    /// Name of the source again. Required unless you can type it on a terminal.
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
    #[command(flatten)]
    pub options: ChangeOptions,
    /// Maximum number of resources to delete, or a percentage of the source's resources, such as 50% (default: no
    /// limit).
    #[arg(long, value_name = "N|P%", env = "EDGEWRIGHT_MAX_DELETES")]
    max_deletes: Option<DeletionBudget>,
}

impl Args {
    /// Runs the command. `config` may list the source for a server that does not run now.
    pub(crate) fn run(self, config: &Config) -> CommandResult {
        if let Some(name) = self.confirm.as_ref().filter(|name| **name != self.source) {
            return Err(self.unconfirmed(&format!("--confirm does not match the source: `{}`", printable(name))));
        }
        let destroy = Destroy { source: self.source.clone(), budget: self.max_deletes.unwrap_or_default() };
        let target = ChangeTarget::open(&self.options)?;
        let is_local = self.options.place.server.url().is_none();
        let is_configured = is_local && config.sources.iter().any(|source| source.name == self.source);
        target.run(&destroy, &self.options, is_configured.then(|| self.configured()), || self.confirmed())
    }

    /// Asks for the name of the source on the terminal, unless it was given.
    fn confirmed(&self) -> Result<(), Failure> {
        if self.confirm.is_some() {
            return Ok(());
        }
        let question = format!("Type `{}` to delete all of these resources: ", escaped(&self.source));
        match prompt::ask(&question, &self.source) {
            Confirmation::Expected => Ok(()),
            Confirmation::Other => Err(self.unconfirmed("the typed name does not match")),
            Confirmation::Unseen => Err(self.unconfirmed("the question cannot be written to standard error")),
            Confirmation::NoTerminal => {
                Err(self.unconfirmed("the deletion is not confirmed, and there is no terminal to ask on"))
            }
        }
    }

    fn unconfirmed(&self, reason: &str) -> Failure {
        let help = format!("set --confirm {} to destroy the source", printable(&self.source));
        Diagnostic::error(Code::NotConfirmed, reason).help(help).into()
    }

    /// The refusal of a source that a server with the same configuration would create again.
    fn configured(&self) -> Diagnostic {
        let (source, file) = (printable(&self.source), config_path());
        let message = format!("`serve` follows source `{source}`: it is in `sources` of `{}`", file.display());
        Diagnostic::error(Code::Conflict, message).help("remove the source from the file first")
    }
}

impl StoreChange for Destroy {
    const COMMAND: &'static str = "destroy";
    const UNCHANGED: &'static str = "Nothing was deleted.";
    const MISTAKES: &'static [Code] = &[Code::NotFound, Code::Conflict];

    type Change = Destroy;

    fn path(&self) -> String {
        source_action(&self.source, "destroy")
    }

    fn request(&self, behaviour: bool, expect: Option<String>) -> impl Serialize {
        let (dry_run, max_deletes) = (expect.is_none(), self.budget);
        DestroyRequest { dry_run, behaviour, max_deletes, expect: expect.unwrap_or_default() }
    }

    fn in_store(&self, _: &Store) -> Result<Destroy, Failure> {
        Ok(self.clone())
    }

    fn author(&self) -> Author {
        Author::destroy_of(&self.source)
    }
}

//! The options for what a plan means for requests: the behaviour diff, and lints that are denied.

use clap::Args;

use crate::cli::prelude::*;
use crate::lint::{self, Level};
use crate::manifest::load::reader::unknown_lint;

/// What a plan says about requests, and what it must not do.
#[derive(Debug, Clone, Args)]
pub(super) struct BehaviourArgs {
    /// Show which requests are treated differently, and how.
    #[arg(long = "behaviour", env = "EDGEWRIGHT_BEHAVIOUR")]
    pub(super) shows: bool,
    /// Set a lint to `deny` unless a manifest sets another level. Repeatable.
    #[arg(long, value_name = "LINT", env = "EDGEWRIGHT_DENY", value_delimiter = ',')]
    deny: Vec<String>,
}

impl BehaviourArgs {
    /// The configured levels with those of the options.
    pub(super) fn levels(&self, mut lints: LintLevels) -> Result<LintLevels, Failure> {
        for name in &self.deny {
            if lint::find(name).is_none() {
                let fault = unknown_lint(name, "");
                let help = fault.help.unwrap_or_default();
                return Err(Diagnostic::error(Code::Parameter, fault.message).help(help).into());
            }
            lints.levels.insert(name.clone(), Level::Deny);
        }
        Ok(lints)
    }
}

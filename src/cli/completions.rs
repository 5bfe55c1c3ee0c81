//! `edgewright completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use crate::cli::prelude::*;

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shell to generate the script for.
    shell: Shell,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        // The generator panics on a write error, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "edgewright", &mut script);
        print(script)
    }
}

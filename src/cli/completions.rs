//! `edgewright completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Exit, Outcome};

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell.
    shell: Shell,
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        clap_complete::generate(self.shell, &mut Cli::command(), "edgewright", &mut std::io::stdout());
        Ok(Exit::Done)
    }
}

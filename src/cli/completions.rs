//! `edgewright completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, Exit, Outcome};

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to generate the script for.
    shell: Shell,
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        clap_complete::generate(self.shell, &mut Cli::command(), "edgewright", &mut std::io::stdout());
        Ok(Exit::Done)
    }
}

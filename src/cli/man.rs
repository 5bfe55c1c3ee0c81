//! `edgewright man`.

use std::io;

use clap::Command;
use clap_mangen::Man;

use crate::{cli::prelude::*, model::build};

/// Write the manual pages of all commands to a folder.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder to write to, created if missing.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Args {
    /// Runs the command. The pages are of `program`.
    pub(super) fn run(self, program: Command) -> CommandResult {
        let mut command = help::with_help(program).disable_help_subcommand(true);
        command.build();
        let written = fs::create_dir_all(&self.folder).and_then(|()| write(&command, &self.folder));
        written.map_err(|error| {
            let message = format!("cannot write the manual pages to `{}`: {error}", self.folder.display());
            Failure::from(Diagnostic::error(Code::Unreadable, message))
        })?;
        Ok(Exit::Done)
    }
}

fn write(command: &Command, folder: &Path) -> io::Result<()> {
    for nested in command.get_subcommands().filter(|nested| !nested.is_hide_set()) {
        write(nested, folder)?;
    }
    let page = Man::new(command.clone()).source(format!("edgewright {}", build::VERSION)).manual("edgewright");
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(folder.join(page.get_filename()), text)
}

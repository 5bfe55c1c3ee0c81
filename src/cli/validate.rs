//! `edgewright validate`.

use super::{
    CommandResult, Exit,
    caching::Caching,
    leave,
    output::Output,
    progress::during,
    source::{Manifests, ReportedSource},
};
use crate::reconcile::{LintLevels, validate_with};

/// Check manifests against every rule and lint, using only the files.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    caching: Caching,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    reported: ReportedSource,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self, lints: LintLevels) -> CommandResult {
        let parsed = self.caching.parsed_files(None);
        let validated = during("Validating", || validate_with(&self.manifests.tree(), &lints, parsed.as_ref()));
        let mut report = validated.report("validate");
        report.source = self.reported.name();
        self.output.announce(&report, None)?;
        self.output.conclude(&report)?;
        let exit = if report.has_errors() { Exit::Invalid } else { Exit::Done };
        leave((validated, report));
        Ok(exit)
    }
}

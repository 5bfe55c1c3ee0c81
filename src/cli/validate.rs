//! `edgewright validate`.

use std::sync::Arc;

use super::{
    CommandResult, Exit,
    caching::Caching,
    leave,
    output::Output,
    progress::during,
    review::ReviewArgs,
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
    review: ReviewArgs,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self, lints: LintLevels) -> CommandResult {
        let parsed = self.caching.parsed_files(None);
        let tree = self.review.around(Arc::new(self.manifests.tree()), &self.manifests.loading);
        let validated =
            during("Validating", || validate_with(tree.as_ref(), &lints, self.reported.source(), parsed.as_ref()));
        let mut report = validated.report("validate");
        report.source = self.reported.name();
        self.output.announce(&report, None)?;
        self.output.conclude(&report)?;
        let exit = if report.has_errors() { Exit::Invalid } else { Exit::Done };
        leave((validated, report));
        Ok(exit)
    }
}

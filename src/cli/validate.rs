//! `edgewright validate`.

use super::{Exit, Outcome, output::Output, progress::during, source::Manifests};
use crate::{
    plan::report::Report,
    reconcile::{LintLevels, validate},
};

/// Check manifests with nothing but the files: every rule, and every lint.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub fn run(self, lints: LintLevels) -> Outcome {
        let validated = during("Validating", || validate(&self.manifests.tree(), &lints));
        let (diagnostics, files) = (&validated.diagnostics, validated.files.len());
        let report = Report { command: "validate", diagnostics, plan: None, files, applied: None };
        self.output.announce(&report);
        self.output.conclude(&report)?;
        Ok(if validated.has_errors() { Exit::Invalid } else { Exit::Done })
    }
}

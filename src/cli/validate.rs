//! `edgewright validate`.

use super::{Exit, Outcome, show, source::Manifests};
use crate::reconcile::{LintLevels, validate};

/// Check manifests with nothing but the files: every rule, and every lint.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub fn run(self) -> Outcome {
        let validated = validate(&self.manifests.load_options(), &LintLevels::default());
        show::diagnostics(&validated.diagnostics);
        show::count(&validated.diagnostics, validated.files);
        Ok(if validated.has_errors() { Exit::Invalid } else { Exit::Done })
    }
}

//! `edgewright validate`.

use super::base_findings::BaseArgs;
use super::review::ReviewArgs;
use super::source_args::{Manifests, ReportedSource, report_source};
use crate::cli::command_prelude::*;
use crate::cli::target::Target;
use crate::manifest::load;
use crate::reconcile::validate_loaded;

/// Check manifests against every rule and lint, from files alone.
///
/// With --server, names also resolve to resources on the server, and rules and lints also check against its other
/// sources. Reports the same errors as `plan`.
#[derive(Debug, clap::Args)]
// `validate` shows no plan.
#[command(mut_arg("full", |argument| argument.hide(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    reported: ReportedSource,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    review: ReviewArgs,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    manifests: Manifests,
}

impl Args {
    /// Runs the command.
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let tree = self.review.tree(&self.manifests.paths, &self.manifests.loading);
        if let Some(url) = self.server.url() {
            let mut report = self.through_server(url, tree, lints.clone())?;
            self.remove_known(&mut report, &lints)?;
            return self.conclude(&report);
        }
        let (loaded, validated) = during("Validating", || {
            let loaded = load(tree.as_ref());
            let validated = validate_loaded(&loaded, &lints, &self.reported.source);
            (loaded, validated)
        });
        let mut report = validated.report("validate");
        report.source = report_source(&self.reported.source);
        self.remove_known(&mut report, &lints)?;
        let exit = self.conclude(&report)?;
        // The end of the process frees their memory at once. One by one, that takes longer than checking them.
        std::mem::forget((loaded, validated, report));
        Ok(exit)
    }

    /// Has a server plan, and leaves the plan out.
    fn through_server(&self, url: &str, tree: Arc<dyn Tree>, lints: LintLevels) -> Result<Report, Failure> {
        let options = self.reported.options(tree, lints);
        let report = ServerTarget::new(url, &self.server, options)?.propose(None)?.report;
        Ok(Report { command: "validate", plan: None, refusals: Vec::new(), ..report })
    }

    fn remove_known(&self, report: &mut Report, lints: &LintLevels) -> Result<(), Failure> {
        self.base.remove_known(report, &self.review, &self.manifests, lints, &self.reported.source)
    }

    fn conclude(&self, report: &Report) -> CommandResult {
        self.output.announce(report, None)?;
        self.output.conclude(report)?;
        Ok(if report.has_errors() { Exit::Invalid } else { Exit::Done })
    }
}

//! `edgewright validate`.

use super::base_findings::BaseArgs;
use super::review::ReviewArgs;
use super::source_args::{Manifests, ReportedSource, report_source};
use crate::cli::command_prelude::*;
use crate::manifest::load;
use crate::reconcile::validate_loaded;
use crate::server::operations::reconciliation::wire::Request;

/// Check manifests against every rule and lint, from files alone.
///
/// With --server, names also resolve to resources on the server, and rules and lints also check against its other
/// sources. Reports the same errors as `plan`.
#[derive(Debug, clap::Args)]
// `validate` shows no plan.
#[command(mut_arg("full", |argument| argument.hide(true)), mut_args(ServerArgs::by_flag_only))]
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
        let source = &self.reported.source;
        let mut report = match self.server.url() {
            Some(url) => {
                let options = self.reported.options(tree, lints.clone());
                ServerTarget::new(url, &self.server, options)?.report("validate", Request::default())?
            }
            None => during("Validating", || {
                let loaded = load(tree.as_ref());
                let validated = validate_loaded(&loaded, &lints, source);
                let report = Report { source: report_source(source), ..validated.report("validate") };
                // The end of the process frees their memory at once. One by one, that takes longer than checking them.
                std::mem::forget((loaded, validated));
                report
            }),
        };
        self.base.remove_known(&mut report, &self.review, &self.manifests, &lints, source)?;
        self.output.announce(&report)?;
        self.output.conclude(&report)?;
        let exit = if report.has_errors() { Exit::Invalid } else { Exit::Done };
        std::mem::forget(report);
        Ok(exit)
    }
}

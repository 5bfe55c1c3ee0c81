//! `edgewright validate`.

use super::base_findings::BaseArgs;
use super::review::ReviewArgs;
use super::source_args::{Manifests, ReportedSource, report_source};
use crate::cli::command_prelude::*;
use crate::manifest::load;
use crate::reconcile::validate_loaded;
use crate::server::operations::reconciliation::wire::ReconciliationRequest;

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
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let tree = self.review.tree(&self.manifests.paths, &self.manifests.loading);
        let source = &self.reported.source;
        let options = self.reported.options(tree, lints.clone());
        let mut report = judged(&self.server, options, ("validate", "Validating"), ReconciliationRequest::default())?;
        self.base.remove_known(&mut report, &self.review, &self.manifests, &lints, source)?;
        self.output.announce(&report)?;
        self.output.conclude(&report)?;
        let exit = if report.has_errors() { Exit::Invalid } else { Exit::Done };
        std::mem::forget(report);
        Ok(exit)
    }
}

/// The report of a server on manifests among everything that it has, or without one on them alone. `doing` is for the progress.
pub(super) fn judged(
    server: &ServerArgs,
    options: Options,
    (command, doing): (&'static str, &str),
    asked: ReconciliationRequest,
) -> Result<Report, Failure> {
    if let Some(url) = server.url() {
        return ServerTarget::new(url, server, options)?.report(command, asked);
    }
    let Options { tree, lints, source, .. } = &options;
    Ok(during(doing, || {
        let loaded = load(tree.as_ref());
        let validated = validate_loaded(&loaded, lints, source);
        let mut report = Report { source: report_source(source), ..validated.report(command) };
        if asked.tests {
            report.tests = Some(validated.test_report());
        }
        if asked.proofs {
            let (proofs, unseen) = validated.proofs_without_store(&loaded, source);
            report.proofs = Some(proofs);
            if !is_unjudged(&report) {
                report.diagnostics.extend(unseen);
            }
        }
        // The end of the process frees their memory at once. One by one, that takes longer than checking them.
        std::mem::forget((loaded, validated));
        report
    }))
}

/// Whether a report has errors because of which the resources of the manifests are not known.
pub(super) fn is_unjudged(report: &Report) -> bool {
    let of_judging = [Code::InvariantBroken, Code::InvariantUnproven, Code::RouteTestFailed].map(Name::Code);
    let is_judged = |it: &Diagnostic| matches!(it.code, Name::Lint(_)) || of_judging.contains(&it.code);
    report.diagnostics.iter().any(|it| it.severity == Severity::Error && !is_judged(it))
}

//! `edgewright diff`.

use super::base_findings::{remove_warnings_of, revision_root};
use super::behaviour_args::BehaviourArgs;
use super::reconcile::exit_without_changes;
use super::review::{ComparedRevision, ReviewArgs};
use super::source_args::{Loading, ReportedSource, report_source};
use crate::cli::command_prelude::*;
use crate::manifest::load;
use crate::manifest::tree::revisions;
use crate::reconcile::{compare, validate_loaded};

/// Compare two folders of manifests, or two Git revisions.
///
/// Needs no store: plans the changes from the old to the new manifests, which with `--rev` are the same paths in two
/// revisions. With --server, names also resolve to resources on the server, and the new manifests must be valid together
/// with its other sources. Does not list warnings that the old manifests already have. Exits with code 4 if the changes do
/// what a lint at level `deny` forbids, such as opening access.
#[derive(Debug, clap::Args)]
#[command(mut_args(ServerArgs::by_flag_only))]
pub(crate) struct Args {
    /// Exit with code 2 if they differ.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    /// Compare two Git revisions of the paths: `A..B`, `A...B` for the changes on B since it branched off A, or `A` to
    /// compare A with the working tree.
    #[arg(long, value_name = "A..B", env = "EDGEWRIGHT_REV")]
    rev: Option<String>,
    #[command(flatten)]
    behaviour: BehaviourArgs,
    #[command(flatten)]
    reported: ReportedSource,
    #[command(flatten)]
    review: ReviewArgs,
    #[command(flatten)]
    pub server: ServerArgs,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    loading: Loading,
    /// The old and the new file or folder of manifests; with --rev, any number of paths (default: the working folder).
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Manifests, and what the names of their files begin with.
type ComparedTree = (Arc<dyn Tree>, String);

impl Args {
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let [(old, old_root), (new, new_root)] = self.sides()?;
        let lints = self.behaviour.levels(lints)?;
        let options = |tree: Arc<dyn Tree>| Options {
            behaviour: self.behaviour.shows,
            ..self.reported.options(tree, lints.clone())
        };
        let mut report = match self.server.url() {
            Some(url) => {
                // As without a server, the limit of deletions is for those who apply.
                let options = Options { budget: DeletionBudget::Percent(100.0), ..options(new) };
                ServerTarget::new(url, &self.server, options)?.compare(&old)?
            }
            None => {
                let compared = during("Comparing", || compare(&options(Arc::clone(&old)), &options(new)));
                let source = report_source(&self.reported.source);
                Report { source, ..compared.report_with("diff", self.output.detail()) }
            }
        };
        let before = during("Comparing", || validate_loaded(&load(old.as_ref()), &lints, &self.reported.source));
        remove_warnings_of(&before, &mut report, [&old_root, &new_root]);
        self.conclude(&report)
    }

    fn conclude(&self, report: &Report) -> CommandResult {
        self.output.announce(report)?;
        // Nothing is applied, but a reviewer should see what reconcile would refuse.
        diagnostics::diagnostics(&report.refusals);
        self.output.conclude(report)?;
        // The other limits are for those who apply.
        let is_denied = report.refusals.iter().any(|it| matches!(it.code, Name::Lint(_)));
        Ok(if is_denied { Exit::Refused } else { exit_without_changes(report, self.detailed_exitcode) })
    }

    /// The old and the new manifests.
    fn sides(&self) -> Result<[ComparedTree; 2], Failure> {
        let on_disk = |paths: &[PathBuf]| self.review.tree(paths, &self.loading);
        let Some(range) = &self.rev else {
            let side = |path: &PathBuf| (on_disk(std::slice::from_ref(path)), path.display().to_string());
            return match self.paths.as_slice() {
                [old, new] => Ok([side(old), side(new)]),
                _ => Err(Diagnostic::error(Code::Parameter, "two paths are required without `--rev`")
                    .help("name the old and the new folder, or add `--rev OLD..NEW` to compare Git revisions")
                    .into()),
            };
        };
        let here = PathBuf::from(".");
        let paths = if self.paths.is_empty() { std::slice::from_ref(&here) } else { self.paths.as_slice() };
        let (old, new) = revisions(range, paths.first().unwrap_or(&here))?;
        let new = match new {
            Some(new) => (self.review.at(ComparedRevision::Newer(&new), paths, &self.loading)?, revision_root(&new)),
            None => (on_disk(paths), String::new()),
        };
        Ok([(self.review.at(ComparedRevision::Older(&old), paths, &self.loading)?, revision_root(&old)), new])
    }
}

//! `edgewright diff`.

use std::{path::PathBuf, sync::Arc};

use super::{
    CommandResult, Exit, Failure,
    caching::Caching,
    output::Output,
    progress::during,
    show,
    source::{Loading, ReportedSource},
};
use crate::{
    manifest::tree::{CommitTree, Tree, revisions},
    model::{code::Code, diagnostic::Diagnostic},
    reconcile::{LintLevels, Options, compare},
};

/// Compare two folders of manifests, or two Git revisions of one folder, without a store.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Exit with code 2 if they differ.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    /// Compare two Git revisions of one path: `A..B`, `A...B` for the changes on B since it branched off A, or `A` to
    /// compare A with the working tree.
    #[arg(long, value_name = "A..B", env = "EDGEWRIGHT_REV")]
    rev: Option<String>,
    #[command(flatten)]
    caching: Caching,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    reported: ReportedSource,
    #[command(flatten)]
    loading: Loading,
    /// The old and the new file or folder of manifests; with --rev, one path (default: the working folder).
    #[arg(value_name = "PATH", num_args = 0..=2)]
    paths: Vec<PathBuf>,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self, lints: LintLevels) -> CommandResult {
        let [old, new] = self.sides()?;
        let options = |tree: Arc<dyn Tree>| Options { tree, lints: lints.clone(), ..Options::default() };
        let parsed = self.caching.parsed_files(None);
        let compared = during("Comparing", || compare(&options(old), &options(new), parsed.as_ref()));
        let mut report = compared.report_with("diff", self.output.detail());
        report.source = self.reported.name();
        self.output.announce(&report, compared.plan.as_ref())?;
        // Nothing is applied, but a reviewer should see what reconcile would refuse.
        show::diagnostics(&report.refusals);
        self.output.conclude(&report)?;
        Ok(match &report.plan {
            None => Exit::Invalid,
            Some(plan) if self.detailed_exitcode && !plan.is_empty() => Exit::Pending,
            Some(_) => Exit::Done,
        })
    }

    /// The old and the new manifests.
    fn sides(&self) -> Result<[Arc<dyn Tree>; 2], Failure> {
        let usage = |message: &str| Failure::from(Diagnostic::error(Code::Parameter, message));
        let disk = |path: &PathBuf| Arc::new(self.loading.of(vec![path.clone()]));
        match (&self.rev, self.paths.as_slice()) {
            (None, [old, new]) => Ok([disk(old), disk(new)]),
            (None, _) => Err(usage("two paths are required without `--rev`")),
            (Some(_), [_, _]) => Err(usage("`--rev` accepts one path (found 2)")),
            (Some(range), paths) => {
                let path = paths.first().cloned().unwrap_or_else(|| PathBuf::from("."));
                let (old, new) = revisions(range, &path)?;
                let at = |revision: &str, labelled| -> Result<Arc<dyn Tree>, Failure> {
                    let outside = self.loading.allow_outside_files;
                    Ok(Arc::new(CommitTree::open(revision, std::slice::from_ref(&path), labelled, outside)?))
                };
                let new = new.map_or_else(|| Ok(disk(&path) as Arc<dyn Tree>), |new| at(&new, false))?;
                Ok([at(&old, true)?, new])
            }
        }
    }
}

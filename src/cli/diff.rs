//! `edgewright diff`.

use std::path::PathBuf;

use super::{Exit, Outcome, output::Output, source::Loading};
use crate::{
    plan::report::Report,
    reconcile::{LintLevels, Options, compare},
};

/// Compare two folders of manifests, without any store: what would the second change after the first?
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Exit with 2 when they differ.
    #[arg(long, env = "EDGEWRIGHT_DETAILED_EXITCODE")]
    detailed_exitcode: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    loading: Loading,
    /// A file or folder of manifests: how it was.
    #[arg(value_name = "OLD")]
    old: PathBuf,
    /// A file or folder of manifests: how it will be.
    #[arg(value_name = "NEW")]
    new: PathBuf,
}

impl Args {
    /// Runs the command.
    pub fn run(self, lints: LintLevels) -> Outcome {
        let options = |path: PathBuf| Options { lints: lints.clone(), ..Options::new(self.loading.of(vec![path])) };
        let compared = compare(&options(self.old.clone()), &options(self.new.clone()));
        let (diagnostics, plan, files) = (&compared.diagnostics, compared.plan.as_ref(), compared.files);
        let report = Report { command: "diff", diagnostics, plan, files, applied: None };
        self.output.announce(&report);
        self.output.conclude(&report)?;
        Ok(match &compared.plan {
            None => Exit::Invalid,
            Some(plan) if self.detailed_exitcode && !plan.is_empty() => Exit::Pending,
            Some(_) => Exit::Done,
        })
    }
}

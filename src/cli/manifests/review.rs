//! The options of reviews: the surrounding manifests of a team's folder (D107), and values that are unset (D106).

use clap::Args;

use super::source_args::Loading;
use crate::cli::input::choice::Choice;
use crate::cli::prelude::*;
use crate::manifest::tree::{CommitTree, StopCheck, SurroundedTree, UnsetValues};

/// The surrounding manifests: what the manifests use without owning it.
#[derive(Debug, Clone, Args)]
pub(super) struct SurroundingArgs {
    /// Manifests of other sources, for their names and module sets.
    ///
    /// A file or folder. Read only: nothing in it is planned, pruned or linted. Repeatable.
    #[arg(help_heading = help::MANIFESTS, long, value_name = "PATH", env = "EDGEWRIGHT_WITH")]
    pub(super) with: Vec<PathBuf>,
}

/// One of two Git revisions that are compared.
#[derive(Debug, Clone, Copy)]
pub(super) enum ComparedRevision<'r> {
    /// The one before the change.
    Older(&'r str),
    /// The one after it. A mistyped path is missing here, too, and not only new.
    Newer(&'r str),
}

impl ComparedRevision<'_> {
    fn tree(self, paths: &[PathBuf], loading: &Loading) -> Result<Arc<dyn Tree>, Failure> {
        let mut tree = match self {
            ComparedRevision::Older(revision) => CommitTree::open(revision, paths)?.older(),
            ComparedRevision::Newer(revision) => CommitTree::open(revision, paths)?,
        };
        tree.allow_outside_files = loading.allow_outside_files;
        Ok(Arc::new(tree))
    }
}

fn unset_values() -> Choice<UnsetValues> {
    let parse = |name: &str| match name {
        "require" => Ok(UnsetValues::Require),
        "assume" => Ok(UnsetValues::Assume),
        _ => Err("expected `require` or `assume`".to_owned()),
    };
    Choice::new(parse, || vec!["require".to_owned(), "assume".to_owned()])
}

/// The options of a review for names and values that the manifests do not have.
#[derive(Debug, Clone, Args)]
pub(super) struct ReviewArgs {
    #[command(flatten)]
    surrounding: SurroundingArgs,
    /// How to handle unset values: `require` or `assume`.
    ///
    /// The values come from `from_env` and `from_file`. `require` fails. `assume` reviews manifests without their
    /// secrets: a plan uses the value in the store, and everything else is `(unknown)`. Plans with assumed values cannot
    /// be applied.
    #[arg(help_heading = help::MANIFESTS)]
    #[arg(long, value_name = "MODE", env = "EDGEWRIGHT_SECRETS", default_value = "require")]
    #[arg(value_parser = unset_values(), hide_possible_values = true)]
    secrets: UnsetValues,
}

impl ReviewArgs {
    /// Manifests on disk with the surrounding manifests.
    pub(super) fn tree(&self, paths: &[PathBuf], loading: &Loading) -> Arc<dyn Tree> {
        loading.tree(paths, &self.surrounding.with, self.secrets, &StopCheck::default())
    }

    /// Manifests at a Git revision, with the surrounding manifests at that revision.
    pub(super) fn at(
        &self,
        revision: ComparedRevision<'_>,
        paths: &[PathBuf],
        loading: &Loading,
    ) -> Result<Arc<dyn Tree>, Failure> {
        let (own, with) = (revision.tree(paths, loading)?, &self.surrounding.with);
        let surrounding = (!with.is_empty()).then(|| revision.tree(with, loading)).transpose()?;
        Ok(SurroundedTree::wrap(own, surrounding, self.secrets))
    }

    /// Refuses to do more than show a plan with assumed values. `applies` states that the plan is to be applied, `saves` that
    /// it is saved for that or compared with one that was.
    pub(super) fn check(&self, applies: bool, saves: bool) -> Result<(), Failure> {
        let (message, help) = match (self.secrets, applies, saves) {
            (UnsetValues::Assume, true, _) => (
                "`--secrets=assume` cannot be used to apply a plan",
                "set the values, and use --secrets=require; or add --dry-run",
            ),
            (UnsetValues::Assume, false, true) => (
                "a plan with assumed values cannot be saved, or compared with a saved one",
                "remove --out and --plan; or set the values, and use --secrets=require",
            ),
            _ => return Ok(()),
        };
        Err(Diagnostic::error(Code::Parameter, message).help(help).into())
    }
}

//! The options that say which manifests are meant; several commands share them.

use std::path::{Path, PathBuf};

use clap::{ArgAction, Args};

use crate::{
    manifest::LoadOptions,
    plan::safety::Budget,
    reconcile::{LintLevels, Options},
};

/// How manifests are read.
#[derive(Debug, Clone, Args)]
pub struct Loading {
    /// Let `from_file` read files outside of the folders of the manifests.
    #[arg(long, env = "EDGEWRIGHT_ALLOW_OUTSIDE_FILES")]
    allow_outside_files: bool,
}

impl Loading {
    /// What the loader needs.
    pub fn of(&self, paths: Vec<PathBuf>) -> LoadOptions {
        LoadOptions { paths, allow_outside_files: self.allow_outside_files }
    }
}

/// Where manifests are.
#[derive(Debug, Clone, Args)]
pub struct Manifests {
    /// Files and folders of manifests, or `-` for standard input.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    loading: Loading,
}

impl Manifests {
    /// The first path, which says where the manifests are from.
    pub fn first(&self) -> Option<&Path> {
        self.paths.first().map(PathBuf::as_path)
    }

    /// What the loader needs.
    pub fn load_options(&self) -> LoadOptions {
        self.loading.of(self.paths.clone())
    }
}

/// What a source owns, and what becomes of it.
#[derive(Debug, Clone, Args)]
pub struct Ownership {
    /// The name under which the applied resources are owned. Two sources of one store need two names.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", default_value = "default")]
    source: String,
    /// Delete what the source owns and no longer declares.
    #[arg(
        long,
        env = "EDGEWRIGHT_PRUNE",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true"
    )]
    prune: bool,
    /// Set what is faulty aside, with what depends on it, and apply the rest. Nothing is deleted in such a run, and it
    /// ends with 1.
    #[arg(long, env = "EDGEWRIGHT_ISOLATE")]
    isolate: bool,
    /// How much one plan may delete: a number of resources, or a share of what the source owns, such as 50%. By default
    /// three deletions, or a quarter and at most a hundred, but never everything.
    #[arg(long, value_name = "N|P%", env = "EDGEWRIGHT_MAX_DELETES")]
    max_deletes: Option<Budget>,
}

impl Ownership {
    /// What a reconciliation needs.
    pub fn options(&self, load: LoadOptions, lints: LintLevels) -> Options {
        Options {
            load,
            source: self.source.clone(),
            prune: self.prune,
            isolate: self.isolate,
            budget: self.max_deletes.unwrap_or_default(),
            lints,
        }
    }
}

//! The options for manifests and ownership that several commands share.

use std::{path::PathBuf, sync::Arc};

use clap::{ArgAction, Args};

use crate::{
    manifest::tree::{Disk, Tree},
    plan::safety::Budget,
    reconcile::{LintLevels, Options, check_source},
};

/// How manifests are read.
#[derive(Debug, Clone, Args)]
pub struct Loading {
    /// Read manifests and `from_file` values outside the given folders, where links and paths lead there.
    #[arg(long, env = "EDGEWRIGHT_ALLOW_OUTSIDE_FILES")]
    pub allow_outside_files: bool,
}

impl Loading {
    /// Files and folders, read with these options.
    pub fn of(&self, paths: Vec<PathBuf>) -> Disk {
        Disk { paths, allow_outside_files: self.allow_outside_files }
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
    /// The files and folders to read.
    pub fn tree(&self) -> Disk {
        self.loading.of(self.paths.clone())
    }
}

/// What a source owns, and what becomes of it.
#[derive(Debug, Clone, Args)]
pub struct Ownership {
    /// The name under which the applied resources are owned. Two sources of one store need two names.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", default_value = "default", value_parser = source_name)]
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

fn source_name(name: &str) -> Result<String, String> {
    check_source(name).map(|()| name.to_owned())
}

impl Ownership {
    /// Whether `--max-deletes` is set.
    pub fn has_budget(&self) -> bool {
        self.max_deletes.is_some()
    }

    /// The options of a reconciliation.
    pub fn options(&self, tree: impl Tree + 'static, lints: LintLevels) -> Options {
        Options {
            tree: Arc::new(tree),
            source: self.source.clone(),
            prune: self.prune,
            isolate: self.isolate,
            budget: self.max_deletes.unwrap_or_default(),
            lints,
            ..Options::default()
        }
    }
}

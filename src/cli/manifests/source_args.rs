//! The options for manifests and ownership that several commands share.

use clap::{ArgAction, ArgMatches, Args};

use crate::cli::prelude::*;
use crate::manifest::tree::{Disk, StopCheck, SurroundedTree, UnsetValues};
use crate::reconcile::{DEFAULT_SOURCE, check_new_source, check_source};

/// The options for reading manifests.
#[derive(Debug, Clone, Args)]
pub(crate) struct Loading {
    /// Allow manifests and `from_file` values outside the given folders.
    #[arg(help_heading = help::MANIFESTS, long, env = "EDGEWRIGHT_ALLOW_OUTSIDE_FILES")]
    pub allow_outside_files: bool,
}

impl Loading {
    /// Reads files and folders with these options, and `around` as the surrounding manifests if there are any, until `stop`
    /// says so.
    pub(crate) fn tree(
        &self,
        paths: &[PathBuf],
        around: &[PathBuf],
        unset: UnsetValues,
        stop: &StopCheck,
    ) -> Arc<dyn Tree> {
        let disk = |paths: &[PathBuf]| -> Arc<dyn Tree> {
            let mut disk = Disk::new(paths.to_vec());
            disk.allow_outside_files = self.allow_outside_files;
            disk.stop = stop.clone();
            Arc::new(disk)
        };
        SurroundedTree::wrap(disk(paths), (!around.is_empty()).then(|| disk(around)), unset)
    }
}

/// The paths of manifests.
#[derive(Debug, Clone, Args)]
pub(super) struct Manifests {
    /// Manifest files and folders, or `-` for standard input.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    #[command(flatten)]
    pub loading: Loading,
}

/// The source, and the options for what it owns.
#[derive(Debug, Clone, Args)]
pub(crate) struct Ownership {
    /// Name of the source that owns the applied resources.
    ///
    /// Each source of a store needs its own name.
    #[arg(help_heading = help::OWNERSHIP, long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", default_value = "default",
        value_parser = new_source_name)]
    pub(super) source: String,
    /// Delete resources that the source no longer declares.
    ///
    /// With `--prune=false`, they stay.
    #[arg(help_heading = help::OWNERSHIP, hide_possible_values = true)]
    #[arg(long, env = "EDGEWRIGHT_PRUNE", default_value_t = true, default_missing_value = "true")]
    #[arg(action = ArgAction::Set, num_args = 0..=1, require_equals = true)]
    prune: bool,
    /// Skip invalid resources and what depends on them, and apply the rest.
    ///
    /// If anything was skipped, the run deletes nothing and exits with code 1.
    #[arg(help_heading = help::OWNERSHIP, long, env = "EDGEWRIGHT_ISOLATE")]
    isolate: bool,
    /// Maximum number of resources to delete, or percentage, such as 50%.
    ///
    /// The percentage is of the resources that the source owns. The default is 3, or 25% up to 100 resources, but never all of them.
    #[arg(help_heading = help::OWNERSHIP, long, value_name = "N|P%", env = "EDGEWRIGHT_MAX_DELETES")]
    pub(super) max_deletes: Option<DeletionBudget>,
}

/// The source that a report names: none for the default one.
pub(crate) fn report_source(source: &str) -> Option<String> {
    (source != DEFAULT_SOURCE).then(|| source.to_owned())
}

/// The name of the source, for a command that needs no store.
#[derive(Debug, Clone, Args)]
pub(super) struct ReportedSource {
    /// Name of the source. Edges of other sources delegate to it, and a pull-request comment replaces only comments of
    /// the same source.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_SOURCE", default_value = DEFAULT_SOURCE,
        value_parser = source_name)]
    pub(super) source: String,
}

impl ReportedSource {
    /// The options of a command that judges manifests of the source.
    pub(super) fn options(&self, tree: Arc<dyn Tree>, lints: LintLevels) -> Options {
        Options { tree, source: self.source.clone(), lints, ..Options::default() }
    }
}

/// The source among the arguments of a command, for a report.
pub(crate) fn source_among(arguments: &ArgMatches) -> Option<String> {
    arguments.try_get_one::<String>("source").ok().flatten().and_then(|source| report_source(source))
}

/// Parses the name of a source that a store may have.
pub(crate) fn source_name(name: &str) -> Result<String, String> {
    check_source(name).map(|()| name.to_owned()).map_err(|fault| fault.message)
}

/// Parses the name of a source that gets resources.
pub(crate) fn new_source_name(name: &str) -> Result<String, String> {
    check_new_source(name).map(|()| name.to_owned()).map_err(|fault| fault.message)
}

impl Ownership {
    /// The options of a reconciliation, still without manifests and lints.
    pub(crate) fn options(&self) -> Options {
        Options {
            source: self.source.clone(),
            prune: self.prune,
            isolate: self.isolate,
            budget: self.max_deletes.unwrap_or_default(),
            ..Options::default()
        }
    }
}

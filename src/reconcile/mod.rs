//! Planning and applying manifests, and the loop that follows a source ([`watch`]). Returns data; the command line and the
//! API print it.

mod applied_commits;
mod apply;
pub(crate) mod cancel;
mod clock;
pub(crate) mod destroy;
pub(crate) mod drift;
pub(crate) mod fetch_schedule;
mod fight;
mod folders;
pub(crate) mod freshness;
pub(crate) mod health;
mod judged;
mod known_condition;
mod lint_stage;
mod open_writes;
mod options;
pub(crate) mod plan_cache;
mod planned;
#[cfg(test)]
mod properties;
pub(crate) mod report;
mod report_dedup;
mod reverted_drift;
pub(crate) mod rollback;
mod run;
mod schedule;
mod secret_visibility;
mod source_entries;
pub(crate) mod source_handle;
pub(crate) mod source_registry;
pub(crate) mod spans;
mod stages;
pub(crate) mod status;
pub(crate) mod suspension;
pub(crate) mod sync_log;
#[cfg(test)]
mod tests;
pub(crate) mod token;
pub(crate) mod transfer;
pub(crate) mod watch;
mod write_quiescence;

pub use apply::{ApplyError, apply};
pub(crate) use apply::{apply_as_tried, apply_current, measure};
pub(crate) use options::{DEFAULT_SOURCE, check_new_source, check_source};
pub use options::{LintLevels, Options};
pub use planned::Planned;
pub(crate) use stages::{Prepared, compare, validate_loaded};
pub use stages::{plan, validate};

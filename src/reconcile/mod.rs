//! Plans and applies manifests, once or again and again.
//!
//! # The problem
//!
//! A command, a server that plans for a client, and a server that follows a source make the same decisions. If each had
//! code of its own, a review would not show what is applied later.
//!
//! # The idea
//!
//! There is one run: [`run`] turns manifests and a Snapshot into a plan, decides what of it may happen, and commits it. A
//! command and a request run it once. [`sync_loop`] runs it for a followed source whenever something may have changed, and
//! [`sources`] has those sources.
//!
//! For example, `edgewright plan`, `POST /reconciliations` with `dry_run` and a sync all call `Prepared::plan`, and get the
//! same plan from the same files and state.
//!
//! # What it never does
//!
//! A run never prints: the command line and the API show what it returns. Only a commit changes the store, and only
//! with a plan that was tried on the state that it changes.

mod prelude;
#[cfg(test)]
mod properties;
pub(crate) mod run;
pub(crate) mod sources;
pub(crate) mod sync_loop;
#[cfg(test)]
mod tests;

pub use run::apply::apply;
pub(crate) use run::apply::{apply_current, commit_speculative, measure};
pub use run::apply_error::ApplyError;
pub(crate) use run::options::{DEFAULT_SOURCE, check_new_source, check_source};
pub use run::options::{LintLevels, Options};
pub use run::plan_result::PlanResult;
pub(crate) use run::stages::{Prepared, compare, validate_loaded};
pub use run::stages::{plan, validate};

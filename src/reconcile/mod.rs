//! Planning and applying manifests, and the loop that follows a source ([`watch`]). Returns data; the command line and the
//! API print it.

#[cfg(test)]
mod properties;
pub(crate) mod run;
pub(crate) mod sources;
pub(crate) mod sync_loop;
#[cfg(test)]
mod tests;

pub use run::apply::{ApplyError, apply};
pub(crate) use run::apply::{apply_as_tried, apply_current, measure};
pub(crate) use run::options::{DEFAULT_SOURCE, check_new_source, check_source};
pub use run::options::{LintLevels, Options};
pub use run::planned::Planned;
pub(crate) use run::stages::{Prepared, compare, validate_loaded};
pub use run::stages::{plan, validate};

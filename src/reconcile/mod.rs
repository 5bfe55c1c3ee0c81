//! One run of the reconciler, and the loop that repeats it. Returns data; the command line and the API print it.

mod apply;
pub(crate) mod cancel;
pub(crate) mod fetching;
mod folders;
pub(crate) mod following;
pub(crate) mod health;
mod judging;
#[cfg(test)]
mod laws;
mod options;
mod planned;
pub(crate) mod remembered;
pub(crate) mod rollback;
pub(crate) mod run;
mod stages;
pub(crate) mod status;
pub(crate) mod suspension;
pub(crate) mod sync_log;
pub(crate) mod token;
pub(crate) mod watch;

pub use apply::{ApplyError, apply};
pub(crate) use apply::{apply_as_tried, apply_current, measure};
pub(crate) use options::{DEFAULT_SOURCE, check_source};
pub use options::{LintLevels, Options};
pub use planned::Planned;
pub(crate) use stages::{Prepared, compare, plan_with, validate_loaded, validate_with};
pub use stages::{plan, validate};

//! One run of the reconciler, and the loop that repeats it. Returns data; the command line and the API print it.

mod apply;
pub mod cancel;
mod folders;
pub mod health;
#[cfg(test)]
mod laws;
mod options;
mod planned;
mod stages;
pub mod token;
pub mod watch;

pub use apply::{ApplyError, apply, apply_current, measure};
pub use options::{DEFAULT_SOURCE, LintLevels, Options, check_source};
pub use planned::Planned;
pub use stages::{Prepared, compare, plan, validate, validate_loaded};

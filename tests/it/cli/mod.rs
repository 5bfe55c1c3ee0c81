//! The command line itself: its options, configuration and output.

pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod get;
pub(crate) mod help;
pub(crate) mod mistakes;
pub(crate) mod no_accidental_deletion;
pub(crate) mod progress;
pub(crate) mod remote;
pub(crate) mod stdout;

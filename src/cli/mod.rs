//! The command line, one file per command. Data goes to stdout, diagnostics and progress to stderr (D30).

pub(crate) mod access;
mod candidates;
mod command;
mod command_prelude;
mod completions;
mod config;
mod failure;
mod help;
pub(crate) mod input;
pub(crate) mod inspect;
mod leak;
mod man;
pub(crate) mod manifests;
pub(crate) mod operate;
mod output;
mod prelude;
mod program;
mod reference;
mod serve;
mod store;
mod target;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use config::fuzzed as fuzzed_configuration;
pub use program::main;

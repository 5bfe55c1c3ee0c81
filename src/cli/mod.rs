//! The command line, one file per command. Data goes to stdout, diagnostics and progress to stderr (D30).
//!
//! # Rooms
//!
//! | Room | What one finds there |
//! | --- | --- |
//! | `program`, `command` | The start of the program, and the list of commands with what each needs |
//! | `manifests` | `reconcile`, `plan`, `validate`, `diff`, `fmt`, `schema`, `explain` |
//! | `inspect` | Commands that only read: `get`, `status`, `history`, `blame`, `trace`, `replay`, `export` |
//! | `operate` | `rollback`, `transfer`, `destroy`, `suspend`, `resume`, `healthcheck` |
//! | `access` | `keys`, `owners`, `login`, `logout`, `context`, `security-log` |
//! | `store` | `store`, `backup`, `restore` |
//! | `serve` | `serve`: listening, reload, sources, log and service manager |
//! | `reference` | The generated pages of `docs/reference` |
//! | `target` | The local store or the server on which a command works |
//! | `config`, `input` | The configuration file; variables, questions and usage errors |
//! | `output`, `failure`, `help` | Reports, tables and excerpts; exit codes; help texts |
//! | `completions`, `candidates`, `man` | Shell completions and manual pages |

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

//! The names that most commands use: those of the prelude, the output, the store or server that a command works on, and what it
//! keeps. The files behind them use the prelude alone.

pub(super) use super::manifests::source_args::source_name;
pub(super) use super::output::{Output, diagnostics, during, print, say};
pub(super) use super::prelude::*;
pub(super) use super::store::retention_args::RetentionArgs;
pub(super) use super::target::{ApiClient, ServerArgs, ServerTarget, StoreOrServer};

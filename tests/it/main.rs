//! One integration binary: every file is a chapter of the specification of edgewright.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod accidents;
mod bounds;
mod cli;
mod config;
mod conformance;
mod crash;
mod daemon;
mod diff;
mod export;
mod fmt;
mod formats;
mod get;
mod history;
mod identity;
mod isolate;
mod jail;
mod lint_places;
mod lints;
mod mistakes;
mod notify;
mod one_cause;
mod parsed;
mod progress;
mod provenance;
mod readme;
mod remembered;
mod remote;
mod report_limits;
mod safety;
mod saved;
mod scenarios;
mod secrets;
mod serve;
mod server;
mod stdout;
mod store;
mod store_folder;
mod storefront;
mod terminal;
mod tidy;
mod trace;
mod watch;

//! One integration binary: every file is a chapter of the specification of edgewright.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod accidents;
mod cli;
mod config;
mod conformance;
mod crash;
mod diff;
mod export;
mod fmt;
mod formats;
mod generate;
mod isolate;
mod jail;
mod laws;
mod lints;
mod mistakes;
mod progress;
mod readme;
mod remote;
mod safety;
mod saved;
mod scenarios;
mod secrets;
mod serve;
mod server;
mod storefront;
mod tidy;
mod trace;
mod x509;

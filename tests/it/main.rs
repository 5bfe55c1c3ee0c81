//! One integration binary: every file is a chapter of the specification of edgewright.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod api;
mod cli;
mod daemon;
mod dashboard;
mod git;
mod manifests;
mod plan;
mod repository;
mod security;
mod store;
mod support;

//! One integration binary: every file is a chapter of the specification of edgewright.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod cli;
mod crash;
mod generate;
mod laws;
mod mistakes;
mod serve;
mod storefront;
mod x509;

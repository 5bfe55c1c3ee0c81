//! Commands for manifests. Their shared options are in `source_args.rs` (what is read, and which source owns it), `review.rs`
//! (context and unset values) and `base_findings.rs` (warnings that are not new).

mod base_findings;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod reconcile;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod source_args;
pub(crate) mod validate;

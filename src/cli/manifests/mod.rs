//! Commands for manifests. Their shared options are in `source_args.rs` (what is read, and which source owns it), `review.rs`
//! (surrounding manifests and unset values), `base_findings.rs` (warnings that are not new) and `behaviour_args.rs` (what a plan
//! means for requests). `planned_state.rs` has the state after a plan.

mod base_findings;
mod behaviour_args;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod planned_state;
pub(crate) mod prove;
pub(crate) mod reconcile;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod source_args;
pub(crate) mod test;
pub(crate) mod validate;

//! Commands that work on manifests: reconcile, plan, validate, diff, fmt, schema and explain.

mod base_findings;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod fmt;
pub(crate) mod reconcile;
pub(crate) mod review;
pub(crate) mod schema;
pub(crate) mod source_args;
pub(crate) mod validate;

//! The management API: each row of its specification, its answers under load, and what its clients do wrong.

pub(crate) mod administration;
pub(crate) mod client_mistakes;
pub(crate) mod conformance;
pub(crate) mod feed;
pub(crate) mod model;
pub(crate) mod named_revisions;
pub(crate) mod rest_writes;
pub(crate) mod watch;

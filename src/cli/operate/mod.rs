//! Commands for operators, without manifests. A rollback, a transfer and a destroy are `StoreChange`s, which `store_change.rs`
//! plans, shows and applies; `revision.rs` finds the revisions that options name.

pub(crate) mod destroy;
pub(crate) mod healthcheck;
pub(crate) mod resume;
pub(crate) mod revision;
pub(crate) mod rollback;
mod store_change;
pub(crate) mod suspend;
pub(crate) mod transfer;

//! Commands with which operators change what a store has, without manifests.

pub(crate) mod destroy;
pub(crate) mod healthcheck;
pub(crate) mod resume;
pub(crate) mod revision;
pub(crate) mod rollback;
mod store_change;
pub(crate) mod suspend;
pub(crate) mod transfer;

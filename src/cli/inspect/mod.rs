//! Commands that read a store or server and change nothing. `get/reader.rs` finds resources in both.

pub(crate) mod blame;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod replay;
pub(crate) mod status;
pub(crate) mod trace;

//! Commands that show what a store or server has, and change nothing.

pub(crate) mod blame;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod status;
pub(crate) mod trace;

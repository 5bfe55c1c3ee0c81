//! The endpoints that are no resources: one file or folder for each.

pub(crate) mod backup;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod hooks;
pub(crate) mod origin;
pub(crate) mod owners;
pub(crate) mod planned_change;
pub(crate) mod ready;
pub(crate) mod reconciliation;
pub(crate) mod rekey;
pub(crate) mod rollback;
pub(crate) mod saml;
pub(crate) mod sources;
pub(crate) mod trace;
pub(crate) mod transfer;
pub(crate) mod watch;
pub(crate) mod whoami;

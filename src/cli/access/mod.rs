//! Commands for access: logins and their contexts (D105), API keys, owners, and the security log. `key_scope.rs` has the options
//! for the scope of a key, and `local_log.rs` the log of changes that are made without a server.

pub(crate) mod context;
pub(crate) mod contexts;
mod key_scope;
pub(crate) mod keys;
mod local_log;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod owners;
pub(crate) mod security_log;

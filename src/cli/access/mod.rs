//! Commands for access: logins and their contexts (D105), API keys, owners, and the security log. `key_scope.rs` has the options
//! for the scope of a key, and `local_log.rs` makes and logs changes without a server.

pub(crate) mod context;
pub(crate) mod contexts;
mod key_scope;
pub(crate) mod keys;
mod local_log;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod owners;
mod role;
pub(crate) mod security_log;
pub(crate) mod wide_keys;

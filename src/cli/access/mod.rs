//! Commands about who may do what: logins, keys, owners, and the security log.

pub(crate) mod context;
pub(crate) mod contexts;
mod key_scope;
pub(crate) mod keys;
mod local_log;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod owners;
pub(crate) mod security_log;

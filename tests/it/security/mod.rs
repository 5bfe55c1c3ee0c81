//! What clients, teams and files that mean harm can do, and what nobody may read.

pub(crate) mod admission;
pub(crate) mod attacks;
pub(crate) mod canary;
pub(crate) mod connections;
pub(crate) mod floods;
pub(crate) mod followed_scopes;
pub(crate) mod guards;
pub(crate) mod jail;
pub(crate) mod scoped_keys;
pub(crate) mod secrets;
pub(crate) mod security_log;
pub(crate) mod tenancy;
pub(crate) mod terminal;
pub(crate) mod tls;
pub(crate) mod tokens;
pub(crate) mod variables;

//! Authentication of callers, and their permissions.
//!
//! # The problem
//!
//! Roles and scopes change while requests wait: a key is revoked, an owner becomes a viewer, a scope is narrowed. A check at
//! the beginning of a request is out of date when it commits, and a check in each handler is forgotten in one of them.
//!
//! # The idea
//!
//! The caller is identified once: a token, a client certificate or a person whom a provider knows becomes a
//! [`Caller`](caller::Caller) with a role and a scope ([`authentication`], [`client_certificates`], [`oidc`]). What it may
//! do is decided in one place, from what it intends and not from where it was asked ([`permission`], D23, D101), and twice: before the handler, so that nothing is done
//! for whoever may not ask, and inside the commit, with the role and the scope at the revision that changes.
//!
//! ```text
//! PATCH /edges/https/edghts_1
//!   before    Intent::Change        an editor?                          403, and a line in the security log
//!   commit    the operations        this edge, this owner, this scope,  403, nothing has changed
//!                                   as they are in this revision
//! ```
//!
//! # What it never does
//!
//! The server keeps no session: that of the dashboard is sealed in a cookie, names a key, and ends with it ([`session`]). It
//! trusts no header for the identity of a client except one that this process wrote itself and signed with a random value. A
//! client without a valid token learns no more than it must. A decision never depends on a secret that the caller does not
//! see.

pub(crate) mod authentication;
pub(crate) mod caller;
pub(crate) mod client_certificates;
pub(crate) mod key_use;
pub(crate) mod oidc;
pub(crate) mod permission;
pub(crate) mod session;
pub(crate) mod session_credentials;

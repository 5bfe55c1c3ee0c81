//! The endpoints of all resource kinds and their traffic modules.
//!
//! No file lists them by hand: [`endpoint`] derives them from the kinds of the model, and [`handlers`] implements each
//! action once for all of them. A read takes one snapshot, or an earlier state ([`at_revision`]), and sends bytes that
//! are rendered once for each entry ([`render`]); pages of lists are kept for clients that poll ([`page_cache`]). A
//! write is one or two operations: the policy of a source may forbid it ([`managed_resources`], [`write_policy`]), invariants
//! judge it before its commit (`pending_write`), and one thread commits all small ones ([`commit_executor`]). The response warns of
//! what it opened or took (`write_effect`). [`change`] is what watchers and notification targets see of it.
//!
//! For example, a new kind needs no line here: its file in `model::kind` says what it offers.

pub(crate) mod at_revision;
pub(crate) mod change;
pub(crate) mod commit_executor;
pub(crate) mod endpoint;
mod external_id;
pub(crate) mod handlers;
mod key_owner;
mod list;
pub(crate) mod managed_resources;
pub(crate) mod page_cache;
mod pending_write;
pub(crate) mod render;
mod write_effect;
pub(crate) mod write_policy;

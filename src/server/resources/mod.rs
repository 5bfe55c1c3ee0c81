//! The endpoints of all resource kinds and their traffic modules, which no file lists by hand: [`endpoint`] derives
//! them from the kinds of the model, and [`handlers`] implements each action once for all of them.

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
pub(crate) mod render;
pub(crate) mod write_policy;

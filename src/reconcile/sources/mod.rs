//! The sources that a server follows: what each is, which of them there are, and when they are fetched.

pub(crate) mod entries;
pub(crate) mod fetch_schedule;
pub(crate) mod folders;
pub(crate) mod handle;
pub(crate) mod registry;
pub(crate) mod secret_visibility;

//! The sources that a server follows: what each is, which there are, and when their repositories are fetched.
//!
//! # The problem
//!
//! Requests, metrics, signals and the loops themselves need the sources at the same time, while a reload of the configuration
//! replaces some of them.
//!
//! # The idea
//!
//! [`handle::FollowedSource`] is what the configuration says about a source. [`handle::SourceHandle`] is the source while its
//! loop runs: anyone can read its status and request a sync, a fetch or a suspension. [`registry::SourceRegistry`] has the
//! handles, and is replaced as a whole.
//!
//! For example, a push to GitHub calls a webhook, which asks each handle whether the repository is its own. The handle of
//! `shop` fetches and syncs at once.
//!
//! # What it never does
//!
//! Two loops of one source never run at a time: a loop that takes over shares a lock with the one before.

pub(crate) mod entries;
pub(crate) mod fetch_schedule;
pub(crate) mod folders;
pub(crate) mod forge_links;
pub(crate) mod handle;
pub(crate) mod location;
pub(crate) mod recent_drift;
pub(crate) mod registry;
pub(crate) mod secret_visibility;

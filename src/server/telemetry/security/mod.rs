//! The security log: who was refused what, and who changed keys and owners (D99). It is separate from the access log,
//! and each line has the hash of the lines before it.

mod chained;
pub(crate) mod event;
mod local;
pub(crate) mod note;
pub(crate) mod reading;
mod repeats;
mod sources;
mod writer;

pub(crate) use local::{LocalChanges, LocalLog};
pub(crate) use writer::{SecurityLog, SecurityLogThread, open};

pub(crate) use sources::log_sources;

/// The default name, in the store's folder.
pub(crate) const SECURITY_LOG: &str = "security.log";
/// The counters of events, and of those that the log does not have.
pub(super) const EVENTS: &str = "edgewright_security_events_total";
pub(super) const DROPPED: &str = "edgewright_security_events_dropped_total";

//! The security log: who was refused what, and who changed keys and owners (D99).
//!
//! # The problem
//!
//! After an incident, somebody asks this log what has happened, and the attacker knew that they would. So it is where lines
//! are removed, changed, or buried under millions of others. And it must not be a reason for an outage: not when its disk is
//! full, and not when requests come faster than it can be synced.
//!
//! # The idea
//!
//! The log is a file of its own. Each line has a number, and a hash of itself and of the one before it ([`hash_chained_file`]),
//! so a change shows, unless everything after it is written anew: the last number is a metric, for whoever compares.
//! The log continues in a new file after 16 MiB, and the first line of that names the last of the one before.
//!
//! ```text
//! {"seq":41,"at":…,"event":"key_created","peer":"192.0.2.7","key":"ak_1","owner":"usr_1",…,"hash":"9f2c…"}
//! {"seq":42,"at":…,"event":"authentication_failed","peer":"198.51.100.9","reason":"unknown key",…,"hash":"07aa…"}
//! {"seq":43,"at":…,"event":"authentication_failed",…,"count":8123,"first":…,"last":…,"hash":"c4d1…"}
//! ```
//!
//! An event goes from the handler with the response ([`note`]), because only the front of the server knows the client, and
//! then into a bounded queue, which a thread writes and syncs ([`writer`]). What a client can repeat without changing
//! anything has one line at once, and one with a count at the end of a minute ([`repeats`]). Such events may fill only a
//! quarter of the queue, so that they displace no change of a key.
//!
//! # What it never does
//!
//! No request waits for the log. What is lost is counted, in the next line and in a metric. No line that was written is
//! changed: what a crash cut off stays, and the next line says so.

pub(crate) mod event;
mod hash_chained_file;
mod log_line;
pub(crate) mod note;
mod offline_changes;
mod repeats;
mod sources;
pub(crate) mod verification;
mod writer;

pub(crate) use offline_changes::LocalLog;
pub(super) use writer::{DROPPED, EVENTS};
pub(crate) use writer::{SecurityLog, SecurityLogThread, open};

pub(crate) use sources::log_sources;

/// The default name, in the store's folder.
pub(crate) const SECURITY_LOG: &str = "security.log";

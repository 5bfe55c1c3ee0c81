//! A commit: a header of a few hundred bytes, the calls, and one entry for each record that it changed (D58).
//!
//! The header says who changed what kind of thing when, and how it ended; lists of the history need no more. An entry has
//! the value of a record before and after, its place in the manifests and a checksum of its own, so the story of one
//! resource is read without the hundred thousand others of a first apply. The hash chain covers the header and a digest of
//! the rest.
//!
//! Operations become a commit in this order: the changed resources are encoded as records with their secrets encrypted
//! (`encoding`, `record`, `codec`), what they were and are becomes entries, and all of it is held without a position
//! (`unchained`) until the commit takes its place in the log.

pub(crate) mod codec;
pub(crate) mod encoding;
pub(crate) mod entries;
pub(crate) mod header;
pub(crate) mod record;
pub(crate) mod unpositioned;

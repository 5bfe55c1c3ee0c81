//! A commit: a header of a few hundred bytes, the calls, and one entry for each record that it changed (D58).
//!
//! # The problem
//!
//! The first apply of a configuration is one commit with 100,000 resources. Afterwards, a list of the history needs its
//! author and time, blame needs one resource of it, and a rollback all former values. Whoever has to read all of it for any
//! of these reads hundreds of megabytes for a line. And yet one hash has to cover everything, or the history could be
//! changed.
//!
//! # The idea
//!
//! A commit has three parts that are read and verified apart from each other. The *header* says who changed what kind of
//! thing when, and how it ended. The *calls* are what a person reads first. An *entry* for each record of the state has its
//! value before and after, with a checksum of its own. The header goes into the hash of the chain together with a digest of
//! the rest, so the chain can be checked from headers, and a single entry can be trusted without the others.
//!
//! ```text
//! header  {"position":7,"revision":5,"at":"2026-11-27T03:24:42Z","milliseconds":3,"author":{"by":"api",…},
//!          "outcome":"applied","operations":1,"changed":1}
//! calls   ["PATCH /edges/https/edghts_U9Cj"]
//! entry   key     r/HttpsEdge//edghts_U9Cj
//!         after   {"spec":{"description":"All products",…},"references":[],"created_at":…,"order":7,"claim":{…}}
//!         before  {"spec":{"description":"Public shop",…},"references":[],"created_at":…,"order":7,"claim":{…}}
//!         place   (the file and line that declare it, if a source made the commit)
//!         drift   (the fields whose drift it reverted)
//! ```
//!
//! The values are all that the log has of a resource. What a person reads of it (`description: Public shop → All products`)
//! is made from them on request. Text beside the values would be written twice for each Spec, and cost more than the commit.
//!
//! # The way of the bytes
//!
//! Changed resources are encoded as records with their secrets encrypted, on all cores (`encoding`, `record`, `codec`). What
//! they were and are becomes entries, in the form in which the log has them: those of a large commit are pieces of a
//! megabyte, not hundreds of thousands of values (`entries`). All of it is held without a position (`unchained_batch`) until the
//! commit takes its place in the log, because only then the previous hash is known (`header`).
//!
//! A record is JSON. In place of each secret, its Spec has an empty text; the offsets of these places, the secrets together,
//! encrypted, and a digest of each are beside it. The offsets are noted while the Spec is written once, so a record without a
//! secret costs nothing more, and a Spec comes back byte by byte, which comparisons by digest rely on. JSON pointers would
//! need a tree of each Spec.
//!
//! # What it never does
//!
//! A header has no secret, and what was refused has no token either, whatever a client has sent. No form depends on the
//! position in the log, except the number in the header. Nothing here does IO.

pub(crate) mod batch;
pub(crate) mod codec;
pub(crate) mod encoding;
pub(crate) mod entries;
pub(crate) mod header;
pub(crate) mod record;
pub(crate) mod record_key;
pub(crate) mod unchained_batch;

//! Untyped documents: the common form of request bodies and manifests (D76).
//!
//! YAML and JSON become a [`Tape`]: all values of a document in one list, with their texts in one string. That takes a few
//! allocations, however many values there are, and a [`Node`] is a position in it:
//!
//! ```text
//! {a: [1, x]}  →  map(5) "a" seq(3) 1 "x"
//! ```
//!
//! A tape keeps what a map of serde would lose: the order of keys, duplicates, and numbers that JSON cannot represent, so that
//! they are faults with a path. Plain YAML has a reader of its own, which is several times faster than serde_yaml and leaves
//! every text to it that might mean something else. A document is never changed to make it valid: what is faulty is removed
//! and reported.

mod build;
mod faults;
mod merge;
mod plain;
mod read;
mod tape;
#[cfg(test)]
mod tests;

pub(crate) use plain::plain_documents;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use plain::plain_reader_agrees;
pub(crate) use read::{Allowance, BYTES_OF_A_VALUE, Counted};
pub(crate) use tape::{Node, NodeEntries, NodeItems, NodeShape, Tape};
